import pytest
import torch

from elmokit.language_model import LanguageModel
from elmokit.model import Softmax
from elmokit.text import TokenizerSpec, Vocabulary
from tests.tiny import WORDS, tiny_config, tiny_model

BLANKS = TokenizerSpec(name="whitespace")


@pytest.fixture(scope="session")
def random_lm():
    """A model with random weights, large enough that contexts matter."""
    random = torch.Generator().manual_seed(5)
    softmax = Softmax(torch.randn(len(WORDS), 3, generator=random), torch.randn(len(WORDS), generator=random))
    return LanguageModel(tiny_model(scale=1.0), softmax, Vocabulary(WORDS), BLANKS)


@pytest.fixture(scope="session")
def by_frequency():
    """A model that knows no context: given probabilities of `<S>`, `</S>`, `<UNK>` and further words."""

    def make(**probabilities):
        words = ["<S>", "</S>", "<UNK>", *list(probabilities)[3:]]
        model = tiny_model(tiny_config())
        softmax = Softmax(torch.zeros(len(words), 3), torch.tensor(list(probabilities.values())).log())
        return LanguageModel(model, softmax, Vocabulary(words), BLANKS)

    return make
