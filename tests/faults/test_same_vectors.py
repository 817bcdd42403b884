"""A sentence's vectors depend on the sentence alone: not on batch, order, threads, workers or earlier calls.

ELMOKIT_CASES=10000 tries that many cases and prints the largest difference in float32.
"""

import os
from functools import cache

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import elmokit
from elmokit.base import can_fork
from elmokit.embed import Embedder, embed_file
from elmokit.vectors import read_vectors
from tests.tiny import wide_bundle

CASES = int(os.environ.get("ELMOKIT_CASES", "25"))
FLOAT32 = 1e-5  # where other batches may add numbers in another order; int8 is equal to the bit
MODELS = ("wide", "en") if CASES > 100 else ("wide",)
largest = {"float32": 0.0, "int8": 0.0}

tokens = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=60)
sentence = st.lists(st.sampled_from(["the", "bank", "of", "a", "river", "né", "中"]) | tokens, max_size=40)


@cache
def embedder(model, precision, batch_tokens):
    source = elmokit.load_model("en") if model == "en" else wide_bundle()
    return Embedder(source, precision=precision, batch_tokens=batch_tokens)


@cache
def alone(model, precision):
    """An embedder that has seen nothing but single sentences."""
    return Embedder(
        elmokit.load_model("en") if model == "en" else wide_bundle(), precision=precision, batch_tokens=1
    )


def embed(way, batch, folder):
    elmo = embedder(way["model"], way["precision"], way["batch_tokens"])
    if way["workers"] is None:
        return [one.layers for one in elmo.stream(batch)]
    lines = [" ".join(one) for one in batch]
    embed_file(elmo, lines, folder / "v.npz", tokens=True, workers=way["workers"], overwrite=True)
    with read_vectors(folder / "v.npz") as found:
        return [one.layers for one in found]


ways = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "precision": st.sampled_from(list(largest)),
        "batch_tokens": st.sampled_from([1, 30, 200, 4096]),
        "threads": st.sampled_from([1, 2]),
        "workers": st.sampled_from([None] * 15 + [2 if can_fork() else None]),
    }
)


@given(st.lists(sentence, min_size=1, max_size=12), ways, st.randoms(use_true_random=False))
@settings(max_examples=CASES)
def test_the_same_sentence_has_the_same_vectors(tmp_path, batch, way, chance):
    before = torch.get_num_threads()
    torch.set_num_threads(way["threads"])
    try:
        shuffled = chance.sample(batch, len(batch))
        found = embed(way, shuffled, tmp_path)
        torch.set_num_threads(1)
        one = chance.randrange(len(batch))
        expected = next(iter(alone(way["model"], way["precision"]).stream([shuffled[one]]))).layers
    finally:
        torch.set_num_threads(before)
    difference = float(np.abs(found[one] - expected).max(initial=0))
    largest[way["precision"]] = max(largest[way["precision"]], difference)
    assert difference <= (FLOAT32 if way["precision"] == "float32" else 0)


def test_the_largest_difference_is_told(capsys):
    with capsys.disabled():
        if CASES > 100:
            print(f"\n{CASES} cases, largest differences {largest}")  # noqa: T201
