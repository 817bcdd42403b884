"""Small prepared corpora, and pretraining runs that go through them in a second."""

import random

import torch

from elmokit.corpus import PreparedCorpus, PrepareSettings, prepare_corpus
from elmokit.model import BiLM, BiLMConfig, CharCNNConfig
from elmokit.pretraining.bilm.bilm_job import BiLMJob
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.bilm.softmax_training import SoftmaxTable
from elmokit.text import TokenizerSpec
from elmokit.training import Budget, Loop, Plan, Schedule

SETTINGS = PrepareSettings(tokenizer=TokenizerSpec(name="whitespace"), split_sentences=False, min_count=1)

RECIPE_TEXT = """
batch = 4
unroll = 5
negatives = 8
learning_rate = 0.01
[model]
cell_dim = 16
projection_dim = 8
[model.encoder]
filters = [[1, 8], [2, 8]]
embedding_dim = 4
max_characters = 12
"""


def prepare(folder, lines, heldout=()) -> PreparedCorpus:
    """A corpus of these lines, one sentence each."""
    folder.mkdir(exist_ok=True)
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = SETTINGS
    if heldout:
        (folder / "heldout.txt").write_text("\n".join(heldout) + "\n", encoding="utf-8")
        settings = PrepareSettings(
            tokenizer=TokenizerSpec(name="whitespace"),
            split_sentences=False,
            min_count=1,
            heldout=[folder / "heldout.txt"],
        )
    return prepare_corpus([folder / "text.txt"], folder / "corpus", settings, workers=1)


def sentences(number, seed=0):
    """Sentences with a grammar of their own, so that there is something to learn."""
    choose = random.Random(seed).choice
    things, verbs = ["cat", "dog", "bank", "river", "spring"], ["sees", "knows", "follows"]
    adjectives = ["old", "young", "green"]
    return [
        f"the {choose(adjectives)} {choose(things)} {choose(verbs)} a {choose(things)} ."
        for _ in range(number)
    ]


CONFIG = BiLMConfig(
    encoder=CharCNNConfig(filters=((1, 8), (2, 8)), embedding_dim=4, max_characters=12),
    cell_dim=16,
    projection_dim=8,
    num_layers=2,
    cell_clip=3.0,
    projection_clip=3.0,
    skip_connections=True,
)
RECIPE = Recipe(model=CONFIG, batch=4, unroll=5, negatives=8, learning_rate=0.01, warmup=5)


def make_job(corpus, recipe=RECIPE):
    random = torch.Generator().manual_seed(recipe.seed)
    model = BiLM(recipe.model)
    model.reset_parameters(random)
    table = SoftmaxTable(len(corpus.vocabulary), recipe.model.projection_dim)
    table.start(corpus.counts, random)
    return BiLMJob(model, table, corpus, recipe)


def make_loop(corpus, folder, recipe=RECIPE, steps=40, epochs=None, say=lambda _: None):
    folder.mkdir(exist_ok=True)
    budget = Budget(epochs=epochs) if epochs else Budget(tokens=steps * recipe.batch * recipe.unroll)
    schedule = Schedule(peak=recipe.learning_rate, warmup=recipe.warmup, decay=recipe.decay)
    plan = Plan(budget=budget, schedule=schedule, exploded=2.0)
    settings = recipe.to_dict() | {"corpus": corpus.fingerprint}
    return Loop(make_job(corpus, recipe), folder, plan, settings=settings, say=say)
