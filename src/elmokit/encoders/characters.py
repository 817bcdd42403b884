"""Characters alone: a small convolution over the spelling of each token, trained with the task."""

import torch
from torch import Tensor, nn

from elmokit.encoders.base import LayeredModule, Sentences
from elmokit.encoders.untrained import UntrainedEncoder
from elmokit.model import CharCNN, CharCNNConfig
from elmokit.text import character_matrix, used_characters

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

    def forward(self, sentences: Sentences) -> Tensor:
        """(1, S, D)."""
        device = self.cnn.embedding.weight.device
        tokens = [token for sentence in sentences for token in sentence]
        types = {token: row for row, token in enumerate(dict.fromkeys(tokens))}
        ids = character_matrix(list(types), max_characters=_CONFIG.max_characters)
        used = torch.from_numpy(used_characters(ids))
        vectors: Tensor = self.cnn(torch.from_numpy(ids).to(device), used.to(device))  # (U, D)
        rows = torch.tensor([types[token] for token in tokens], dtype=torch.long, device=device)  # (S,)
        return vectors[rows][None]

    def stages(self) -> list[list[nn.Parameter]]:
        """One stage."""
        return [list(self.parameters())]
