"""One vector per token out of the L + 1 layers of a biLM.

Every mix is a weighted sum Σ_j a_j · h_j; the kinds differ in where the weights a come from.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from elmokit.errors import ConfigError
from elmokit.kernels import Dropout

MixKind = Literal["softmax", "fixed", "residual"]
LayerNorm = Literal["bilm-tf", "allennlp"]

_EPSILON: dict[LayerNorm, float] = {"bilm-tf": 1e-12, "allennlp": 1e-13}


class ScalarMix(nn.Module):
    """The task's own mix of the layers (Peters et al. 2018, eq. 1), and its variants.

        softmax:   ELMo_t = γ · Σ_j softmax(w)_j · h_{t,j}       w and γ are learnt
        fixed:     ELMo_t = Σ_j s_j · h_{t,j}                    s is given and stays
        residual:  ELMo_t = E(x_t) + Σ_{j≥1} s_j · h_{t,j}       s is learnt, not normalised; E(x) = h_0

    With `layer_norm` each layer is first normalised by one mean and one variance over all counted positions
    and features: (h - μ) / √(σ² + ε). The two old families differ in what they count: "bilm-tf" (simple_elmo
    too; ε = 1e-12) leaves `<S>` and `</S>` out, "allennlp" (ε = 1e-13) counts them; see `counts_boundaries`.

    Args:
        num_layers: L + 1.
        kind: one of the three above.
        weights: w of softmax (start: zeros), s of fixed (no start), s of residual (L of them; start: ones).
        gamma: γ, used by softmax alone.
        layer_norm: which convention, or none.
        dropout: share of the mixed vector's numbers that is dropped in training.

    Example:
        >>> h = torch.tensor([[0.2, 0.4, 0.1, 0.3], [0.6, 0.1, 0.5, 0.2]])
        >>> ScalarMix(2, kind="fixed", weights=[0.3, 0.7])(h)
        tensor([0.4800, 0.1900, 0.3800, 0.2300])
    """

    def __init__(
        self,
        num_layers: int,
        *,
        kind: MixKind = "softmax",
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        layer_norm: LayerNorm | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if kind not in get_args(MixKind):
            raise ConfigError(f"kind must be one of {', '.join(get_args(MixKind))}, found {kind!r}")
        if not 0 <= dropout <= 1:
            raise ConfigError(f"dropout must be from 0 to 1, found {dropout}")
        expected = num_layers - 1 if kind == "residual" else num_layers
        if weights is None:
            if kind == "fixed":
                raise ConfigError(f"a fixed mix needs its {num_layers} weights")
            weights = [1.0 if kind == "residual" else 0.0] * expected
        if len(weights) != expected:
            raise ConfigError(
                f"a {kind} mix of {num_layers} layers has {expected} weights, found {len(weights)}"
            )
        if layer_norm is not None and layer_norm not in _EPSILON:
            raise ConfigError(f"layer_norm must be one of {', '.join(_EPSILON)}, found {layer_norm!r}")
        self.kind = kind
        self.layer_norm = layer_norm
        learnt = kind != "fixed"
        self.weights = nn.Parameter(torch.tensor(list(weights), dtype=torch.float32), requires_grad=learnt)
        self.gamma = nn.Parameter(torch.tensor(float(gamma))) if kind == "softmax" else None
        self.dropout = Dropout(dropout)

    @classmethod
    def top(cls, num_layers: int) -> "ScalarMix":
        """The top layer alone."""
        return cls(num_layers, kind="fixed", weights=[0.0] * (num_layers - 1) + [1.0])

    @classmethod
    def average(cls, num_layers: int) -> "ScalarMix":
        """The mean of the layers: what softmax starts from."""
        return cls(num_layers, kind="fixed", weights=[1.0 / num_layers] * num_layers)

    @property
    def counts_boundaries(self) -> bool:
        """Whether the layer norm's statistics are to include `<S>` and `</S>`."""
        return self.layer_norm == "allennlp"

    def coefficients(self) -> Tensor:
        """(L + 1,) what each layer is multiplied by."""
        if self.gamma is not None:
            return self.gamma * torch.softmax(self.weights, dim=0)
        if self.kind == "residual":
            return torch.cat([self.weights.new_ones(1), self.weights])
        return self.weights

    def forward(self, layers: Tensor, counted: Tensor | None = None) -> Tensor:
        """Mix the layers.

        Args:
            layers: (L + 1, …, D).
            counted: (…) bool, the positions that enter the layer norm's statistics; all when not given.

        Returns:
            (…, D).
        """
        if self.layer_norm is not None:
            layers = normalise_layers(layers, counted, self.layer_norm)
        mixed: Tensor = self.dropout(torch.tensordot(self.coefficients().to(layers), layers, dims=1))
        return mixed

    def regulariser(self, strength: float) -> Tensor:
        """λ · Σ_j (w_j - 1/n)², n = L + 1 (L for residual): a large λ keeps the weights equal."""
        return strength * (self.weights - 1.0 / len(self.weights)).square().sum()


def normalise_layers(layers: Tensor, counted: Tensor | None, convention: LayerNorm) -> Tensor:
    """Each layer less its mean, over its standard deviation.

    Args:
        layers: (L + 1, …, D).
        counted: (…) bool, the positions that enter mean and variance; all when not given.
        convention: whose epsilon.

    Returns:
        (L + 1, …, D).
    """
    flat = layers.flatten(1, -2)  # (L + 1, positions, D)
    seen = flat if counted is None else flat[:, counted.flatten()]  # (L + 1, counted, D)
    mean = seen.mean(dim=(1, 2), keepdim=True)  # (L + 1, 1, 1)
    variance = (seen - mean).square().mean(dim=(1, 2), keepdim=True)
    return ((flat - mean) / (variance + _EPSILON[convention]).sqrt()).view_as(layers)
