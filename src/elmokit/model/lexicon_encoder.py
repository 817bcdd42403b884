"""From a word and its characters, both numbered by lexicons of the model, to the word's vector.

Shapes: U types, C characters, F filters, P projection.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from elmokit.base import bounded, check_fields
from elmokit.errors import ConfigError
from elmokit.kernels import ROWS_TOGETHER, Precision
from elmokit.model.char_cnn import CharCNN, CharCNNConfig
from elmokit.model.frozen_encoder import FrozenEncoder
from elmokit.model.token_encoder import MAX_SIZE, Inputs, TokenEncoderConfig
from elmokit.model.vector_table import VectorTable
from elmokit.text import Lexicon, Vocabulary


@dataclass(frozen=True, kw_only=True)
class LexiconConfig(TokenEncoderConfig):
    """ELMoForManyLangs' encoder: characters by a lexicon and, where there is one, the word's own vector.

    Attributes:
        characters: The convolutions; its `projection` is false, because the projection follows the word.
        num_words, word_dim: Of the table of word vectors; both 0 for none.
    """

    reads: ClassVar[Literal["characters"]] = "characters"
    boundaries: ClassVar[tuple[str, str]] = Lexicon.boundaries

    characters: CharCNNConfig
    num_words: int = bounded(0, least=0, most=MAX_SIZE)
    word_dim: int = bounded(0, least=0, most=MAX_SIZE)

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.num_words == 0) != (self.word_dim == 0):
            raise ConfigError(
                f"{self.num_words} words of {self.word_dim} numbers cannot be; make both 0 for none"
            )
        if self.characters.projection:
            raise ConfigError(
                "the projection follows word and characters; set that of the characters to false"
            )

    @property
    def max_characters(self) -> int:
        """Return how many ids a token has, its marks included."""
        return self.characters.max_characters

    @property
    def lexicon_size(self) -> int:
        """Return how many characters and words have a vector."""
        return self.characters.num_characters + self.num_words

    def build(self, output_dim: int) -> "LexiconEncoder":
        """Make the encoder."""
        return LexiconEncoder(self, output_dim)

    def inputs(self, vocabulary: Vocabulary | None, lexicon: Lexicon | None) -> Inputs:
        """Return the function from types to character ids (U, C), used characters and perhaps words (U,)."""
        assert lexicon is not None  # see `misfit`
        return partial(_lexicon_inputs, lexicon, self.max_characters)

    def misfit(self, vocabulary: Vocabulary | None, lexicon: Lexicon | None) -> str | None:
        """Say what is wrong if an id of the lexicon has no row in the tables; else return None."""
        for name, count in (("characters", self.characters.num_characters), ("words", self.num_words)):
            ids = getattr(lexicon, name, None) or {}
            if (count > 0) != bool(ids) or not all(0 <= number < count for number in ids.values()):
                last = max(ids.values(), default=0)
                return (
                    f"the lexicon has {len(ids)} {name}, numbered to {last}, the weights have {count} rows; "
                    "use the lexicon that this model was trained with"
                )
        return None

    def truncated(self, tokens: Sequence[str]) -> list[int]:
        """Return the positions of the tokens that have more characters than the encoder reads."""
        return [place for place, token in enumerate(tokens) if len(token) > self.max_characters - 2]

    def describe(self) -> str:
        """Describe the encoder in a few words."""
        words = f", {self.num_words} word vectors" if self.num_words else ""
        return self.characters.describe() + words


def _lexicon_inputs(lexicon: Lexicon, max_characters: int, types: list[str]) -> tuple[Tensor, ...]:
    inputs = [*lexicon.spell(types, max_characters=max_characters)]
    if lexicon.words is not None:
        inputs.append(lexicon.word_ids(types, max_characters=max_characters))
    return tuple(map(torch.from_numpy, inputs))


class LexiconEncoder(nn.Module):
    """The token encoder of ELMoForManyLangs: x = W_p [word; y] + b_p.

    y are the filters of the characters after their highways, as in `CharCNN`.
    """

    def __init__(self, config: LexiconConfig, output_dim: int) -> None:
        super().__init__()
        filters = config.characters.num_filters
        self.characters = CharCNN(config.characters, filters)
        self.words = VectorTable(config.num_words, config.word_dim) if config.num_words else None
        self.projection = nn.Linear(config.word_dim + filters, output_dim)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw initial weights, like those of a `CharCNN`."""
        self.characters.reset_parameters(generator)
        if self.words is not None:
            self.words.reset_parameters(generator)
        nn.init.normal_(self.projection.weight, std=self.projection.in_features**-0.5, generator=generator)
        nn.init.zeros_(self.projection.bias)

    def frozen(self, precision: Precision) -> Callable[..., Tensor]:
        """Return the same function without gradients, its products laid out once."""
        highways, join = self.characters.highways, None if self.words is None else self.join
        return FrozenEncoder(self.convolve, highways, join, self.projection, precision)

    def forward(self, ids: Tensor, used: Tensor, words: Tensor | None = None) -> Tensor:
        """Return the vector of each type.

        Args:
            ids: (U, C) character ids, each row filled up with the padding character.
            used: (U,) how many ids of a row stand before its padding.
            words: (U,) rows of the table of word vectors, where there is one.

        Returns:
            (U, P).
        """
        x = self.convolve(ids, used)  # (U, F)
        for highway in self.characters.highways:
            x = highway(x)
        vectors: Tensor = self.projection(x if words is None else self.join(x, words))
        return vectors

    def convolve(self, ids: Tensor, used: Tensor) -> Tensor:
        """Apply the filters, (U, C) → (U, F); tables only of the characters that occur: there are many."""
        present, places = torch.unique(ids, return_inverse=True)  # (n,), (U, C)
        whole = torch.cat([present, present[:1].expand(-len(present) % ROWS_TOGETHER)])
        return self.characters.convolve(places, used, self.characters.tables(whole))

    def join(self, x: Tensor, words: Tensor) -> Tensor:
        """Put the word vectors before the filters: (U, F), (U,) → (U, word + F)."""
        assert self.words is not None
        return torch.cat([self.words(words), x], dim=-1)
