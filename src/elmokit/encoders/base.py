"""What every encoder offers: the tokens of sentences in, the vectors of one or more layers out.

Shapes: S tokens of all sentences of a batch, one sentence after another; T tokens of one sentence; D numbers
of a vector; L layers of any encoder, the lowest first.
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
        spec: What opens it again; see `open_encoder`.
        dim: D.
        num_layers: L.
        contextual: Whether a token's vector depends on its sentence. Such vectors are worth a cache.
        pretrained: Whether it knows something before the task is trained.
        adaptable: Whether `elmokit.pretrain` can train it further, on text without labels.
        tokenizer: How it wants text to be tokenised; None if it does not care.
    """

    spec: str
    dim: int
    num_layers: int
    contextual: bool
    pretrained: bool
    adaptable: bool

    @property
    def tokenizer(self) -> TokenizerSpec | None: ...  # noqa: D102 (see above)

    def encode(self, sentences: Sentences) -> list[Tensor]:
        """Return (L, T, D) for each sentence, on the CPU and without gradients."""
        ...

    def fingerprint(self) -> str:
        """Return a hexadecimal number that changes when the vectors would."""
        ...

    def save(self, folder: Path) -> str:
        """Write the encoder into the empty `folder` and return the spec that opens it from there."""
        ...


class LayeredModule(nn.Module):
    """The differentiable side of an encoder, for training it with a task."""

    def forward(self, sentences: Sentences) -> Tensor:
        """Return the vectors (L, S, D) of all tokens."""
        raise NotImplementedError

    def stages(self) -> list[list[nn.Parameter]]:
        """Return the parameters by depth, lowest first, for `tune_from` and gradual unfreezing."""
        return [list(self.parameters())]


@runtime_checkable
class TunableEncoder(Encoder, Protocol):
    """An encoder that can be trained with the task; `encode` does not see the changes until it is saved."""

    module: LayeredModule


def fingerprint_of(parts: Iterable[bytes]) -> str:
    """Return the fingerprint of what an encoder is made of."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:32]


def weight_bytes(module: nn.Module, *, without: str | None = None) -> Iterable[bytes]:
    """Yield the names and weights of a module, except those of its part `without`, for `fingerprint_of`."""
    for name, tensor in sorted(module.state_dict().items()):
        if without is None or not name.startswith(f"{without}."):
            yield name.encode()
            yield tensor.detach().cpu().contiguous().numpy().tobytes()
