"""The head that tags tokens: a linear layer, and over it a CRF or each token by itself."""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.model import CRF
from elmokit.tasks.decisions import Decision
from elmokit.tasks.examples import Example
from elmokit.tasks.rnn import Hidden
from elmokit.tasks.schemes import OUTSIDE, Scheme, find_spans, is_legal


class TaggerHead(nn.Module):
    """Tags for tokens.

    Args:
        dim: of the vectors.
        tags: that there are.
        scheme: of the tags, which says what may follow what.
        crf: whether to look at whole sequences.
        weights: (K,) how much each tag counts; without a CRF.
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

    def loss(self, hidden: Hidden, examples: Sequence[Example]) -> Tensor:
        """The mean loss of a token."""
        emissions = self.linear(hidden.vectors)  # (S, K)
        ids = [self._ids[tag] for example in examples for tag in example.tags]
        gold = torch.tensor(ids, device=emissions.device)  # (S,)
        if self.crf is None:
            return functional.cross_entropy(emissions, gold, self.weights)
        return self.crf.loss(emissions, gold, hidden.packing) / len(gold)

    def decide(self, hidden: Hidden) -> list[Decision]:
        """The likeliest tags of each sentence."""
        lengths = hidden.lengths.tolist()
        if not len(hidden.vectors):
            return [Decision() for _ in lengths]
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
        decisions, start = [], 0
        for length in lengths:
            tags = [self.tags[number] for number in ids[start : start + length]]
            spans = []
            for span in find_spans(tags) if self.scheme != "plain" else []:
                run = slice(start + span.start, start + span.end)
                certain = prod(of_chosen[run]) if beliefs is None else beliefs.of_run(run.start, ids[run])
                spans.append((span, certain))
            decisions.append(Decision(tags, of_chosen[start : start + length], spans))
            start += length
        return decisions


def legal_steps(tags: Sequence[str], scheme: Scheme) -> Tensor:
    """(K + 1, K + 1) whether one tag may follow another; the boundary, last, is like "O"."""
    known = [*tags, OUTSIDE]
    return torch.tensor([[is_legal(before, after, scheme) for after in known] for before in known])
