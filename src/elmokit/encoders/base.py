"""What every encoder offers: the tokens of sentences in, the vectors of one or more layers out.

Shapes: S tokens of all sentences of a batch, one sentence after another; T tokens of one sentence; D numbers
of a vector; L layers, here of any encoder, the lowest first.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from elmokit.text import TokenizerSpec

Sentences = Sequence[Sequence[str]]


class Encoder(Protocol):
    """A source of vectors for tokens.

    Attributes:
        spec: what opens it again, see `open_encoder`.
        dim: D.
        num_layers: L.
        contextual: whether a token's vector depends on its sentence. Such vectors are dear and worth a cache.
        pretrained: whether it knows something before the task is trained.
        tokenizer: how it wants text cut; None if it has no wish.
    """

    spec: str
    dim: int
    num_layers: int
    contextual: bool
    pretrained: bool

    @property
    def tokenizer(self) -> TokenizerSpec | None:
        """See above."""
        ...

    def encode(self, sentences: Sentences) -> list[Tensor]:
        """(L, T, D) for each sentence, on the CPU and without gradients."""
        ...

    def fingerprint(self) -> str:
        """A hexadecimal number that is another one when the vectors would be."""
        ...

    def save(self, folder: Path) -> str:
        """Write it into the empty `folder`; returns the spec that opens it from there."""
        ...


class LayeredModule(nn.Module):
    """The differentiable side of an encoder, for training it with a task."""

    def forward(self, sentences: Sentences) -> Tensor:
        """(L, S, D)."""
        raise NotImplementedError

    def stages(self) -> list[list[nn.Parameter]]:
        """The parameters by depth, lowest first: what `tune_from` and gradual unfreezing count."""
        raise NotImplementedError


@runtime_checkable
class TunableEncoder(Encoder, Protocol):
    """An encoder that can be trained with the task; `encode` does not see the changes until it is saved."""

    module: LayeredModule


def fingerprint_of(parts: Iterable[bytes]) -> str:
    """The fingerprint of what an encoder is made of."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:32]


def weight_bytes(module: nn.Module, *, without: str | None = None) -> Iterable[bytes]:
    """Every weight of a module by its name, but for those of the part `without`, for `fingerprint_of`."""
    for name, tensor in sorted(module.state_dict().items()):
        if without is None or not name.startswith(f"{without}."):
            yield name.encode()
            yield tensor.detach().cpu().contiguous().numpy().tobytes()
