"""A table of vectors: of characters inside an encoder, or of words as an encoder of its own."""

from dataclasses import MISSING, dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from elmokit.base import bounded, check_fields
from elmokit.kernels import Precision
from elmokit.model.token_encoder import MAX_SIZE, Inputs, TokenEncoderConfig
from elmokit.text import Lexicon, Vocabulary


class VectorTable(nn.Embedding):
    """A table whose vectors start uniform in ± 1, as in bilm-tf.

    Torch's own start draws normal numbers. On the meta device, where models are made before they are loaded,
    that imports 800 modules, which takes two seconds.
    """

    def __init__(self, rows: int, dim: int) -> None:
        super().__init__(rows, dim, _weight=torch.empty(rows, dim))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw initial vectors."""
        nn.init.uniform_(self.weight, -1.0, 1.0, generator=generator)

    def frozen(self, precision: Precision) -> "VectorTable":
        """Return the table itself: looking up needs no preparation."""
        return self


@dataclass(frozen=True, kw_only=True)
class WordConfig(TokenEncoderConfig):
    """A table of word vectors in place of a character encoder."""

    reads: ClassVar[Literal["words"]] = "words"
    max_characters: ClassVar[None] = None

    num_words: int = bounded(MISSING, least=1, most=MAX_SIZE)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def vocabulary_size(self) -> int:
        """Return the number of words."""
        return self.num_words

    def build(self, output_dim: int) -> VectorTable:
        """Make the table."""
        return VectorTable(self.num_words, output_dim)

    def inputs(self, vocabulary: Vocabulary | None, lexicon: Lexicon | None) -> Inputs:
        """Return the function from types to their rows (U,)."""
        assert vocabulary is not None  # see `misfit`
        return partial(_word_ids, vocabulary)

    def misfit(self, vocabulary: Vocabulary | None, lexicon: Lexicon | None) -> str | None:
        """Say whether the vocabulary is missing or of another size."""
        if vocabulary is None:
            return (
                f"a model of {self.num_words} word vectors needs the vocabulary that names them; "
                "put the vocab.txt that came with it into the same folder"
            )
        if len(vocabulary) != self.num_words:
            return (
                f"the vocabulary has {len(vocabulary)} words, the weights have {self.num_words} rows; "
                "use the vocabulary file that this model was trained with"
            )
        return None

    def describe(self) -> str:
        """Describe the encoder in a few words."""
        return f"{self.num_words} word vectors"


def _word_ids(vocabulary: Vocabulary, types: list[str]) -> tuple[Tensor, ...]:
    return (torch.tensor([vocabulary.id(token) for token in types]),)
