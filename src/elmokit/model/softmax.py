"""The output layer of the language model: probabilities of words, plain or adaptive."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from elmokit.errors import ConfigError

# Logits are computed in blocks of 1024 × 4096 (16 MB in float32), however large the vocabulary.
_ROWS_AT_ONCE = 1024
_WORDS_AT_ONCE = 4096


@dataclass(frozen=True)
class Softmax:
    """The output layer of the language model, shared by both directions: logits = h · weightᵀ + bias.

    Without cutoffs, p(w) = softmax(logits)_w. Cutoffs c_1 < … < c_k make it an adaptive softmax (Grave et al.
    2017, with tails as wide as the head). They split the words into a head [0, c_1) and k clusters
    [c_i, c_{i+1}), the last of which ends at V:

        p(w) = softmax(head)_w                                              for w in the head
        p(w) = softmax(head)_{cluster i} · softmax(logits of cluster i)_w   for w in cluster i

    where `head` holds the logits of the head's words followed by the k cluster logits
    h · cluster_weightᵀ + cluster_bias. No gradients are computed. Log-sum-exps of blocks are added up in
    float64, so that sums over a large vocabulary stay exact.

    Attributes:
        weight: (V, P).
        bias: (V,).
        cutoffs: c_1 … c_k; empty for a plain softmax.
        cluster_weight: (k, P), with cutoffs.
        cluster_bias: (k,), with cutoffs.
    """

    weight: Tensor
    bias: Tensor
    cutoffs: tuple[int, ...] = ()
    cluster_weight: Tensor | None = None
    cluster_bias: Tensor | None = None

    def __post_init__(self) -> None:
        words, *dim = self.weight.shape
        clusters = len(self.cutoffs)
        expected: dict[str, tuple[Tensor | None, tuple[int, ...]]] = {"bias": (self.bias, (words,))}
        if self.cutoffs or self.cluster_weight is not None or self.cluster_bias is not None:
            expected["cluster_weight"] = (self.cluster_weight, (clusters, *dim))
            expected["cluster_bias"] = (self.cluster_bias, (clusters,))
        for name, (tensor, shape) in expected.items():
            found = "missing" if tensor is None else list(tensor.shape)
            if found != list(shape):
                raise ConfigError(
                    f"{name} of the softmax is {found}; {words} words and {clusters} cutoffs ask for "
                    f"{list(shape)}"
                )
        if any(end <= start for start, end in pairwise((0, *self.cutoffs, words))):
            raise ConfigError(
                f"the cutoffs of the softmax are {list(self.cutoffs)}; expected rising numbers between 0 "
                f"and its {words} words"
            )

    def to(self, device: torch.device) -> "Softmax":
        """Return a copy on another device."""
        moved = {name: tensor.detach().to(device) for name, tensor in self.tensors().items()}
        return Softmax(**moved, cutoffs=self.cutoffs)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name; those of the clusters only if there are cutoffs."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    @torch.no_grad()
    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """Return the natural logarithm of every word's probability, (n, P) → (n, V)."""
        logits = torch.addmm(self.bias, hidden, self.weight.T)  # (n, V)
        head, *tails = logits.tensor_split(self.cutoffs, dim=1)  # views
        of_clusters = self._cluster_logits(hidden)  # (n, k)
        total = torch.cat([head, of_clusters], dim=1).logsumexp(dim=1, keepdim=True)  # (n, 1)
        for tail, of_cluster in zip(tails, of_clusters.T, strict=True):
            tail += of_cluster[:, None] - total - tail.logsumexp(dim=1, keepdim=True)
        head -= total
        return logits

    @torch.no_grad()
    def target_log_probabilities(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the natural logarithm of each row's target probability, (n, P) and (n,) → (n,).

        Memory is bounded for any n and V. Clusters without a target are not computed.
        """
        parts = zip(*(torch.split(x, _ROWS_AT_ONCE) for x in (hidden, targets)), strict=True)
        return torch.cat([self._of_targets(*part) for part in parts])

    def _of_targets(self, hidden: Tensor, targets: Tensor) -> Tensor:
        words = len(self.weight)
        head, *tails = pairwise((0, *self.cutoffs, words))
        of_clusters = self._cluster_logits(hidden).double()  # (n, k)
        target, total = self._target_and_total(hidden, targets, *head)  # (n,) each
        total = torch.cat([total[:, None], of_clusters], dim=1).logsumexp(dim=1)  # (n,)
        for cluster, (start, end) in enumerate(tails):
            (rows,) = torch.where((targets >= start) & (targets < end))  # (m,)
            if len(rows):
                inside, normaliser = self._target_and_total(hidden[rows], targets[rows], start, end)
                target[rows] = of_clusters[rows, cluster] + inside - normaliser
        return (target - total).to(hidden.dtype)

    def _target_and_total(
        self, hidden: Tensor, targets: Tensor, start: int, end: int
    ) -> tuple[Tensor, Tensor]:
        """Return each target's logit (NaN if outside) and the log-sum-exp of [start, end), in float64."""
        target = torch.full_like(targets, torch.nan, dtype=torch.float64)  # (n,)
        totals = []
        for first in range(start, end, _WORDS_AT_ONCE):
            words = slice(first, min(first + _WORDS_AT_ONCE, end))
            logits = torch.addmm(self.bias[words], hidden, self.weight[words].T)  # (n, block)
            totals.append(logits.logsumexp(dim=1).double())
            (rows,) = torch.where((targets >= words.start) & (targets < words.stop))
            target[rows] = logits[rows, targets[rows] - first].double()
        return target, torch.stack(totals).logsumexp(dim=0)

    def _cluster_logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of the k clusters, (n, k); k is 0 without cutoffs."""
        if self.cluster_weight is None or self.cluster_bias is None:
            return hidden.new_empty(len(hidden), 0)
        return torch.addmm(self.cluster_bias, hidden, self.cluster_weight.T)
