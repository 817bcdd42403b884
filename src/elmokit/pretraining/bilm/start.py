"""The model and its softmax as training starts: drawn at random, or made from a trained model."""

from dataclasses import replace

import torch

from elmokit.corpus import PreparedCorpus
from elmokit.errors import ConfigError
from elmokit.formats import ModelBundle
from elmokit.model import BiLM, WordConfig
from elmokit.pretraining.bilm.growth import grow_model, grow_softmax, words_of_both
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.bilm.softmax_training import SoftmaxTable
from elmokit.text import SPECIAL_TOKENS, Vocabulary


def start_training(
    recipe: Recipe, corpus: PreparedCorpus, start: ModelBundle | None, *, grow: bool = False
) -> tuple[BiLM, SoftmaxTable, Recipe]:
    """Return a model, its softmax, and the recipe that fits them.

    Args:
        recipe: How the model is trained.
        corpus: The text.
        start: A model to train further.
        grow: Whether it takes the recipe's shape and the vocabulary of the text, rather than keeping its own.

    Raises:
        ConfigError: The recipe does not fit the vocabulary, or the model cannot be trained further.
    """
    random = torch.Generator().manual_seed(recipe.seed)
    if start is not None and start.lexicon is not None:
        raise ConfigError(f"{start.source}: training a model of ELMoForManyLangs further is not possible")
    kinds = {recipe.model.layers} | ({start.model.config.layers} if start is not None else set())
    if grow and kinds != {"lstm"}:
        raise ConfigError(f"only an LSTM grows, found layers: {', '.join(sorted(kinds))}; leave out grow")
    if start is None or grow:
        if recipe.words:
            encoder = WordConfig(num_words=len(corpus.vocabulary))
            recipe = replace(recipe, model=replace(recipe.model, encoder=encoder))
        model = _new_model(recipe, corpus, random)
    else:
        model = start.model
        recipe = replace(recipe, model=model.config)
    if start is not None and grow:
        return *_grown(start, model, _new_softmax(recipe, corpus, random), corpus), recipe
    softmax = None if start is None or start.softmax is None else start.softmax.read()
    if softmax is None:
        table = _new_softmax(recipe, corpus, random)
    else:
        table = SoftmaxTable.of(softmax)
        if softmax.cutoffs:  # an adaptive softmax stays one, and a flat one flat
            recipe = replace(recipe, softmax="adaptive", cutoffs=softmax.cutoffs)
        elif recipe.softmax == "adaptive":
            recipe = replace(recipe, softmax="sampled")
    return model.requires_grad_(True), table, recipe


def _grown(
    start: ModelBundle, model: BiLM, table: SoftmaxTable, corpus: PreparedCorpus
) -> tuple[BiLM, SoftmaxTable]:
    """Give a new model and softmax what the model that it starts from knows."""
    kept = words_of_both(corpus.vocabulary, start.vocabulary or Vocabulary(()))
    grow_model(start.model, model, kept)
    if start.softmax is not None:
        grow_softmax(start.softmax.read(), table, kept)
    return model.requires_grad_(True), table


def _new_model(recipe: Recipe, corpus: PreparedCorpus, random: torch.Generator) -> BiLM:
    expected, words = recipe.model.encoder.vocabulary_size, len(corpus.vocabulary)
    if expected not in (None, words):
        raise ConfigError(
            f"the recipe's encoder has num_words = {expected}, the vocabulary has {words}; set "
            f"num_words = {words}, or prepare the text with max_vocabulary={expected}"
        )
    model = BiLM(recipe.model)
    model.reset_parameters(random)
    return model


def _new_softmax(recipe: Recipe, corpus: PreparedCorpus, random: torch.Generator) -> SoftmaxTable:
    words = len(corpus.vocabulary)
    cutoffs = recipe.cutoffs if recipe.softmax == "adaptive" else ()
    if cutoffs and cutoffs[-1] >= words:
        raise ConfigError(
            f"the cutoffs {list(cutoffs)} of the adaptive softmax lie beyond the vocabulary of {words} "
            'words; choose smaller ones, or softmax = "full"'
        )
    table = SoftmaxTable(words, recipe.model.projection_dim, cutoffs)
    table.start(corpus.counts if recipe.frequency_bias else None, random)
    return table


def bound_vocabulary(start: ModelBundle) -> Vocabulary | None:
    """Return the vocabulary of a model if rows of its weights are numbered by it.

    Raises:
        ConfigError: It does not begin with the special tokens in the usual order.
    """
    if start.softmax is None and start.model.config.encoder.vocabulary_size is None:
        return None
    vocabulary = start.vocabulary
    if vocabulary is not None and vocabulary.tokens[: len(SPECIAL_TOKENS)] != SPECIAL_TOKENS:
        raise ConfigError(
            f"the vocabulary of {start.source} begins with {', '.join(vocabulary.tokens[:3])}; only a model "
            f"whose vocabulary begins with {', '.join(SPECIAL_TOKENS)} can be trained further"
        )
    return vocabulary
