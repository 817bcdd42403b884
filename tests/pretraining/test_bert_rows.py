"""The rows that a BERT is trained on: full, within documents, masked and paired as Devlin et al. say."""

import numpy as np
import pytest

from elmokit.errors import ConfigError, DataError
from elmokit.pretraining.bert.bert_recipe import BERT_SIZES, BertRecipe
from elmokit.pretraining.bert.packed_rows import PackedRows
from elmokit.pretraining.bert.word_pieces import CLS, MASK, SEP, PieceText

V = 1000
RECIPE = BertRecipe(model=BERT_SIZES["tiny"], batch=16, length=64)


def make_text(documents=60, seed=0):
    """Documents of up to 40 sentences of up to 30 pieces; a piece tells its document: V > document * 10."""
    random = np.random.default_rng(seed)
    pieces, sentences, firsts = [], [0], [0]
    for document in range(documents):
        for _ in range(random.integers(2, 40)):
            pieces.append(5 + 10 * document + random.integers(0, 10, random.integers(1, 30)))
            sentences.append(sentences[-1] + len(pieces[-1]))
        firsts.append(len(pieces))
    return PieceText(np.concatenate(pieces).astype(np.uint16), np.array(sentences), np.array(firsts))


TEXT = make_text()
CONTINUES = np.random.default_rng(1).random(V) < 0.4


def batches(count=None, **changes):
    rows = PackedRows(TEXT, BertRecipe(**{**RECIPE.__dict__, **changes}), CONTINUES)
    return [rows(step) for step in range(count or rows.per_pass)]


def restored(batch):
    """The pieces as they were before masking."""
    ids = batch.ids.copy()
    ids.flat[batch.masked] = batch.targets
    return ids


def sequences(batch):
    """Yield the pieces, parts and positions of each sequence, unmasked, with its label."""
    ids, labels = restored(batch), dict(zip(batch.firsts.tolist(), batch.labels.tolist(), strict=True))
    for row in range(len(ids)):
        for number in range(batch.sequences[row].max() + 1):
            at = np.flatnonzero(batch.sequences[row] == number)
            label = labels.get(row * ids.shape[1] + int(at[0]))
            yield ids[row, at], batch.parts[row, at], batch.positions[row, at], label


def test_rows_are_full():
    found = batches()
    used = sum(int((batch.sequences >= 0).sum()) for batch in found)
    assert used / sum(batch.ids.size for batch in found) > 0.98


def test_a_sequence_is_one_or_two_parts_with_marks():
    for ids, parts, positions, label in (one for batch in batches(4) for one in sequences(batch)):
        assert ids[0] == CLS
        assert ids[-1] == SEP
        assert positions.tolist() == list(range(len(ids)))
        ends = np.flatnonzero(ids == SEP)
        assert len(ends) == (1 if label is None else 2)
        assert parts.tolist() == [0] * (ends[0] + 1) + [1] * (len(ids) - ends[0] - 1)


def test_half_of_the_second_parts_follow_and_the_others_are_of_another_document():
    labels = []
    for ids, parts, _, label in (one for batch in batches() for one in sequences(batch)):
        a, b = ({(piece - 5) // 10 for piece in ids[parts == part] if piece > SEP} for part in (0, 1))
        assert len(a) == 1
        if label is not None:
            assert len(b) == 1
            assert (a == b) == (label == 0)
            labels.append(label)
    assert len(labels) > 200
    assert abs(np.mean(labels) - 0.5) < 4 * 0.5 / len(labels) ** 0.5


def test_without_next_sentences_there_is_one_part():
    for batch in batches(3, nsp=False):
        assert not len(batch.labels)
        assert not batch.parts.any()


@pytest.mark.parametrize("whole_words", [False, True])
def test_masking_statistics(whole_words):
    found = batches(whole_words=whole_words)
    own = sum(int((restored(batch) > MASK).sum()) for batch in found)
    masked = np.concatenate([batch.masked + n * batch.ids.size for n, batch in enumerate(found)])
    assert len(np.unique(masked)) == len(masked)
    assert len(masked) / own == pytest.approx(0.15, abs=0.01 if whole_words else 0.003)
    shown = np.concatenate([batch.ids.ravel()[batch.masked] for batch in found])
    targets = np.concatenate([batch.targets for batch in found])
    assert targets.min() > MASK
    hidden, same = (shown == MASK).mean(), (shown == targets).mean()
    error = 4 * 0.5 / len(shown) ** 0.5
    assert hidden == pytest.approx(0.8, abs=error)
    assert same == pytest.approx(0.1, abs=error)
    assert 1 - hidden - same == pytest.approx(0.1, abs=error)


def test_whole_words_are_masked_together():
    for batch in batches(4, whole_words=True):
        ids, chosen = restored(batch).ravel(), np.zeros(batch.ids.size, bool)
        chosen[batch.masked] = True
        for place in np.flatnonzero(CONTINUES[ids] & (ids > MASK)):
            if ids[place - 1] > MASK:
                assert chosen[place] == chosen[place - 1]


def test_a_step_follows_from_its_number_and_processes_share_its_rows():
    rows, again = (PackedRows(TEXT, RECIPE, CONTINUES) for _ in range(2))
    last = rows.per_pass + 2
    for step in (0, last):
        rows(step)
    whole, half = again(last), again(last, slice(8, 16))
    np.testing.assert_array_equal(rows(last).ids, whole.ids)
    np.testing.assert_array_equal(half.ids, whole.ids[8:])
    np.testing.assert_array_equal(half.masked, whole.rows(8, 16).masked)
    np.testing.assert_array_equal(half.labels, whole.rows(8, 16).labels)
    assert not np.array_equal(again(2).ids, whole.ids)


def test_every_part_of_the_text_is_read():
    seen = {
        tuple(ids[1:5])
        for passes in range(2)
        for batch in batches(nsp=False, seed=passes)
        for ids, *_ in sequences(batch)
    }
    assert len({document for one in seen for document in [(one[0] - 5) // 10]}) == 60


def test_too_little_text_and_no_pairs():
    small = make_text(1)
    with pytest.raises(DataError, match=r"the corpus has \d+ pieces, one batch takes 1000 rows × 64 = 64000"):
        PackedRows(small, BertRecipe(batch=1000, length=64), CONTINUES)
    with pytest.raises(ConfigError, match="needs several documents of two sentences or more"):
        PackedRows(small, BertRecipe(batch=1, length=64), CONTINUES)
