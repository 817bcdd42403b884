"""Models that are no language model, and parts that do not fit, each with its message."""

import pytest
import torch

from elmokit import ConfigError, DataError, ModelFileError
from elmokit.language_model import LanguageModel
from elmokit.model import Softmax
from elmokit.text import TokenizerSpec, Vocabulary
from tests.tiny import WORDS, tiny_model, write_folder

BLANKS = TokenizerSpec(name="whitespace")


def test_a_model_without_softmax(tmp_path):
    folder = write_folder(tmp_path, vocabulary=WORDS)
    with pytest.raises(ModelFileError) as caught:
        LanguageModel.load(folder)
    assert "has no softmax and is therefore no language model" in str(caught.value)
    assert "fit a new softmax by pretraining that starts from this model" in str(caught.value)


def test_a_softmax_without_vocabulary(tmp_path):
    folder = write_folder(tmp_path, softmax=True)
    with pytest.raises(ModelFileError, match="the softmax has 10 rows, but there is no vocabulary"):
        LanguageModel.load(folder)


@pytest.mark.parametrize("shape", [(9, 3), (10, 4)])
def test_a_softmax_of_another_model(shape):
    softmax = Softmax(torch.zeros(shape), torch.zeros(shape[0]))
    with pytest.raises(
        ConfigError, match=rf"the softmax is \[{shape[0]}, {shape[1]}\], .* ask for \[10, 3\]"
    ):
        LanguageModel(tiny_model(), softmax, Vocabulary(WORDS), BLANKS)


def test_a_vocabulary_without_its_specials():
    softmax = Softmax(torch.zeros(2, 3), torch.zeros(2))
    with pytest.raises(DataError, match="has no </S>, <UNK>"):
        LanguageModel(tiny_model(), softmax, Vocabulary(["<S>", "the"]), BLANKS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda lm: lm.perplexity("the cat"), "expected a list of texts, found one string 'the cat'"),
        (lambda lm: lm.score(5), "expected a string or a list of tokens, found int 5"),
        (lambda lm: lm.score(["a", 5]), "token 1 is of type int, expected str"),
        (lambda lm: lm.fill(b"x"), "expected a string or a list of tokens, found bytes"),
    ],
)
def test_what_is_no_text(random_lm, call, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        call(random_lm)


def test_files_that_do_not_say_their_tokenizer_are_warned_of_once(tmp_path, caplog):
    folder = write_folder(tmp_path, vocabulary=WORDS, softmax=True)
    lm = LanguageModel.load(folder)
    lm.score(["the", "cat"])
    assert not caplog.records
    lm.perplexity(["the cat", "sat"])
    (record,) = caplog.records
    assert "do not say its language" in record.getMessage()
    LanguageModel.load(folder, tokenizer="rules:en").score("the cat")
    assert len(caplog.records) == 1
