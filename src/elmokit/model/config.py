"""The shape of a biLM as a frozen dataclass that checks itself and goes to and from JSON.

Letters used all over the package: B sentences of a batch, S tokens of a batch, T tokens of a sentence,
U distinct tokens (types), C characters of a token, E character vector, F filters, N cell, P projection of
one direction, L layers, V vocabulary, K labels.
"""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass
from typing import Any, Literal

from elmokit.base import bounded, check_fields, settings_from_dict, shown
from elmokit.errors import ConfigError
from elmokit.model.char_cnn import CharCNNConfig
from elmokit.model.lexicon_encoder import LexiconConfig
from elmokit.model.token_encoder import MAX_LAYERS, MAX_NUMBER, MAX_SIZE
from elmokit.model.vector_table import WordConfig

LayerKind = Literal["lstm", "gated-cnn", "transformer"]


@dataclass(frozen=True, kw_only=True)
class BiLMConfig:
    """A bidirectional language model.

    Attributes:
        encoder: How a token becomes a vector of size P.
        cell_dim: N, size of the LSTM cell.
        projection_dim: P, size of the token vector, the recurrent state and each direction's output.
        num_layers: L, LSTM layers of each direction.
        cell_clip: The cell is clipped to ± this; None leaves it.
        projection_clip: The projected state is clipped to ± this; None leaves it.
        skip_connections: From the second layer on, add the layer's input to its output.
        projection: Whether the state is projected (without it N must be P and projection_clip does nothing).
        forget_bias: Added to the forget gate's bias: 1 where the stored bias leaves it out, as TensorFlow's.
        joined_directions: Whether each layer reads both directions of the layer below; see `JoinedLSTM`.
        layers: What the layers are: "lstm", or layers that read all tokens at once: "gated-cnn"
            (`GatedCNNLayer`) or "transformer" (`CausalTransformerLayer`). Then N is their inner size, and
            the settings of the LSTM do nothing.
        width: Taps of a gated convolution: a layer sees the token and so many less one before it.
        heads: Of the attention of a transformer.
    """

    encoder: CharCNNConfig | LexiconConfig | WordConfig
    cell_dim: int = bounded(MISSING, least=1, most=MAX_SIZE)
    projection_dim: int = bounded(MISSING, least=1, most=MAX_SIZE)
    num_layers: int = bounded(MISSING, least=1, most=MAX_LAYERS)
    cell_clip: float | None = bounded(None, above=0, most=MAX_NUMBER)
    projection_clip: float | None = bounded(None, above=0, most=MAX_NUMBER)
    skip_connections: bool = False
    projection: bool = True
    forget_bias: float = bounded(1.0, least=-MAX_NUMBER, most=MAX_NUMBER)
    joined_directions: bool = False
    layers: LayerKind = "lstm"
    width: int = bounded(5, least=1, most=MAX_SIZE)
    heads: int = bounded(4, least=1, most=MAX_SIZE)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.projection and self.cell_dim != self.projection_dim:
            raise ConfigError(
                f"without a projection the cell ({self.cell_dim}) and the output ({self.projection_dim}) "
                "must be of one size; set projection=True or make them equal"
            )
        if self.layers != "lstm" and self.joined_directions:
            raise ConfigError(f"joined_directions is for LSTM layers, found layers = {self.layers!r}")
        if self.layers == "transformer" and self.projection_dim % self.heads:
            raise ConfigError(
                f"{self.heads} heads do not divide the projection of {self.projection_dim}; choose a divisor"
            )
        self.encoder.check_output_dim(self.projection_dim)

    @property
    def layer_name(self) -> str:
        """Return what the layers are, in words."""
        return {"lstm": "LSTM", "gated-cnn": "gated convolution", "transformer": "transformer"}[self.layers]

    @property
    def carries_state(self) -> bool:
        """Return whether a sentence can continue where another one stopped."""
        return self.layers == "lstm" and not self.joined_directions

    @property
    def output_dim(self) -> int:
        """Return 2P, the size of every layer's vectors."""
        return 2 * self.projection_dim

    @property
    def num_outputs(self) -> int:
        """Return how many layers of vectors the model gives: L + 1, the token layer being the first."""
        return 2 if self.joined_directions else self.num_layers + 1

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; the keys of the encoder tell its kind."""
        data = asdict(self)
        if not self.joined_directions:  # unknown to earlier versions
            del data["joined_directions"]
        if self.layers == "lstm":
            del data["layers"], data["width"], data["heads"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "BiLMConfig":
        """Undo `to_dict`; an unknown key is an error that offers the nearest known one."""
        encoder = data.get("encoder") if isinstance(data, Mapping) else None
        if not isinstance(encoder, Mapping):
            raise ConfigError(
                f"the model's 'encoder' must be an object with its sizes, found {shown(encoder)}"
            )
        kind: type[CharCNNConfig | LexiconConfig | WordConfig] = CharCNNConfig
        if "characters" in encoder:
            kind = LexiconConfig
        elif "num_words" in encoder:
            kind = WordConfig
        built = settings_from_dict(kind, encoder, "encoder")
        return settings_from_dict(cls, {**data, "encoder": built}, "model")
