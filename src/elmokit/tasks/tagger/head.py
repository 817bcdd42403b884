"""The head that tags tokens: a linear layer, and a CRF or a softmax over it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.model import CRF
from elmokit.tasks.core import HeadSettings, Hidden, Item, TaskSettings
from elmokit.tasks.tagger.data import TaggedText
from elmokit.tasks.tagger.schemes import OUTSIDE, Scheme, Span, SpanScheme, find_spans, is_legal


@dataclass(frozen=True, kw_only=True)
class TaggerHeadSettings(HeadSettings):
    """The settings of a tagger's head.

    Attributes:
        crf: whether to score whole tag sequences, with only legal steps; else each token by itself.
        scheme: the tag scheme that is learnt, whatever that of the data.
    """

    crf: bool = True
    scheme: SpanScheme = "BIOES"


@dataclass(frozen=True, kw_only=True)
class TaggerSettings(TaskSettings):
    """All settings of a tagger."""

    head: TaggerHeadSettings = field(default_factory=TaggerHeadSettings)


@dataclass(frozen=True)
class PredictedTags:
    """The tags of one sentence.

    Attributes:
        tags: one for each token, in the scheme that the head learnt.
        probabilities: of each tag.
        spans: in the tags, each with the probability that its tokens have exactly these tags.
    """

    tags: list[str]
    probabilities: list[float] = field(default_factory=list)
    spans: list[tuple[Span, float]] = field(default_factory=list)


class TagRun(NamedTuple):
    """Tokens in a row, from `start` on, and the tags that each of them may have."""

    start: int
    tags: tuple[tuple[str, ...], ...]


class TaggerHead(nn.Module):
    """A tag for each token.

    Args:
        dim: size of the vectors.
        tags: the tag set.
        scheme: the scheme of the tags, which says which tag may follow which.
        crf: whether to score whole tag sequences; else each token by itself.
        weights: (K,) weight of each tag in the loss; without a CRF.
    """

    weights: Tensor | None

    def __init__(
        self, dim: int, tags: Sequence[str], scheme: Scheme, *, crf: bool, weights: Tensor | None = None
    ) -> None:
        super().__init__()
        self.tags = list(tags)
        self.scheme = scheme
        self.linear = nn.Linear(dim, len(tags))
        self.crf = CRF(legal_steps(tags, scheme)) if crf else None
        self.register_buffer("weights", weights, persistent=False)
        self._ids = {tag: number for number, tag in enumerate(tags)}

    def loss(self, hidden: Hidden, examples: Sequence[TaggedText]) -> Tensor:
        """Return the mean loss of a token."""
        emissions = self.linear(hidden.vectors)  # (S, K)
        ids = [self._ids[tag] for example in examples for tag in example.tags]
        gold = torch.tensor(ids, device=emissions.device)  # (S,)
        if self.crf is None:
            return functional.cross_entropy(emissions, gold, self.weights)
        return self.crf.loss(emissions, gold, hidden.packing) / len(gold)

    def decode(self, hidden: Hidden, items: Sequence[Item]) -> list[PredictedTags]:
        """Return the most probable tags of each sentence."""
        lengths = hidden.lengths.tolist()
        if not len(hidden.vectors):
            return [PredictedTags([]) for _ in lengths]
        emissions = self.linear(hidden.vectors)  # (S, K)
        if self.crf is None:
            probabilities = emissions.softmax(dim=1).cpu()
            chosen = probabilities.argmax(dim=1)
            beliefs = None
        else:
            beliefs = self.crf.beliefs(emissions, hidden.packing)
            probabilities = beliefs.of_tokens().cpu()
            chosen = self.crf.best_paths(emissions, hidden.packing).cpu()
        of_chosen = probabilities.gather(1, chosen[:, None])[:, 0].tolist()
        ids = chosen.tolist()
        outputs, start = [], 0
        for length in lengths:
            tags = [self.tags[number] for number in ids[start : start + length]]
            spans = []
            for span in find_spans(tags) if self.scheme != "plain" else []:
                run = slice(start + span.start, start + span.end)
                probability = prod(of_chosen[run]) if beliefs is None else beliefs.of_run(run.start, ids[run])
                spans.append((span, probability))
            outputs.append(PredictedTags(tags, of_chosen[start : start + length], spans))
            start += length
        return outputs

    def evidence(self, hidden: Hidden, items: Sequence[Item], key: TagRun) -> Tensor:
        """Return the log-odds that some tokens of the one text of each item have certain tags, (B,)."""
        emissions = self.linear(hidden.vectors)  # (S, K)
        known = len(self.tags)
        crf = self.crf
        if crf is None:  # tags that do not depend on each other: a CRF whose steps all score zero
            crf = CRF(torch.ones(known + 1, known + 1, dtype=torch.bool)).to(emissions.device)
        allowed = torch.zeros(len(key.tags), known, dtype=torch.bool, device=emissions.device)
        for row, tags in zip(allowed, key.tags, strict=True):
            row[[self._ids[tag] for tag in tags]] = True
        starts = (hidden.lengths.cumsum(0) - hidden.lengths + key.start).to(emissions.device)  # (B,)
        return crf.log_odds(emissions, hidden.packing, starts, allowed)


def legal_steps(tags: Sequence[str], scheme: Scheme) -> Tensor:
    """Return (K + 1, K + 1) whether one tag may follow another; the boundary, last, counts as "O"."""
    known = [*tags, OUTSIDE]
    return torch.tensor([[is_legal(before, after, scheme) for after in known] for before in known])
