"""Windows: every place of the text once a pass, in both directions."""

import itertools
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.corpus import prepare_corpus
from elmokit.errors import DataError
from elmokit.pretraining.bilm.lowercase import LowerCase
from elmokit.pretraining.bilm.windows import Windows
from tests.small_runs import prepare


def shard(sentences):
    tokens = np.concatenate([[0, *sentence, 1] for sentence in sentences]).astype(np.int32)
    return SimpleNamespace(tokens=tokens, starts=np.cumsum([0] + [len(s) + 2 for s in sentences]))


def read(windows, step, rows=slice(None)):
    window = windows(step, rows)
    return window.types[window.inputs], window.targets, window.starts


def test_both_directions_of_two_sentences():
    windows = Windows([shard([[10, 11], [12]])], rows=1, steps=5, order="document", seed=0)
    windows._begin(0)
    windows._shift = 0
    inputs, targets, starts = read(windows, 0)
    assert inputs[0, :, 0].tolist() == [0, 10, 11, 0, 12]
    assert targets[0, :, 0].tolist() == [10, 11, 1, 12, 1]
    assert inputs[1, :, 0].tolist() == [1, 11, 10, 1, 12]
    assert targets[1, :, 0].tolist() == [11, 10, 0, 12, 0]
    assert starts[:, 0].tolist() == [True, False, False, True, False]


def test_both_directions_of_joined_sentences():
    """Of three sentences two are joined: the boundary between them is gone, in both directions."""
    windows = Windows([shard([[10, 11], [12], [13]])], rows=1, steps=6, order="document", seed=0, join=0.5)
    windows._begin(0)
    windows._shift = 0
    inputs, targets, starts = (part[..., 0].tolist() for part in read(windows, 0))
    second_alone = [0, 10, 11, 0, 12, 13]
    if inputs[0] == second_alone:
        assert targets[0] == [10, 11, 1, 12, 13, 1]
        assert inputs[1] == [1, 11, 10, 1, 13, 12]
        assert targets[1] == [11, 10, 0, 13, 12, 0]
        assert starts == [True, False, False, True, False, False]
    else:
        assert inputs[0] == [0, 10, 11, 12, 0, 13]
        assert targets[0] == [10, 11, 12, 1, 13, 1]
        assert inputs[1] == [1, 12, 11, 10, 1, 13]
        assert targets[1] == [12, 11, 10, 0, 13, 0]
        assert starts == [True, False, False, False, True, False]


texts = st.lists(st.lists(st.integers(3, 40), min_size=1, max_size=9), min_size=3, max_size=30)


@settings(max_examples=60, deadline=None)
@given(texts, st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), st.integers(0, 3))
def test_joined_texts_read_every_word_in_its_order(text, join, seed):
    windows = Windows(
        [shard(text[:2]), shard(text[2:])], rows=1, steps=1, order="document", seed=seed, join=join
    )
    steps = [read(windows, step) for step in range(windows.per_pass)]
    joined = round(join * (len(text) - 1))
    assert windows.per_pass == sum(map(len, text)) + len(text) - joined
    assert sum(int(starts[0, 0]) for _, _, starts in steps) in (len(text) - joined, len(text) - joined + 1)
    forward = [int(inputs[0, 0, 0]) for inputs, _, _ in steps]
    turn = windows.per_pass - windows._shift  # the pass begins somewhere
    words = [token for token in forward[turn:] + forward[:turn] if token > 1]
    assert words == list(itertools.chain.from_iterable(text))
    pairs = Counter((int(i[0, 0, 0]), int(t[0, 0, 0])) for i, t, _ in steps)
    mirrored = Counter((int(t[1, 0, 0]), int(i[1, 0, 0])) for i, t, _ in steps)
    assert pairs == mirrored


@settings(max_examples=60, deadline=None)
@given(
    texts, st.integers(1, 4), st.integers(1, 5), st.sampled_from(["document", "sentence"]), st.integers(0, 3)
)
def test_a_pass_reads_each_place_at_most_once_and_leaves_out_less_than_a_batch(
    text, rows, steps, order, seed
):
    try:
        windows = Windows([shard(text)], rows=rows, steps=steps, order=order, seed=seed)
    except DataError:
        assert sum(len(s) + 1 for s in text) < rows * steps
        return
    pairs = [Counter(), Counter()]
    for step in range(windows.per_pass):
        inputs, targets, _ = read(windows, step)
        for direction in range(2):
            pairs[direction].update(
                zip(inputs[direction].ravel().tolist(), targets[direction].ravel().tolist(), strict=True)
            )
    everything = [Counter(), Counter()]
    for sentence in text:
        whole = [0, *sentence, 1]
        everything[0].update(itertools.pairwise(whole))
        everything[1].update(zip(whole[:0:-1], whole[-2::-1], strict=True))
    for found, expected in zip(pairs, everything, strict=True):
        assert not found - expected
        assert (expected - found).total() < rows * steps


@settings(max_examples=40, deadline=None)
@given(texts, st.sampled_from(["document", "sentence"]), st.integers(1, 5))
def test_shards_rows_and_order_of_asking_change_nothing(text, order, cut):
    cut = min(cut, len(text) - 1)
    settings = {"rows": 2, "steps": 2, "order": order, "seed": 1}
    whole = Windows([shard(text)], **settings)
    parted = Windows([shard(text[:cut]), shard(text[cut:])], **settings)
    for step in (whole.per_pass, 0, 1):
        for a, b in zip(read(whole, step), read(parted, step), strict=True):
            np.testing.assert_array_equal(a, b)
        halves = [read(whole, step, slice(row, row + 1)) for row in range(2)]
        for number, part in enumerate(read(whole, step)):
            np.testing.assert_array_equal(np.concatenate([half[number] for half in halves], axis=-1), part)


def test_rows_read_on_in_document_order():
    text = [[i, i + 1, i + 2] for i in range(3, 60, 3)]
    windows = Windows([shard(text)], rows=2, steps=3, order="document", seed=4)
    targets = np.concatenate([windows(step).targets[0] for step in range(windows.per_pass)])
    words = [t for t in targets[:, 0].tolist() if t > 1]
    assert all(b == a + 1 or b < a for a, b in itertools.pairwise(words))


def test_passes_differ():
    windows = Windows([shard([[i] for i in range(3, 30)])], rows=1, steps=2, order="sentence", seed=0)
    first = [windows(step).targets.tolist() for step in range(windows.per_pass)]
    second = [windows(windows.per_pass + step).targets.tolist() for step in range(windows.per_pass)]
    assert first != second


def test_a_corpus_smaller_than_a_batch_is_refused():
    with pytest.raises(DataError, match=r"2 words and sentence ends.*4 rows × 5 = 20; use more text"):
        Windows([shard([[3]])], rows=4, steps=5, order="document", seed=0)


def test_sentences_read_in_lower_case_predict_the_words_as_they_stand():
    text = [[10, 11, 12], [11, 13], [12, 10]] * 20
    lower = np.arange(14)
    lower[[10, 12]] = 13, 14  # 14: a spelling that the corpus does not have
    settings = {"rows": 2, "steps": 5, "order": "document", "seed": 3}
    plain, mixed = (
        Windows([shard(text)], **settings, lowercase=share, lowercase_ids=lower) for share in (0.0, 0.5)
    )
    lowered = 0
    for step in range(plain.per_pass):
        inputs, targets, _ = read(plain, step)
        read_in, said, _ = read(mixed, step)
        np.testing.assert_array_equal(said, targets)
        assert ((read_in == inputs) | (read_in == lower[inputs])).all()
        lowered += (read_in != inputs).sum()
    capitals = sum(word in (10, 12) for sentence in text for word in sentence)
    assert 0.25 < lowered / (2 * capitals) < 0.75


def test_lower_case_of_a_corpus(tmp_path):
    corpus = prepare(tmp_path, ["The cat sat", "the CAT saw Rome", "<S> is no word"])
    lower = LowerCase(corpus)
    plain = corpus.spellings(np.arange(corpus.num_types))
    for number, spelling in enumerate(plain):
        expected = spelling if number < 3 else spelling.lower()
        assert lower.spellings(lower.ids[[number]]) == [expected]
    both = np.unique(np.concatenate([np.arange(corpus.num_types), lower.ids]))
    assert lower.spellings(both)[: len(plain)] == plain


def test_lower_case_where_a_given_vocabulary_has_a_word_twice(tmp_path):
    corpus = prepare(tmp_path, ["Rome saw the dog", "the dog saw Rome"])
    tokens = [*corpus.vocabulary.tokens, corpus.vocabulary.tokens[-1], "Oslo"]
    (tmp_path / "twice.txt").write_text("\n".join(tokens))
    with_it = replace(corpus.settings, vocabulary=tmp_path / "twice.txt")
    twice = prepare_corpus([tmp_path / "text.txt"], tmp_path / "twice", with_it, workers=1)
    lower = LowerCase(twice)
    for number, spelling in enumerate(twice.spellings(np.arange(twice.num_types))):
        expected = spelling if number < 3 else spelling.lower()
        assert lower.spellings(lower.ids[[number]]) == [expected]
