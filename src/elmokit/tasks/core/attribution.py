"""Which token vectors decided: integrated gradients (Sundararajan, Taly and Yan 2017).

For a score F of a decision and the vectors v of all tokens, which the encoders give, the contribution of
token t along the straight way from no vectors (all zero) to the vectors as they are is

    c_t = v_t · ∫₀¹ ∂F(α v)/∂v_t dα ,        Σ_t c_t = F(v) - F(0)      (completeness)

The integral is a Gauss-Legendre sum, with twice as many points until the contributions are complete to 1 %.
A mix is a weighted sum of layers, so that c_t splits into a contribution of each layer, too. The encoders are
only asked for vectors: they may be frozen or quantised. Shapes: S tokens of an item, n points, L layers.
"""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from elmokit.tasks.core.inputs import WeightedLayers
from elmokit.tasks.core.protocol import Hidden, Item
from elmokit.tasks.core.task_model import TaskModel

logger = logging.getLogger(__name__)

_FEWEST_POINTS, _MOST_POINTS = 16, 2048
_COMPLETE = 0.01
_ROUNDING = 1e-4  # of log-odds: below it a difference is that of float32, not of too few points
_TOGETHER = 8192  # tokens that are computed at once
_NEVER = -1e9


class ExplainableHead(Protocol):
    """A head whose decisions can be explained."""

    def evidence(self, hidden: Hidden, items: Sequence[Any], key: Any) -> Tensor:  # noqa: ANN401
        """Return how much speaks for a decision, (B,): its log-odds, or the predicted number.

        Args:
            hidden: vectors that belong to the items.
            items: B times the same item.
            key: the decision, as `Decision.key` has it.
        """
        ...


class Attribution(NamedTuple):
    """What a decision is made of.

    Attributes:
        evidence: F(v).
        without: F(0), where no token has a vector.
        tokens: (S,) the contribution of each token.
        layers: (L,) the contributions of each mix's layers.
        points: of the integral.
    """

    evidence: float
    without: float
    tokens: Tensor
    layers: list[Tensor]
    points: int

    @property
    def error(self) -> float:
        """How far the contributions are from their sum."""
        return abs(self.tokens.sum().item() - (self.evidence - self.without))


def log_odds(logits: Tensor, label: int) -> Tensor:
    """Return log p / (1 - p) of one of several labels, (B, K) → (B,), exactly also where p is nearly 1."""
    others = torch.arange(logits.shape[1], device=logits.device) != label
    return logits[:, label] - logits.masked_fill(~others, _NEVER).logsumexp(dim=1)


def attribute(
    model: TaskModel[Any, Any, Any], item: Item, mixes: Sequence[WeightedLayers], key: object
) -> Attribution:
    """Compute what the tokens of an item, and the layers of the mixes, contribute to a decision."""
    model.eval()
    path = _Path(model, item, mixes, key)
    without, evidence = path.evidence(torch.tensor([0.0, 1.0])).tolist()
    needed = max(_COMPLETE * abs(evidence - without), _ROUNDING)
    points = _FEWEST_POINTS
    found = path.integrate(points, evidence, without)
    while found.error > needed and points < _MOST_POINTS:
        points *= 2
        found = path.integrate(points, evidence, without)
    if found.error > needed:
        logger.warning(
            "the contributions add up to %.4f, expected %.4f, with %d points of the integral; take them as "
            "estimates",
            found.tokens.sum().item(), evidence - without, points,
        )  # fmt: skip
    return found


class _Path:
    """The straight way from no vectors to those of an item."""

    def __init__(
        self, model: TaskModel[Any, Any, Any], item: Item, mixes: Sequence[WeightedLayers], key: object
    ) -> None:
        self.model, self.item, self.mixes, self.key = model, item, mixes, key
        self.lengths = torch.tensor([len(text) for text in item.texts], dtype=torch.long)
        size = int(self.lengths.sum())
        none = torch.empty(size, 0, device=next(model.parameters()).device)
        # What the RNN reads and what joins its output, side by side: (S, D).
        places = [[mix.layers.sum(0) for mix in mixes if mix.place == place] for place in ("input", "output")]
        self.vectors = torch.cat([none, *places[0], *places[1]], dim=1)
        self.input_dim = sum(part.shape[1] for part in places[0])
        self.together = max(1, _TOGETHER // max(1, size))

    @torch.no_grad()
    def evidence(self, alphas: Tensor) -> Tensor:
        """Return F(α v) for each α, (n,)."""
        return self._evidence(self._scaled(alphas))

    def integrate(self, count: int, evidence: float, without: float) -> Attribution:
        """Return the contributions by a sum of so many points."""
        gradient = torch.zeros_like(self.vectors)  # (S, D) the mean along the way
        nodes, sums = map(torch.from_numpy, np.polynomial.legendre.leggauss(count))  # between -1 and 1
        parts = (torch.split(one, self.together) for one in ((nodes + 1) / 2, sums / 2))
        for alphas, weights in zip(*parts, strict=True):
            scaled = self._scaled(alphas).requires_grad_()
            with torch.enable_grad():
                total = self._evidence(scaled).sum()
            (found,) = torch.autograd.grad(total, scaled)
            gradient += torch.einsum("n,nsd->sd", weights.to(found), found.view(len(alphas), *gradient.shape))
        tokens = (gradient * self.vectors).sum(dim=1)
        layers, start = [], 0
        for mix in self.mixes:  # those at the input come first
            end = start + mix.layers.shape[2]
            layers.append((mix.layers * gradient[:, start:end]).sum(dim=(1, 2)).cpu())
            start = end
        return Attribution(evidence, without, tokens.cpu(), layers, count)

    def _scaled(self, alphas: Tensor) -> Tensor:
        """Return α v for each α, one after another: (n S, D)."""
        scaled: Tensor = (alphas.to(self.vectors)[:, None, None] * self.vectors).flatten(0, 1)
        return scaled

    def _evidence(self, vectors: Tensor) -> Tensor:
        count = len(vectors) // max(1, len(self.vectors))
        x, extra = vectors[:, : self.input_dim], vectors[:, self.input_dim :]
        hidden: Hidden = self.model.rnn(x, extra, self.lengths.repeat(count))
        head: ExplainableHead = self.model.head  # type: ignore[assignment]  # `explain` has checked it
        return head.evidence(hidden, [self.item] * count, self.key)
