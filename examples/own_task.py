"""A task of your own: do two sentences say the same?  Usage: python examples/own_task.py DATA ENCODER OUT."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.tasks import Scores, TaskModel, TaskSettings, train
from elmokit.tasks.core import Formats, Hidden, count_items, numbered_lines, scores_from_counts


@dataclass(frozen=True)
class Pair:
    """The tokens of two sentences, and whether the two say the same (None if that is to be predicted)."""

    texts: tuple[tuple[str, ...], ...]
    same: bool | None = None
    where: str = field(default="", repr=False)


def read_pairs(path: Path, tokenize: Any) -> Iterator[Pair]:
    """Read a file with 1 (the same) or 0, first sentence and second sentence on each line."""
    for where, line in numbered_lines(path):
        label, *texts = line.split("\t")
        yield Pair(tuple(tuple(tokenize(text)) for text in texts), label == "1", where)


class PairHead(nn.Module):
    """The probability that two sentences say the same, from their mean vectors u and v: [|u - v|; u · v]."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * dim, 1)

    def loss(self, hidden: Hidden, examples: Sequence[Pair]) -> Tensor:
        gold = torch.tensor([float(example.same is True) for example in examples])  # (B,)
        return nn.functional.binary_cross_entropy_with_logits(self._logits(hidden), gold)

    def decode(self, hidden: Hidden, items: Sequence[Pair]) -> list[float]:
        return self._logits(hidden).sigmoid().tolist()

    def _logits(self, hidden: Hidden) -> Tensor:
        texts = hidden.vectors.split(hidden.lengths.tolist())  # first, second, first, second, …
        means = torch.stack([text.sum(dim=0) / max(1, len(text)) for text in texts])  # (2B, D)
        u, v = means[0::2], means[1::2]  # (B, D) each
        return self.linear(torch.cat([(u - v).abs(), u * v], dim=1)).squeeze(1)  # (B,)


@dataclass(frozen=True)
class PairTask:
    """The task; `elmokit.tasks.core.Task` says what each method is for."""

    name = "pair"
    settings_type = TaskSettings
    formats = Formats({"pairs": read_pairs}, {".tsv": "pairs"})

    settings: TaskSettings

    @classmethod
    def fit(cls, settings: TaskSettings, examples: Sequence[Pair]) -> tuple["PairTask", list[Pair]]:
        return cls(settings), list(examples)

    def prepare(self, examples: Sequence[Pair], *, allow_unseen: bool) -> list[Pair]:
        return list(examples)

    def make_head(self, dim: int, examples: Sequence[Pair] = ()) -> PairHead:
        return PairHead(dim)

    def score(self, examples: Sequence[Pair], outputs: Sequence[float], *, strict: bool = False) -> Scores:
        pairs = [self.describe(*both) for both in zip(examples, outputs, strict=True)]
        counted = count_items([{(0, gold)} for gold, _ in pairs], [{(0, found)} for _, found in pairs])
        return scores_from_counts({"accuracy": counted}, pairs=pairs)

    def describe(self, example: Pair, output: float) -> tuple[str, str]:
        return ("same" if example.same else "other"), ("same" if output > 0.5 else "other")

    def read_input(self, given: tuple[str, str], tokenize: Any) -> Pair:
        return Pair(tuple(tuple(token.text for token in tokenize(text)) for text in given))

    def present(self, item: Pair, output: float) -> float:
        return output


class PairModel(TaskModel[Pair, float, float]):
    """A model that predicts the probability that two sentences say the same."""

    task_type = PairTask


if __name__ == "__main__":
    train(PairModel, sys.argv[1], encoder=sys.argv[2], out=sys.argv[3], progress=True)
    print(*PairModel.load(sys.argv[3]).predict([("Rates rose on Monday.", "On Monday, rates went up.")]))
