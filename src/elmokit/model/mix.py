"""One vector per token out of the L + 1 layers of a biLM.

Every mix is a weighted sum Σ_j a_j · h_j; the kinds differ in where the weights a come from.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn

from elmokit.base import check_number, check_option
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
    and features: (h - μ) / √(σ² + ε). The old systems differ in what they count: "bilm-tf" (simple_elmo too;
    ε = 1e-12) leaves `<S>` and `</S>` out, "allennlp" (ε = 1e-13) counts them; see `counts_boundaries`.

    Args:
        num_layers: L + 1.
        kind: One of the three above.
        weights: w of softmax (zeros if not given), s of fixed, s of residual (L of them; ones if not given).
        gamma: γ, used only by softmax.
        layer_norm: Which convention, or None.
        dropout: Share of the mixed vector's numbers that is dropped in training.

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
        check_option("kind", kind, get_args(MixKind))
        check_number("dropout", dropout, least=0, most=1)
        if layer_norm is not None:
            check_option("layer_norm", layer_norm, _EPSILON)
        expected = num_layers - 1 if kind == "residual" else num_layers
        if weights is None:
            if kind == "fixed":
                raise ConfigError(f"a fixed mix needs its {num_layers} weights")
            weights = [1.0 if kind == "residual" else 0.0] * expected
        if len(weights) != expected:
            raise ConfigError(
                f"a {kind} mix of {num_layers} layers has {expected} weights, found {len(weights)}"
            )
        self.kind = kind
        self.layer_norm = layer_norm
        learnt = kind != "fixed"
        self.weights = nn.Parameter(torch.tensor(list(weights), dtype=torch.float32), requires_grad=learnt)
        self.gamma = nn.Parameter(torch.tensor(float(gamma))) if kind == "softmax" else None
        self.dropout = Dropout(dropout)

    @classmethod
    def top(cls, num_layers: int) -> "ScalarMix":
        """Return the mix that is the top layer alone."""
        return cls(num_layers, kind="fixed", weights=[0.0] * (num_layers - 1) + [1.0])

    @classmethod
    def average(cls, num_layers: int) -> "ScalarMix":
        """Return the mean of the layers, which is where softmax starts."""
        return cls(num_layers, kind="fixed", weights=[1.0 / num_layers] * num_layers)

    @classmethod
    def of(cls, choice: "MixChoice", num_layers: int) -> "ScalarMix":
        """Return the mix that a user chose: one of `MixChoice`, for a model of `num_layers` (L + 1) layers.

        Raises:
            ConfigError: There is no such mix, or it does not have that many layers.
        """
        if isinstance(choice, str):
            check_option("mix", choice, ("average", "top"))
            return cls.average(num_layers) if choice == "average" else cls.top(num_layers)
        if not isinstance(choice, ScalarMix | Sequence):
            raise ConfigError(f"mix must be average, top, weights or a ScalarMix, found {choice!r}")
        if not isinstance(choice, ScalarMix):
            choice = cls(len(choice), kind="fixed", weights=[float(weight) for weight in choice])
        found = len(choice.coefficients())
        if found != num_layers:
            raise ConfigError(f"the mix has {found} layers, the model {num_layers}; make them equal")
        return choice

    @property
    def counts_boundaries(self) -> bool:
        """Return whether the statistics of the layer norm include `<S>` and `</S>`."""
        return self.layer_norm == "allennlp"

    def coefficients(self) -> Tensor:
        """Return the factors (L + 1,) of the layers."""
        if self.gamma is not None:
            return self.gamma * torch.softmax(self.weights, dim=0)
        if self.kind == "residual":
            return torch.cat([self.weights.new_ones(1), self.weights])
        return self.weights

    def forward(self, layers: Tensor, counted: Tensor | None = None) -> Tensor:
        """Mix the layers.

        Args:
            layers: (L + 1, …, D).
            counted: (…) bool, the positions that the layer norm counts; all if not given.

        Returns:
            (…, D).
        """
        if self.layer_norm is not None:
            layers = normalise_layers(layers, counted, self.layer_norm)
        mixed: Tensor = self.dropout(torch.tensordot(self.coefficients().to(layers), layers, dims=1))
        return mixed

    def regulariser(self, strength: float) -> Tensor:
        """Return λ · Σ_j (w_j - 1/n)², n = L + 1 (L for residual): a large λ keeps the weights equal."""
        return strength * (self.weights - 1.0 / len(self.weights)).square().sum()


MixChoice: TypeAlias = ScalarMix | str | Sequence[float]  # a mix, "average", "top", or weights of the layers


def normalise_layers(layers: Tensor, counted: Tensor | None, convention: LayerNorm) -> Tensor:
    """Subtract from each layer its mean and divide it by its standard deviation.

    Args:
        layers: (L + 1, …, D).
        counted: (…) bool, the positions that mean and variance are taken over; all if not given.
        convention: Whose epsilon.

    Returns:
        (L + 1, …, D).
    """
    flat = layers.flatten(1, -2)  # (L + 1, positions, D)
    seen = flat if counted is None else flat[:, counted.flatten()]  # (L + 1, counted, D)
    mean = seen.mean(dim=(1, 2), keepdim=True)  # (L + 1, 1, 1)
    variance = (seen - mean).square().mean(dim=(1, 2), keepdim=True)
    return ((flat - mean) / (variance + _EPSILON[convention]).sqrt()).view_as(layers)
