"""One step of training BERT against transformers' own loss, and what a model learns."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from elmokit.pretraining.bert.bert_job import BertJob
from elmokit.pretraining.bert.bert_recipe import BertRecipe, BertShape
from elmokit.pretraining.bert.packed_rows import PackedRows
from elmokit.pretraining.bert.word_pieces import PieceText, train_pieces, write_pieces
from tests.pretraining.test_bert_rows import CONTINUES, TEXT, V
from tests.small_runs import prepare, sentences

transformers = pytest.importorskip("transformers")

from elmokit.pretraining.bert.masked_network import MaskedNetwork, new_bert  # noqa: E402

SHAPE = BertShape(layers=2, hidden=16, heads=2, inner=32)
RECIPE = BertRecipe(model=SHAPE, batch=8, length=32, learning_rate=0.01, warmup=5)


def totals(batch):
    return [len(batch.masked), len(batch.labels)]


@pytest.mark.parametrize("nsp", [True, False])
def test_the_first_loss_is_that_of_guessing(nsp):
    recipe = replace(RECIPE, nsp=nsp)
    batch = PackedRows(TEXT, recipe, CONTINUES)(0)
    found = MaskedNetwork(new_bert(recipe, V)).step(batch, totals(batch), seeds=(0,))
    assert found.masked / len(batch.masked) == pytest.approx(math.log(V), abs=0.03)
    if nsp:
        assert found.next_sentence / len(batch.labels) == pytest.approx(math.log(2), abs=0.03)


def test_loss_and_gradients_are_those_of_transformers():
    """Each sequence is given to transformers by itself, which predicts at all places."""
    batch = PackedRows(TEXT, RECIPE, CONTINUES)(0)
    ours, theirs = (new_bert(RECIPE, V) for _ in range(2))
    found = MaskedNetwork(ours).step(batch, totals(batch), seeds=(0,))
    targets = np.full(batch.ids.size, -100)
    targets[batch.masked] = batch.targets
    labels = dict(zip(batch.firsts.tolist(), batch.labels.tolist(), strict=True))
    masked = related = torch.zeros(())
    for row in range(len(batch.ids)):
        for number in range(batch.sequences[row].max() + 1):
            at = np.flatnonzero(batch.sequences[row] == number)
            flat = torch.from_numpy(targets[row * batch.ids.shape[1] + at])
            out = theirs(
                torch.from_numpy(batch.ids[row, at])[None],
                token_type_ids=torch.from_numpy(batch.parts[row, at])[None],
            )
            cross = torch.nn.functional.cross_entropy
            masked = masked + cross(out.prediction_logits[0], flat, ignore_index=-100, reduction="sum")
            label = labels.get(row * batch.ids.shape[1] + int(at[0]))
            if label is not None:
                related = related + cross(out.seq_relationship_logits, torch.tensor([label]))
    assert found.masked == pytest.approx(float(masked.detach()), rel=1e-4)
    assert found.next_sentence == pytest.approx(float(related.detach()), rel=1e-4)
    (masked / len(batch.masked) + related / len(batch.labels)).backward()
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-3, atol=1e-6, msg=name)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_sequence_knows_nothing_of_its_neighbours(precision):
    batch = PackedRows(TEXT, RECIPE, CONTINUES)(0)
    row = next(row for row in range(len(batch.ids)) if batch.sequences[row].max() > 0)
    network = MaskedNetwork(new_bert(RECIPE, V).eval(), precision)
    other = batch.ids.copy()
    first = batch.sequences[row] == 0
    other[row, first] = np.random.default_rng(0).integers(5, V, first.sum())
    with torch.no_grad():
        before, after = (
            network.hidden(one).view(*batch.ids.shape, -1)[row] for one in (batch, replace(batch, ids=other))
        )
    assert torch.equal(before[~first], after[~first])
    assert not torch.equal(before[first], after[first])


def test_gradients_in_bfloat16_are_near_those_in_float32():
    batch = PackedRows(TEXT, RECIPE, CONTINUES)(0)
    grads = []
    for precision in ("float32", "bfloat16"):
        model = new_bert(RECIPE, V)
        MaskedNetwork(model, precision).step(batch, totals(batch), seeds=(0,))
        grads.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
    assert torch.cosine_similarity(*grads, dim=0) > 0.999


def test_two_hundred_sentences_are_learnt_by_heart(tmp_path):
    words = ["".join(letters) for letters in product("bcdfghjklm", "aeiou", "nprst", "aeio")]
    lines = [" ".join(words[5 * n : 5 * n + 5]) for n in range(200)]  # five words of its own each
    corpus = prepare(tmp_path, [f"\n{line}" if n % 5 == 0 else line for n, line in enumerate(lines)])
    tokenizer = train_pieces(corpus, 2000)
    write_pieces(corpus, tokenizer, tmp_path / "pieces")
    text, nothing = (PieceText.open(tmp_path / "pieces" / part) for part in ("train", "heldout"))
    shape = BertShape(layers=1, hidden=64, heads=4, inner=128)
    recipe = BertRecipe(model=shape, batch=24, length=32, masked=0.25, nsp=False)
    size = tokenizer.get_vocab_size()
    job = BertJob(new_bert(recipe, size), text, nothing, recipe, np.zeros(size, bool))
    steps = 240
    for step in range(steps):
        job.compute(step)
        job.update(0.02 * min(1, (step + 1) / 20, 3 * (steps - step) / steps))
    found = MaskedNetwork(job.model).measure(PackedRows(text, recipe, np.zeros(size, bool))(1000), "by heart")
    assert found.accuracy > 0.9


def test_the_vocabulary_holds_chinese_by_character_and_words_in_pieces(tmp_path):
    corpus = prepare(tmp_path, ["银行 提高 了 利率 。", "他 坐 在 河岸 上 。", *sentences(30)])
    tokenizer = train_pieces(corpus, 300)
    assert tokenizer.encode("银行 the cat").tokens == ["[CLS]", "银", "行", "the", "cat", "[SEP]"]
    assert tokenizer.encode("cats", add_special_tokens=False).tokens == ["cat", "##s"]
    write_pieces(corpus, tokenizer, tmp_path / "pieces")
    text = PieceText.open(tmp_path / "pieces" / "train")
    spoken = [tokenizer.id_to_token(piece) for piece in text.pieces[: text.sentences[1]]]
    assert spoken == ["银", "行", "提", "高", "了", "利", "率", "。"]
    assert len(text.sentences) == 33
    assert text.documents[-1] == 32
