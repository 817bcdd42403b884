"""What training must be able to learn, and what it must not."""

import itertools
import math
import random

import numpy as np
import pytest

from elmokit.pretraining.bilm.network import TrainingNetwork
from elmokit.pretraining.bilm.recipe import SIZES, Recipe
from elmokit.pretraining.bilm.windows import Window, Windows
from tests.small_runs import CONFIG, RECIPE, make_loop, prepare

NUM_WORDS, LENGTH = 20, 6


def random_text(number, seed):
    """Sentences of one length, their words independent and equally likely."""
    choose = random.Random(seed).choice
    words = [f"w{chr(97 + i)}" for i in range(NUM_WORDS)]
    return [" ".join(choose(words) for _ in range(LENGTH)) for _ in range(number)]


def test_two_hundred_sentences_are_learnt_by_heart(tmp_path):
    choose = random.Random(0).choice
    words = ["".join(letters) for letters in itertools.product("bdgklmnprst", "aeiou", "nrstl")]
    text = [" ".join(choose(words) for _ in range(4)) for _ in range(200)]
    corpus = prepare(tmp_path / "text", text, heldout=text)
    changes = {"dropout": 0.0, "reset": 1.0, "learning_rate": 0.008, "batch": 20, "unroll": 10}
    recipe = Recipe(model=SIZES["tiny"], negatives=150, warmup=20, **changes)
    loop = make_loop(corpus, tmp_path / "run", recipe, epochs=60)
    loop.run()
    found = loop.job.language_model().perplexity(sentence.split() for sentence in text)
    assert found.forward < 5
    assert found.backward < 5


class LeakyWindows(Windows):
    """The classic mistake: the input is the target."""

    def __call__(self, step, rows=slice(None)):
        window = super().__call__(step, rows)
        types, inputs = np.unique(window.targets, return_inverse=True)
        return Window(types, inputs.reshape(window.targets.shape), window.targets, window.starts)


def held_out_loss(loop, windows_class):
    """Of the training objective, on text that was not trained on."""
    job = loop.job
    job._windows = windows_class(job.corpus.train, rows=4, steps=7, order="document", seed=job.recipe.seed)
    loop.run()
    to_inputs = CONFIG.encoder.inputs(job.corpus.vocabulary, None)
    network = TrainingNetwork(
        job.model, job.table, job.recipe, lambda types: to_inputs(job.corpus.spellings(types))
    )
    windows = windows_class(job.corpus.heldout, rows=4, steps=7, order="document", seed=1)
    state, losses = job.model.start(4), []
    for step in range(windows.per_pass):
        result = network.step(windows(step), state, step)
        state = result.state
        losses.append((result.forward + result.backward) / 2)
    return np.mean(losses)


@pytest.mark.parametrize(("windows", "leaks"), [(Windows, False), (LeakyWindows, True)])
def test_random_text_cannot_be_predicted_unless_the_target_leaks(tmp_path, windows, leaks):
    corpus = prepare(tmp_path / "text", random_text(300, 0), heldout=random_text(300, 1))
    changes = {"softmax": "full", "dropout": 0.0, "reset": 1.0, "learning_rate": 0.02, "unroll": 7}
    loop = make_loop(corpus, tmp_path / "run", Recipe(**{**RECIPE.__dict__, **changes}), steps=280)
    loss = held_out_loss(loop, windows)
    entropy = LENGTH / (LENGTH + 1) * math.log(NUM_WORDS)  # of a place: where a sentence ends is known
    assert (loss < 0.9 * entropy) == leaks
    if not leaks:
        assert loss < 1.3 * entropy  # it has learnt what there is to learn
