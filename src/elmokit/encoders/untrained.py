"""What encoders have in common whose weights belong to the task that trains them."""

from pathlib import Path

import torch
from torch import Tensor

from elmokit.encoders.base import LayeredModule, Sentences, fingerprint_of
from elmokit.text import TokenizerSpec


class UntrainedEncoder:
    """An encoder that knows nothing before the task is trained; see `Encoder`.

    Args:
        spec: what opens it.
        dim: D.
        module: that is trained.
        sizes: of the module, in words, for the fingerprint.
    """

    num_layers = 1
    contextual = False
    pretrained = False
    tokenizer: TokenizerSpec | None = None

    def __init__(self, spec: str, dim: int, module: LayeredModule, *, sizes: str) -> None:
        self.spec = spec
        self.dim = dim
        self.module = module
        self._sizes = sizes

    @torch.no_grad()
    def encode(self, sentences: Sentences) -> list[Tensor]:
        """(1, T, D) for each sentence, by the weights as they are."""
        return list(self.module(sentences).cpu().split([len(sentence) for sentence in sentences], dim=1))

    def fingerprint(self) -> str:
        """The same for all of these sizes: nothing is known before training."""
        return fingerprint_of([self._sizes.encode()])

    def save(self, folder: Path) -> str:
        """Nothing to write: the weights are saved with the task."""
        return self.spec
