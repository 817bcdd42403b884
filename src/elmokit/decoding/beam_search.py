"""Search for sequences, token by token, with any model: beam search, and sampling.

A beam search keeps the K most probable beginnings of each item, and returns the sequences with the best

    score(y) = log p(y) / ((5 + |y|) / 6)^α         (Wu et al. 2016, equation 14)

where |y| counts the token that ends y, and α is the length penalty: 0 prefers short sequences. An item is
finished when no beginning that is kept could become better than the best sequence found. Shapes: B items that
are not finished, K beams, R = B·K rows, V tokens, t tokens so far.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias, TypeVar

import torch
from torch import Tensor

from elmokit.base import check_number, check_whole_number
from elmokit.decoding.constraints import Constraints
from elmokit.decoding.sampling import sample


class SearchState(Protocol):
    """What a model remembers of each row between two steps."""

    def rows(self, index: Tensor) -> Self:
        """Return the state of the rows `index`, in that order; a row may occur several times."""
        ...


StateT = TypeVar("StateT", bound=SearchState)
# From the last token of each row (R,), and the state, to log-probabilities of the next (R, V), and the state.
Step: TypeAlias = Callable[[Tensor, StateT], tuple[Tensor, StateT]]


@dataclass(frozen=True)
class FoundSequence:
    """A sequence that was found.

    Attributes:
        tokens: without the one that ends it.
        log_probability: of the tokens and the end.
        score: the log-probability with the length penalty.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float


def penalised(log_probability: float, length: int, penalty: float) -> float:
    """Return the score of a sequence; see the module.

    Args:
        log_probability: of the tokens and the end.
        length: tokens, with the end.
        penalty: α.

    Example:
        >>> penalised(-6.0, 7, 1.0), penalised(-6.0, 7, 0.0)
        (-3.0, -6.0)
    """
    return log_probability / float(((5 + length) / 6) ** penalty)


@torch.no_grad()
def beam_search(
    step: Step[StateT],
    state: StateT,
    *,
    begin: int,
    end: int,
    most: Sequence[int],
    beam: int = 5,
    length_penalty: float = 1.0,
    constraints: Constraints = Constraints(),  # noqa: B008 (it cannot be changed)
    prefixes: Sequence[Sequence[int]] = (),
) -> list[list[FoundSequence]]:
    """Search for the best sequences of several items at once.

    Args:
        step: the model; see `Step`.
        state: before the first token, a row for each item.
        begin: what `step` gets as the token before the first one.
        end: the token that ends a sequence.
        most: tokens that a sequence of each item may have, without the end.
        beam: K.
        length_penalty: α.
        constraints: rules that all sequences keep.
        prefixes: for each item, tokens that its sequences begin with.

    Returns:
        For each item at most K sequences, the best first, and at least one.

    Raises:
        ConfigError: a number is out of range.
    """
    check_whole_number("beam", beam, least=1)
    check_number("length_penalty", length_penalty, least=0)
    beams = _Beams(most, beam=beam, penalty=length_penalty, end=end)
    state = state.rows(torch.arange(len(most)).repeat_interleave(beam))
    last = torch.full((len(most) * beam,), begin)
    while beams.items:
        logs, state = step(last, state)
        owners = [item for item in beams.items for _ in range(beam)]
        logs = constraints.apply(
            *(logs, beams.tokens.to(logs.device)),
            end=end,
            most=[most[item] for item in owners],
            prefixes=[prefixes[item] for item in owners] if prefixes else (),
        )
        state = state.rows(beams.advance(logs))
        last = beams.tokens[:, -1]
    return [sorted(found, key=lambda one: -one.score)[:beam] for found in beams.found]


class _Beams:
    """The beginnings that are kept, and the sequences that were found."""

    def __init__(self, most: Sequence[int], *, beam: int, penalty: float, end: int) -> None:
        self.items = list(range(len(most)))
        self.found: list[list[FoundSequence]] = [[] for _ in most]
        self.tokens = torch.empty(len(most) * beam, 0, dtype=torch.long)  # (R, t)
        self._totals = torch.full((len(most), beam), -math.inf)  # (B, K) log p of each beginning
        self._totals[:, 0] = 0.0  # at first all are the same
        self._most, self._beam, self._penalty, self._end = most, beam, penalty, end

    def advance(self, logs: Tensor) -> Tensor:
        """Lengthen the beginnings by the next tokens' (R, V); return the rows that go on."""
        size, width = logs.shape[1], self._beam
        totals = (self._totals[..., None] + logs.cpu().view(len(self.items), width, size)).flatten(1)
        best, places = totals.topk(min(2 * width, totals.shape[1]), dim=1)  # (B, 2K)
        parents = places // size + width * torch.arange(len(self.items))[:, None]  # (B, 2K) rows
        ends = places % size == self._end
        for row, column in torch.nonzero(ends[:, :width] & ~best[:, :width].isneginf()).tolist():
            self._keep(row, int(parents[row, column]), float(best[row, column]))
        self._totals, chosen = best.masked_fill(ends, -math.inf).topk(width, dim=1)  # (B, K)
        parents = parents.gather(1, chosen)
        new = (places % size).gather(1, chosen)  # (B, K)
        going = torch.tensor([not self._is_finished(row) for row in range(len(self.items))], dtype=torch.bool)
        self.items = [item for item, goes in zip(self.items, going.tolist(), strict=True) if goes]
        self._totals, rows = self._totals[going], parents[going].flatten()
        self.tokens = torch.cat([self.tokens[rows], new[going].flatten()[:, None]], dim=1)
        return rows

    def _keep(self, row: int, parent: int, total: float) -> None:
        tokens = tuple(self.tokens[parent].tolist())
        score = penalised(total, len(tokens) + 1, self._penalty)
        self.found[self.items[row]].append(FoundSequence(tokens, total, score))

    def _is_finished(self, row: int) -> bool:
        item, total = self.items[row], float(self._totals[row, 0])
        if not self.found[item]:
            return False
        attainable = penalised(total, self._most[item] + 1, self._penalty)  # at best all else is certain
        return max(one.score for one in self.found[item]) >= attainable


@torch.no_grad()
def sample_sequences(
    step: Step[StateT],
    state: StateT,
    *,
    begin: int,
    end: int,
    most: Sequence[int],
    generators: Sequence[torch.Generator],
    temperature: float = 1.0,
    top_p: float = 1.0,
    constraints: Constraints = Constraints(),  # noqa: B008 (it cannot be changed)
    prefixes: Sequence[Sequence[int]] = (),
) -> list[FoundSequence]:
    """Sample a sequence for each item; what is not said here is as for `beam_search`.

    Args:
        step: the model.
        state: before the first token.
        begin: what `step` gets as the token before the first one.
        end: the token that ends a sequence.
        most: tokens that each sequence may have; of one that reaches this many the end is not counted.
        generators: of random numbers, on the CPU, one for each item: so none depends on the others.
        temperature: below 1 for likelier tokens, 0 for the most likely; see `sample`.
        top_p: sample among the most likely tokens whose probabilities sum to this much.
        constraints: rules that all sequences keep.
        prefixes: for each item, tokens that its sequence begins with.
    """
    items = list(range(len(most)))
    tokens: list[list[int]] = [[] for _ in items]
    totals = [0.0] * len(items)
    last = torch.full((len(items),), begin)
    while items:
        going = [row for row, item in enumerate(items) if len(tokens[item]) < most[item]]
        if len(going) < len(items):
            items, last = [items[row] for row in going], last[going]
            state = state.rows(torch.tensor(going, dtype=torch.long))
            continue
        logs, state = step(last, state)
        allowed = constraints.apply(
            *(logs, torch.tensor([tokens[item] for item in items]).view(len(items), -1)),
            end=end,
            most=[most[item] for item in items],
            prefixes=[prefixes[item] for item in items] if prefixes else (),
        ).cpu()
        going = []
        for row, item in enumerate(items):
            chosen = sample(allowed[row], generator=generators[item], temperature=temperature, top_p=top_p)
            totals[item] += float(logs[row, chosen])
            if chosen != end:
                tokens[item].append(chosen)
                going.append(row)
        state = state.rows(torch.tensor(going, dtype=torch.long))
        items = [items[row] for row in going]
        last = torch.tensor([tokens[item][-1] for item in items], dtype=torch.long)
    return [FoundSequence(tuple(found), total, total) for found, total in zip(tokens, totals, strict=True)]
