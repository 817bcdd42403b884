"""The head that labels whole texts: pooling over the tokens, and a linear layer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.tasks.classifier.data import LabelledText
from elmokit.tasks.core import HeadSettings, Hidden, Item, TaskSettings, TextPooling, TokenPooling, log_odds


@dataclass(frozen=True, kw_only=True)
class ClassifierHeadSettings(HeadSettings):
    """The settings of a classifier's head.

    Attributes:
        pooling: how the vectors of the tokens become one.
        multi_label: whether a text may have any number of labels.
    """

    pooling: TokenPooling = "attention"
    multi_label: bool = False


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings(TaskSettings):
    """All settings of a classifier."""

    head: ClassifierHeadSettings = field(default_factory=ClassifierHeadSettings)


@dataclass(frozen=True)
class PredictedLabels:
    """The labels of one text: those that were chosen, and the probability of every label."""

    labels: list[str]
    scores: dict[str, float] = field(default_factory=dict)


class ClassifierHead(nn.Module):
    """Labels for texts.

    Args:
        dim: size of the vectors.
        labels: the label set.
        pooling: see `TextPooling`.
        multi_label: whether each label is predicted independently; else exactly one is true.
        weights: (K,) weight of each label in the loss.
    """

    weights: Tensor | None

    def __init__(
        self,
        dim: int,
        labels: Sequence[str],
        *,
        pooling: TokenPooling,
        multi_label: bool,
        weights: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.labels = list(labels)
        self.multi_label = multi_label
        self.pooling = TextPooling(pooling, dim)
        self.linear = nn.Linear(dim, len(labels))
        self.register_buffer("weights", weights, persistent=False)
        self._ids = {label: number for number, label in enumerate(labels)}

    def loss(self, hidden: Hidden, examples: Sequence[LabelledText]) -> Tensor:
        """Return the mean loss of a text."""
        logits = self._logits(hidden)  # (B, K)
        if not self.multi_label:
            gold = torch.tensor([self._ids[example.labels[0]] for example in examples], device=logits.device)
            return functional.cross_entropy(logits, gold, self.weights)
        several = torch.zeros_like(logits)  # (B, K)
        for row, example in enumerate(examples):
            several[row, [self._ids[label] for label in example.labels]] = 1.0
        return functional.binary_cross_entropy_with_logits(logits, several, pos_weight=self.weights)

    def decode(self, hidden: Hidden, items: Sequence[Item]) -> list[PredictedLabels]:
        """Return the most probable label of each text, or all labels with a probability above one half."""
        logits = self._logits(hidden)  # (B, K)
        probabilities = torch.sigmoid(logits) if self.multi_label else logits.softmax(dim=1)
        outputs = []
        for row in probabilities.tolist():
            scores = dict(zip(self.labels, row, strict=True))
            likely = [label for label, probability in scores.items() if probability > 0.5]
            chosen = likely if self.multi_label else [max(scores, key=scores.__getitem__)]
            outputs.append(PredictedLabels(chosen, scores))
        return outputs

    def evidence(self, hidden: Hidden, items: Sequence[Item], key: int) -> Tensor:
        """Return the log-odds of the label with this number, (B,)."""
        logits = self._logits(hidden)  # (B, K)
        return logits[:, key] if self.multi_label else log_odds(logits, key)

    def _logits(self, hidden: Hidden) -> Tensor:
        logits: Tensor = self.linear(self.pooling(hidden.vectors, hidden.lengths))  # (B, K)
        return logits
