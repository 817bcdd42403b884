"""The output layer in training: full, adaptive or sampled softmax, with hand-written gradients.

Loss and gradient are computed together (`kernels.softmax_gradients`).
The gradient of the table comes as rows, because a sampled softmax touches only a tenth of them.

Shapes: n positions, K negatives, V words, P projection.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.kernels import Precision, softmax_gradients
from elmokit.model import Softmax


@dataclass(frozen=True)
class RowGradient:
    """Gradient of some rows of the table; a row may occur more than once."""

    rows: Tensor  # (r,)
    weight: Tensor  # (r, P)
    bias: Tensor  # (r,)


@dataclass(frozen=True)
class LossAndGradient:
    """The summed loss of n positions, and the gradients of `scale` times that sum."""

    loss: float
    hidden: Tensor  # (n, P)
    table: list[RowGradient]


class SoftmaxTable(nn.Module):
    """The parameters: a row for each word, then one for each cluster of an adaptive softmax.

    Args:
        num_words: V.
        dim: P.
        cutoffs: Where the clusters of an adaptive softmax begin; none for a flat one.
    """

    def __init__(self, num_words: int, dim: int, cutoffs: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.num_words, self.cutoffs = num_words, cutoffs
        self.weight = nn.Parameter(torch.empty(num_words + len(cutoffs), dim))
        self.bias = nn.Parameter(torch.zeros(num_words + len(cutoffs)))

    @property
    def clusters(self) -> list[tuple[int, int]]:
        """The first word of each cluster, and the one after its last."""
        return list(pairwise((*self.cutoffs, self.num_words)))

    def start(self, counts: np.ndarray | None, generator: torch.Generator) -> None:
        """Draw the rows as bilm-tf does, N(0, 1/√P); set biases from the words' counts, or to zero.

        In a short run, rare words are hardly ever drawn as negatives, so nothing pushes their scores down. A
        bias of log frequency starts where training would end.
        """
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5, generator=generator)
        nn.init.zeros_(self.bias)
        if counts is None:
            return
        frequencies = torch.from_numpy(counts.astype(np.float64) + 0.5)
        sums = [frequencies[a:b].sum() for a, b in self.clusters]
        if sums:
            frequencies = torch.cat([frequencies, torch.stack(sums)])
        with torch.no_grad():
            self.bias.copy_((frequencies / frequencies[: self.num_words].sum()).log())

    @classmethod
    def of(cls, softmax: Softmax) -> "SoftmaxTable":
        """Return the table of a stored softmax; the inverse of `export`."""
        table = cls(len(softmax.weight), softmax.weight.shape[1], softmax.cutoffs)
        parts = softmax.tensors()
        with torch.no_grad():
            for name, parameter in (("weight", table.weight), ("bias", table.bias)):
                found = [parts[key] for key in (name, f"cluster_{name}") if key in parts]
                parameter.copy_(torch.cat(found))
        return table

    def export(self) -> Softmax:
        """Return the softmax in the form that is stored."""
        weight, bias = self.weight.detach(), self.bias.detach()
        if not self.cutoffs:
            return Softmax(weight, bias)
        return Softmax(
            weight[: self.num_words],
            bias[: self.num_words],
            cutoffs=self.cutoffs,
            cluster_weight=weight[self.num_words :],
            cluster_bias=bias[self.num_words :],
        )


class Objective(Protocol):
    """A way to train the table: the loss of n positions and its gradient."""

    def __call__(
        self, table: SoftmaxTable, hidden: Tensor, targets: Tensor, scale: float, generator: torch.Generator
    ) -> LossAndGradient:
        """Return the loss of (n, P) and (n,), and the gradients of `scale` × its sum."""
        ...


class FullSoftmax:
    """All words at every position."""

    def __init__(self, precision: Precision = "float32") -> None:
        self._precision = precision

    def __call__(
        self, table: SoftmaxTable, hidden: Tensor, targets: Tensor, scale: float, generator: torch.Generator
    ) -> LossAndGradient:
        """See `Objective`."""
        rows = torch.arange(table.num_words, device=hidden.device)
        loss, grad_hidden, gradient = _over_rows(table, rows, hidden, targets, scale, self._precision)
        return LossAndGradient(loss, grad_hidden, [gradient])


class AdaptiveSoftmax:
    """A softmax over frequent words and clusters, then one over the words of the target's cluster.

    Joulin et al. 2017, with rows of full width in every cluster.
    """

    def __init__(self, precision: Precision = "float32") -> None:
        self._precision = precision

    def __call__(
        self, table: SoftmaxTable, hidden: Tensor, targets: Tensor, scale: float, generator: torch.Generator
    ) -> LossAndGradient:
        """See `Objective`."""
        first = table.cutoffs[0]
        all_rows = torch.arange(len(table.weight), device=hidden.device)
        # (n,), 0 for the head
        cluster = torch.bucketize(targets, torch.tensor(table.cutoffs, device=hidden.device), right=True)
        head = torch.cat([all_rows[:first], all_rows[table.num_words :]])
        columns = torch.where(cluster == 0, targets, first - 1 + cluster)
        loss, grad_hidden, gradient = _over_rows(table, head, hidden, columns, scale, self._precision)
        gradients = [gradient]
        for number, (start, end) in enumerate(table.clusters, start=1):
            inside = (cluster == number).nonzero().squeeze(1)
            if len(inside):
                more, grad, gradient = _over_rows(
                    table,
                    all_rows[start:end],
                    hidden[inside],
                    targets[inside] - start,
                    scale,
                    self._precision,
                )
                loss += more
                grad_hidden.index_add_(0, inside, grad)
                gradients.append(gradient)
        return LossAndGradient(loss, grad_hidden, gradients)


class SampledSoftmax:
    """Each target against K words drawn once for all positions, as TensorFlow's `sampled_softmax_loss`.

    Words are drawn log-uniformly by rank, without repetition. The log of the expected count is subtracted
    from every score. A drawn word that is the target of a position is ignored there.

    Args:
        negatives: K.
        precision: Of the matrix products.
    """

    def __init__(self, negatives: int, precision: Precision = "float32") -> None:
        self._negatives, self._precision = negatives, precision

    def __call__(
        self, table: SoftmaxTable, hidden: Tensor, targets: Tensor, scale: float, generator: torch.Generator
    ) -> LossAndGradient:
        """See `Objective`."""
        drawn, tries = draw_log_uniform(table.num_words, min(self._negatives, table.num_words), generator)
        drawn = drawn.to(hidden.device)  # (K,)
        place = torch.full((table.num_words,), -1, device=hidden.device)
        place[drawn] = torch.arange(len(drawn), device=hidden.device)
        with torch.no_grad():
            weight, own = table.weight[drawn], table.weight[targets]  # (K, P), (n, P)
            bias = table.bias[drawn] - log_expected_count(drawn, table.num_words, tries)
            score = (hidden * own).sum(1) + table.bias[targets]
            score -= log_expected_count(targets, table.num_words, tries)  # (n,)
            found = softmax_gradients(hidden, weight, bias, place[targets], score, self._precision)
            grad_hidden, grad_score = found.hidden, found.score
            assert grad_score is not None  # because scores were given
            grad_hidden.addcmul_(own, grad_score[:, None])
            for grad in (found.weight, found.bias, grad_hidden, grad_score):
                grad.mul_(scale)
        of_targets = RowGradient(targets, hidden * grad_score[:, None], grad_score)
        of_drawn = RowGradient(drawn, found.weight, found.bias)
        return LossAndGradient(found.loss, grad_hidden, [of_drawn, of_targets])


def draw_log_uniform(num_words: int, count: int, generator: torch.Generator) -> tuple[Tensor, int]:
    """Draw distinct words, P(k) = log((k + 2) / (k + 1)) / log(V + 1); return them and the count of draws."""
    if count == num_words:
        return torch.arange(num_words), 0
    seen = np.empty(0, np.int64)
    while True:
        uniform = torch.rand(2 * count, generator=generator, dtype=torch.float64).numpy()
        more = np.minimum(np.exp(uniform * np.log(num_words + 1)).astype(np.int64) - 1, num_words - 1)
        seen = np.concatenate([seen, more])
        words, first = np.unique(seen, return_index=True)
        if len(words) >= count:
            taken = np.argsort(first)[:count]  # the first to be drawn
            return torch.from_numpy(words[taken]), int(first[taken[-1]]) + 1


def log_expected_count(words: Tensor, num_words: int, tries: int) -> Tensor:
    """Return the log of the chance that `tries` draws contain a word; 0 if all words were taken."""
    if not tries:
        return torch.zeros(words.shape, device=words.device)
    words = words.double()
    chance = ((words + 2) / (words + 1)).log() / np.log(num_words + 1)
    return (-torch.expm1(tries * torch.log1p(-chance))).log().float()


def coalesce(gradients: list[RowGradient]) -> RowGradient:
    """Sum gradients so that every row occurs once, in ascending order."""
    rows, inverse = torch.unique(torch.cat([g.rows for g in gradients]), return_inverse=True)
    weight = gradients[0].weight.new_zeros(len(rows), gradients[0].weight.shape[1])
    weight.index_add_(0, inverse, torch.cat([g.weight for g in gradients]))
    bias = weight.new_zeros(len(rows)).index_add_(0, inverse, torch.cat([g.bias for g in gradients]))
    return RowGradient(rows, weight, bias)


@torch.no_grad()
def _over_rows(
    table: SoftmaxTable, rows: Tensor, hidden: Tensor, columns: Tensor, scale: float, precision: Precision
) -> tuple[float, Tensor, RowGradient]:
    """Return loss and gradients of a softmax over some rows; `columns` (n,) are the targets among them."""
    whole = len(rows) == len(table.weight)
    weight, bias = (table.weight, table.bias) if whole else (table.weight[rows], table.bias[rows])
    found = softmax_gradients(hidden, weight, bias, columns, None, precision)
    for grad in (found.weight, found.bias, found.hidden):
        grad.mul_(scale)
    return found.loss, found.hidden, RowGradient(rows, found.weight, found.bias)
