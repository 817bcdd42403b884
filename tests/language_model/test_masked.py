"""Gaps and scores of a masked model, against transformers' own numbers."""

import json
import math

import pytest
import torch
from click.testing import CliRunner

from elmokit.cli import main
from elmokit.errors import ConfigError, DataError
from elmokit.language_model import MaskedLanguageModel, load_any_lm

transformers = pytest.importorskip("transformers")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "riv", "##er", "##bank", "sleeps", "."]
SENTENCE = ["the", "riverbank", "sleeps"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=14).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=14, initializer_range=1.0,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def lm(folder):
    return load_any_lm(f"bert:{folder}", tokenizer="rules:en")


@pytest.fixture(scope="module")
def plain(folder):
    return transformers.BertForMaskedLM.from_pretrained(folder).eval()


def log_probability(model, ids, place, piece):
    with torch.no_grad():
        return float(model(torch.tensor([ids])).logits[0, place].log_softmax(-1)[piece])


def test_a_word_is_scored_with_its_later_pieces_hidden(lm, plain):
    # [CLS] the riv ##er ##bank sleeps [SEP]
    found = lm.score(SENTENCE)
    assert isinstance(lm, MaskedLanguageModel)
    parts = [
        log_probability(plain, [2, 5, 4, 4, 4, 10, 3], 2, 7),
        log_probability(plain, [2, 5, 7, 4, 4, 10, 3], 3, 8),
        log_probability(plain, [2, 5, 7, 8, 4, 10, 3], 4, 9),
    ]
    assert found.words[1] == pytest.approx(sum(parts), abs=1e-4)
    assert found.words[0] == pytest.approx(log_probability(plain, [2, 4, 7, 8, 9, 10, 3], 1, 5), abs=1e-4)
    assert found.total == pytest.approx(sum(found.words))
    assert found.perplexity == pytest.approx(math.exp(-found.total / 3))
    assert found.most_surprising(1) == [found.words.index(min(found.words))]


def test_scores_do_not_depend_on_the_batch(lm, folder):
    texts = ["the cat sleeps .", SENTENCE, "", ["cat"]]
    alone = [lm.score(text).words for text in texts]
    small = MaskedLanguageModel(f"bert:{folder}", tokenizer="rules:en", batch_tokens=10)
    for together, expected in zip(small.stream(texts), alone, strict=True):
        assert together.words == pytest.approx(expected, abs=1e-4)
    assert alone[2] == ()


def test_gaps_are_filled_with_whole_words_the_surest_first(lm, plain):
    (gap,) = lm.fill("the [MASK] sleeps", top=20)
    assert [one.word for one in gap] == sorted((w.word for w in gap), key=lambda w: -dict_of(gap)[w])
    assert {one.word for one in gap} == {"the", "cat", "riv", "sleeps", "."}
    assert sum(one.probability for one in gap) == pytest.approx(1.0, abs=1e-5)
    chances = {w: log_probability(plain, [2, 5, 4, 10, 3], 2, WORDS.index(w)) for w in dict_of(gap)}
    assert gap[0].word == max(chances, key=chances.get)
    assert [len(gap) for gap in lm.fill(["[MASK]", "[MASK]", "."], top=1)] == [1, 1]


def dict_of(gap):
    return {one.word: one.probability for one in gap}


def test_what_is_refused(lm):
    with pytest.raises(ConfigError, match=r"expected \[MASK\] in the sentence, found none"):
        lm.fill("the cat")
    with pytest.raises(DataError, match="a sentence has 22 pieces, the model reads 14"):
        lm.score(["cat"] * 20)


def test_the_commands(folder):
    model = ["-m", f"bert:{folder}", "--tokenizer", "rules:en"]
    found = CliRunner().invoke(main, ["fill", *model, "-t", "the [MASK] sleeps", "--top", "2", "--json"])
    assert found.exit_code == 0, found.output
    assert len(json.loads(found.output)["gaps"][0]) == 2
    shown = CliRunner().invoke(main, ["fill", *model, "-t", "the [MASK] sleeps"])
    assert "from the left" not in shown.output
    scored = CliRunner().invoke(main, ["score", *model, "-t", "the riverbank sleeps"])
    assert "pseudo-log-likelihood" in scored.output
    refused = CliRunner().invoke(main, ["perplexity", *model, "-t", "the cat"])
    assert "is a BERT, and this needs an ELMo" in refused.output
    many = CliRunner().invoke(main, ["score", *model, "--json", "-t", "the cat", "-t", "cat the"])
    assert [json.loads(line)["tokens"] for line in many.output.splitlines()] == [
        ["the", "cat"],
        ["cat", "the"],
    ]
