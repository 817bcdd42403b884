"""The shape of a biLM as frozen dataclasses that check themselves and go to and from JSON.

Letters used all over the package: B sentences of a batch, S tokens of a batch, T tokens of a sentence,
U distinct tokens (types), C characters of a token, E character vector, F filters, N cell, P projection of
one direction, L layers, V vocabulary, K labels.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from elmokit.base import check_flag, check_number, check_option, check_whole_number, settings_from_dict
from elmokit.errors import ConfigError

Activation = Literal["relu", "tanh"]

# Far above every published model, far below what would exhaust memory before the weights are looked at.
_MAX_SIZE = 10_000_000
_MAX_LAYERS = 1000  # of these the loaders make lists before they look at the weights
_MAX_CHARACTERS = 10_000  # the weights do not tell it, and every token takes that many numbers


@dataclass(frozen=True, kw_only=True)
class CharCNNConfig:
    """The character encoder: what one token's vector is made from.

    Attributes:
        filters: (width, number) of each convolution, in the order of the weights.
        embedding_dim: E, size of a character's vector.
        max_characters: C, ids of a token including begin- and end-of-word.
        num_characters: rows of the character table.
        activation: what follows the maximum over positions.
        num_highway: highway layers.
        projection: whether a linear layer brings F to P (without it F must be P).
    """

    filters: tuple[tuple[int, int], ...]
    embedding_dim: int
    max_characters: int = 50
    num_characters: int = 261
    activation: Activation = "relu"
    num_highway: int = 0
    projection: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "filters", _filters(self.filters))
        _whole("embedding_dim", self.embedding_dim)
        _whole("max_characters", self.max_characters, least=3, most=_MAX_CHARACTERS)
        _whole("num_characters", self.num_characters)
        _whole("num_highway", self.num_highway, least=0, most=_MAX_LAYERS)
        check_option("activation", self.activation, get_args(Activation))
        check_flag("projection", self.projection)
        widest = max(width for width, _ in self.filters)
        if widest > self.max_characters:
            raise ConfigError(
                f"a filter is {widest} characters wide, but a token has only {self.max_characters} of them; "
                "make max_characters larger or the filter narrower"
            )

    @property
    def num_filters(self) -> int:
        """F, the filters of all widths together."""
        return sum(number for _, number in self.filters)


@dataclass(frozen=True, kw_only=True)
class WordConfig:
    """A table of word vectors in place of the character encoder."""

    num_words: int

    def __post_init__(self) -> None:
        _whole("num_words", self.num_words)


@dataclass(frozen=True, kw_only=True)
class LexiconConfig:
    """Characters from a lexicon of their own and, where there is one, the word's own vector before them.

    ELMoForManyLangs' encoder: x = W_p [word; y] + b_p, with y the characters' filters after their highways.

    Attributes:
        characters: the convolutions; its `projection` is false, since the projection follows the word.
        num_words, word_dim: of the table of word vectors; both 0 for none.
    """

    characters: CharCNNConfig
    num_words: int = 0
    word_dim: int = 0

    def __post_init__(self) -> None:
        _whole("num_words", self.num_words, least=0)
        _whole("word_dim", self.word_dim, least=0)
        if (self.num_words == 0) != (self.word_dim == 0):
            raise ConfigError(
                f"{self.num_words} words of {self.word_dim} numbers cannot be; make both 0 for none"
            )
        if self.characters.projection:
            raise ConfigError(
                "the projection follows word and characters; set that of the characters to false"
            )


Encoder = CharCNNConfig | LexiconConfig | WordConfig


@dataclass(frozen=True, kw_only=True)
class BiLMConfig:
    """A bidirectional language model.

    Attributes:
        encoder: how a token becomes a vector of size P.
        cell_dim: N, size of the LSTM cell.
        projection_dim: P, size of the token vector, the recurrent state and each direction's output.
        num_layers: L, LSTM layers of each direction.
        cell_clip: the cell is cut to ± this; None leaves it.
        projection_clip: the projected state is cut to ± this; None leaves it.
        skip_connections: from the second layer on, add the layer's input to its output.
        projection: whether the state is projected (without it N must be P and projection_clip does nothing).
        forget_bias: added to the forget gate's bias: 1 where the stored bias leaves it out, as TensorFlow's.
    """

    encoder: Encoder
    cell_dim: int
    projection_dim: int
    num_layers: int
    cell_clip: float | None = None
    projection_clip: float | None = None
    skip_connections: bool = False
    projection: bool = True
    forget_bias: float = 1.0

    def __post_init__(self) -> None:
        _whole("cell_dim", self.cell_dim)
        _whole("projection_dim", self.projection_dim)
        _whole("num_layers", self.num_layers, most=_MAX_LAYERS)
        _clip("cell_clip", self.cell_clip)
        _clip("projection_clip", self.projection_clip)
        check_flag("skip_connections", self.skip_connections)
        check_flag("projection", self.projection)
        check_number("forget_bias", self.forget_bias)
        if not self.projection and self.cell_dim != self.projection_dim:
            raise ConfigError(
                f"without a projection the cell ({self.cell_dim}) and the output ({self.projection_dim}) "
                "must be of one size; set projection=True or make them equal"
            )
        encoder = self.encoder
        bare = encoder if isinstance(encoder, CharCNNConfig) and not encoder.projection else None
        if bare is not None and bare.num_filters != self.projection_dim:
            raise ConfigError(
                f"without a projection the {bare.num_filters} filters must equal projection_dim "
                f"({self.projection_dim}); set the encoder's projection=True"
            )

    @property
    def output_dim(self) -> int:
        """2P, size of every layer's vectors."""
        return 2 * self.projection_dim

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the encoder's kind is told by its keys."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "BiLMConfig":
        """The inverse of `to_dict`; an unknown key is an error that offers the nearest known one."""
        data = dict(data)
        encoder = data.get("encoder")
        if not isinstance(encoder, Mapping):
            raise ConfigError(f"the model's 'encoder' must be an object with its sizes, found {encoder!r}")
        data["encoder"] = _encoder_from_dict(encoder)
        return settings_from_dict(cls, data, "model")


def _encoder_from_dict(data: Mapping[str, Any]) -> Encoder:
    if "characters" not in data:
        if "num_words" in data:
            return settings_from_dict(WordConfig, data, "encoder")
        return settings_from_dict(CharCNNConfig, data, "encoder")
    if not isinstance(data["characters"], Mapping):
        raise ConfigError(f"the encoder's 'characters' must be an object, found {data['characters']!r}")
    characters = settings_from_dict(CharCNNConfig, data["characters"], "encoder, characters")
    return settings_from_dict(LexiconConfig, {**data, "characters": characters}, "encoder")


def _whole(name: str, value: object, least: int = 1, most: int = _MAX_SIZE) -> None:
    check_whole_number(name, value, least=least, most=most)


def _clip(name: str, value: object) -> None:
    if value is not None:
        check_number(name, value, above=0)


def _filters(value: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ConfigError(f"filters must be a list of [width, number] pairs, found {value!r}")
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ConfigError(f"filters must be a list of [width, number] pairs, found {pair!r} in it")
        _whole("a filter's width", pair[0])
        _whole("a filter's number", pair[1])
    return tuple((width, number) for width, number in value)
