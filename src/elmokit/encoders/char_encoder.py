"""Characters alone: a small convolution over the spelling of each token, trained with the task."""

from torch import Tensor, nn

from elmokit.encoders.base import LayeredModule, Sentences
from elmokit.encoders.untrained import UntrainedEncoder
from elmokit.model import CharCNN, CharCNNConfig, encode_distinct

# 128 filters over three characters of 16 numbers: the character CNN of the paper's baselines.
_CONFIG = CharCNNConfig(filters=((3, 128),), embedding_dim=16, projection=False)


class CharacterEncoder(UntrainedEncoder):
    """Vectors made of a token's bytes."""

    def __init__(self) -> None:
        super().__init__("chars", _CONFIG.num_filters, CharacterModule(), sizes=repr(_CONFIG))


class CharacterModule(LayeredModule):
    """The convolution; each distinct token of a batch goes through it once."""

    def __init__(self) -> None:
        super().__init__()
        self.cnn = CharCNN(_CONFIG, _CONFIG.num_filters)
        self._inputs = _CONFIG.inputs(None, None)

    def forward(self, sentences: Sentences) -> Tensor:
        """Return the vectors (1, S, D) of all tokens."""
        tokens = [token for sentence in sentences for token in sentence]
        return encode_distinct(tokens, self._encode)[None]

    def stages(self) -> list[list[nn.Parameter]]:
        """Return one stage."""
        return [list(self.parameters())]

    def _encode(self, types: list[str]) -> Tensor:
        device = self.cnn.embedding.weight.device
        vectors: Tensor = self.cnn(*(ids.to(device) for ids in self._inputs(types)))  # (U, D)
        return vectors
