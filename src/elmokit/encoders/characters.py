"""Characters alone: a small convolution over the spelling of each token, trained with the task."""

from pathlib import Path

import torch
from torch import Tensor, nn

from elmokit.encoders.base import LayeredModule, Sentences, fingerprint_of
from elmokit.model import CharCNN, CharCNNConfig
from elmokit.text import TokenizerSpec, character_matrix
from elmokit.text.characters import used_characters

# 128 filters over three characters of 16 numbers: the character CNN of the paper's baselines.
_CONFIG = CharCNNConfig(filters=((3, 128),), embedding_dim=16, projection=False)


class CharacterEncoder:
    """Vectors made of a token's bytes; see `Encoder`. Its weights belong to the task that trains it."""

    spec = "chars"
    dim = _CONFIG.num_filters
    num_layers = 1
    contextual = False
    pretrained = False
    tokenizer: TokenizerSpec | None = None

    def __init__(self) -> None:
        self.module = CharacterModule()

    @torch.no_grad()
    def encode(self, sentences: Sentences) -> list[Tensor]:
        """(1, T, D) for each sentence, by the weights as they are."""
        return list(self.module(sentences).cpu().split([len(sentence) for sentence in sentences], dim=1))

    def fingerprint(self) -> str:
        """The same for all: nothing is known before training."""
        return fingerprint_of([repr(_CONFIG).encode()])

    def save(self, folder: Path) -> str:
        """Nothing to write: the weights are saved with the task."""
        return self.spec


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
