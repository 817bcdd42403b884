"""What word fits a gap: the predictions of both directions, combined.

Each direction predicts the word w of a gap from one side, and u(w) is how frequent w is. A log-linear model
combines them:

    log p(w | left, right) = a · log p(w | left) + b · log p(w | right) + c · log u(w) + constant

If the sides were independent given w, Bayes' rule would give a = b = 1, c = -1, the default. They are not:
`fit` finds the weights that make the words of a text most likely. The log-likelihood is concave in (a, b, c),
so a few steps of Newton's method find its maximum. Shapes: n gaps, P projection, V vocabulary.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor

from elmokit.model import FillWeights, Softmax

_GAPS_AT_ONCE = 128  # (3, 128, V) float32 numbers are 92 MB for 60,000 words
_NEWTON_STEPS = 20
_CONVERGED = 1e-5


@dataclass(frozen=True, kw_only=True)
class GapAccuracy:
    """How often the hidden words of a text are found again, each from the rest of its sentence.

    Attributes:
        top1: share of the words that come first among the candidates.
        top5: share of the words among the first five.
        words: how many were hidden; those out of vocabulary can never be found.
        oov_rate: their share.
    """

    top1: float
    top5: float
    words: int
    oov_rate: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


class GapFiller:
    """Combines both directions' predictions of a gap.

    Args:
        softmax: of the language model.
        is_word: (V,) rows that may fill a gap.
        weights: a, b and c.
    """

    def __init__(self, softmax: Softmax, is_word: Tensor, weights: FillWeights) -> None:
        self.weights = weights
        self._softmax, self._is_word = softmax, is_word
        row = torch.arange(len(is_word), dtype=torch.float64, device=is_word.device)  # (V,)
        # Vocabularies are sorted by frequency: u(w) follows from the row, as sampled softmaxes assume it.
        self._log_frequency = torch.log1p(1 / (row + 1)).log().float()  # (V,)

    def __call__(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return log p(w) given both sides, the left and the right, (n, V) each.

        `left` and `right` (n, P) are the top states of the forward model before and of the backward model
        after each gap.
        """
        features = self._features(left, right)  # (3, n, V)
        return self._combined(features, self._coefficients()).log_softmax(dim=1), features[0], features[1]

    def accuracy(self, gaps: Iterable[tuple[Tensor, Tensor, Tensor]]) -> GapAccuracy:
        """Measure how often the true words come first, over batches of `left`, `right` and `targets` (n,)."""
        first = among_five = known = words = 0
        for left, right, targets in _pieces(gaps):
            both, _, _ = self(left, right)
            better = (both > both.gather(1, targets[:, None])).sum(dim=1)  # (n,)
            is_known = self._is_word[targets]  # (n,)
            words, known = words + len(targets), known + int(is_known.sum())
            first += int((is_known & (better < 1)).sum())
            among_five += int((is_known & (better < 5)).sum())
        return GapAccuracy(
            top1=first / max(words, 1),
            top5=among_five / max(words, 1),
            words=words,
            oov_rate=1 - known / max(words, 1),
        )

    def fit(self, gaps: Iterable[tuple[Tensor, Tensor, Tensor]]) -> FillWeights:
        """Find the weights that make the true words most likely; the gaps are those of `accuracy`."""
        pieces = [tuple(part[self._is_word[piece[2]]] for part in piece) for piece in _pieces(gaps)]
        start = self._coefficients().double()  # (3,)
        coefficients, best, step = start, -torch.inf, torch.zeros_like(start)
        for _ in range(_NEWTON_STEPS):
            # A prior worth one gap around the start keeps the maximum finite.
            change = start - coefficients
            value, gradient = -float(change @ change) / 2, change
            information = torch.eye(3, dtype=torch.float64, device=start.device)
            for left, right, targets in pieces:
                log_likelihood, slope, curvature = self._derivatives(left, right, targets, coefficients)
                value, gradient = value + log_likelihood, gradient + slope
                information += curvature
            if value < best:  # the step was too long
                step = step / 2
                coefficients = coefficients - step
            else:
                best, step = value, torch.linalg.solve(information, gradient)
                coefficients = coefficients + step
            if float(step.abs().max()) < _CONVERGED:
                break
        return FillWeights(*coefficients.tolist())

    def _derivatives(
        self, left: Tensor, right: Tensor, targets: Tensor, coefficients: Tensor
    ) -> tuple[float, Tensor, Tensor]:
        """Return the log-likelihood of some gaps, its gradient and minus its Hessian.

        With features f(w), the gradient (3,) is Σ f(w*) - E[f], minus the Hessian (3, 3) is Σ Cov[f].
        """
        features = self._features(left, right)  # (3, n, V)
        logs = self._combined(features, coefficients.float()).log_softmax(dim=1)  # (n, V)
        weighted = features * logs.exp()  # (3, n, V)
        expected = weighted.sum(dim=2).double()  # (3, n)
        true = features.gather(2, targets.expand(3, -1)[:, :, None])[:, :, 0].double()  # (3, n)
        second = torch.einsum("inv,jnv->ij", weighted, features).double()  # (3, 3)
        of_targets = float(logs.gather(1, targets[:, None]).double().sum())
        return of_targets, (true - expected).sum(dim=1), second - expected @ expected.T

    def _features(self, left: Tensor, right: Tensor) -> Tensor:
        forward, backward = (self._softmax.log_probabilities(side) for side in (left, right))  # (n, V) each
        return torch.stack([forward, backward, self._log_frequency.expand_as(forward)])

    def _combined(self, features: Tensor, coefficients: Tensor) -> Tensor:
        scores = torch.einsum("i,inv->nv", coefficients, features)
        return scores.masked_fill_(~self._is_word, -torch.inf)

    def _coefficients(self) -> Tensor:
        values = [getattr(self.weights, field.name) for field in fields(self.weights)]
        return torch.tensor(values, device=self._is_word.device)  # (3,)


def _pieces(gaps: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Iterable[tuple[Tensor, Tensor, Tensor]]:
    for batch in gaps:
        yield from zip(*(torch.split(part, _GAPS_AT_ONCE) for part in batch), strict=True)
