"""What every token encoder offers: it owns its inputs, so that nothing else has to ask for its kind.

A token encoder turns distinct tokens into vectors. There are three: `CharCNN` reads the bytes of a token,
`LexiconEncoder` its characters and its word, `VectorTable` has a vector for each word. Each has a config that
builds it and knows what it reads. Beside `forward`, an encoder has `frozen(precision)`, the same function
without gradients and laid out for speed, and `reset_parameters(generator)`.

Shapes: U distinct tokens (types), P projection.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from elmokit.text import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, Lexicon, Vocabulary

# Far above every published model, far below what would exhaust memory before the weights are looked at.
MAX_SIZE = 10_000_000
MAX_NUMBER = 1e9  # a whole number beyond 64 bits is none that torch can compute with
MAX_LAYERS = 100  # of each kind; the loaders build them all before they look at the weights
MAX_CHARACTERS = 10_000  # the weights do not tell it, and every token takes that many numbers

Inputs = Callable[[list[str]], tuple[Tensor, ...]]


class TokenEncoderConfig(Protocol):
    """The sizes of a token encoder.

    Attributes:
        reads: What a token consists of: "bytes", "characters" or "words".
        boundaries: The tokens that stand before and after every sentence.
    """

    reads: ClassVar[Any]
    boundaries: ClassVar[tuple[str, str]] = (BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN)

    @property
    def max_characters(self) -> int | None:
        """Return how many ids a token has, its begin and end marks included; None if it has one."""
        ...

    @property
    def lexicon_size(self) -> int:
        """Return how many symbols the lexicon of the model numbers; 0 for a model without one."""
        return 0

    @property
    def vocabulary_size(self) -> int | None:
        """Return how many rows the vocabulary numbers; None if the encoder needs no vocabulary."""
        return None

    def build(self, output_dim: int) -> nn.Module:
        """Make the encoder, whose vectors have `output_dim` numbers."""
        ...

    def check_output_dim(self, output_dim: int) -> None:
        """Raise a ConfigError if the encoder cannot make vectors of that size."""
        return None

    def inputs(self, vocabulary: Vocabulary | None, lexicon: Lexicon | None) -> Inputs:
        """Return the function that makes the encoder's inputs from types."""
        ...

    def misfit(self, vocabulary: Vocabulary | None, lexicon: Lexicon | None) -> str | None:
        """Say what is wrong with the files that number the encoder's rows; None if nothing is."""
        return None

    def truncated(self, tokens: Sequence[str]) -> list[int]:
        """Return the positions of the tokens that are longer than the encoder reads."""
        return []

    def describe(self) -> str:
        """Describe the encoder in a few words."""
        ...
