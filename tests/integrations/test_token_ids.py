import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit import ConfigError, Embedder
from elmokit.compat.allennlp import batch_to_ids
from elmokit.integrations.token_ids import TokenIds, padded_layers, sentence_marks
from elmokit.text import Vocabulary
from tests.tiny import tiny_bundle, tiny_config, tiny_model

SENTENCES = [["the", "cat", "sat"], [], ["bank"], ["the", "né", "中", "x" * 60, "the"]]


def ids_of(bundle):
    return TokenIds(bundle.model.config, bundle.vocabulary, bundle.lexicon)


def run(bundle, batch, mask=None):
    marks = json.loads(json.dumps(sentence_marks(bundle, ids_of(bundle))))
    ids = {name: rows for name, rows in batch.items() if name != "attention_mask"}
    with torch.no_grad():
        return padded_layers(bundle.model, marks, ids, mask)


def test_numbers_are_the_embedders(any_bundle):
    batch = ids_of(any_bundle).batch(SENTENCES)
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0, 0], [0] * 5, [1, 0, 0, 0, 0], [1] * 5]
    layers = run(any_bundle, batch)
    assert layers.shape == (3, 4, 5, 6)
    torch.testing.assert_close(layers, run(any_bundle, batch, batch["attention_mask"]))
    for row, sentence in enumerate(Embedder(any_bundle).embed(SENTENCES)):
        torch.testing.assert_close(layers[:, row, : len(sentence)], sentence.to_torch(), atol=1e-5, rtol=0)
        assert not layers[:, row, len(sentence) :].any()


def test_padding_may_stand_anywhere(any_bundle):
    batch = ids_of(any_bundle).batch([["the", "cat"]])
    straight = run(any_bundle, batch)
    spread = {name: torch.zeros(1, 5, *rows.shape[2:], dtype=torch.long) for name, rows in batch.items()}
    for name, rows in batch.items():
        spread[name][:, [1, 3]] = rows
    torch.testing.assert_close(run(any_bundle, spread)[:, :, [1, 3]], straight)
    torch.testing.assert_close(run(any_bundle, spread, spread["attention_mask"])[:, :, [1, 3]], straight)


@given(st.lists(st.lists(st.text(max_size=4), max_size=4), min_size=1, max_size=4))
def test_any_tokens(sentences):
    bundle = tiny_bundle()
    layers = run(bundle, ids_of(bundle).batch(sentences))
    for row, sentence in enumerate(Embedder(bundle).embed(sentences)):
        torch.testing.assert_close(layers[:, row, : len(sentence)], sentence.to_torch(), atol=1e-5, rtol=0)


def test_allennlps_ids_are_ours():
    bundle = tiny_bundle()
    batch = ids_of(bundle).batch(SENTENCES)
    assert torch.equal(batch["input_ids"], batch_to_ids(SENTENCES))


def test_gradients_reach_all_weights():
    bundle = tiny_bundle()
    marks = sentence_marks(bundle, ids_of(bundle))
    padded_layers(bundle.model, marks, ids_of(bundle).batch(SENTENCES)).sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in bundle.model.parameters())


def test_ids_for_another_model(tmp_path):
    bundle = tiny_bundle()
    with pytest.raises(ConfigError, match=r"reads 50 ids a token, found a batch of shape \[1, 2, 49\]"):
        run(bundle, {"input_ids": torch.ones(1, 2, 49, dtype=torch.long)})
    with pytest.raises(ConfigError, match=r"found a batch of shape \[2, 50\]"):
        run(bundle, {"input_ids": torch.ones(2, 50, dtype=torch.long)})
    with pytest.raises(ConfigError, match="needs input_ids too"):
        run(bundle, {})


def test_a_model_of_words_without_unknown():
    """Its boundaries have ids, although unknown words have none."""
    words = ["<S>", "</S>", *(f"w{number}" for number in range(8))]
    bundle = replace(
        tiny_bundle(tiny_model(tiny_config(words=10)), vocabulary=True), vocabulary=Vocabulary(words)
    )
    assert sentence_marks(bundle, ids_of(bundle)) == {"input_ids": [1, 2]}
