"""Rules that sequences keep: tokens that are refused at the next place.

Shapes: R rows, V tokens, t tokens so far.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from elmokit.base import check_whole_number


@dataclass(frozen=True)
class Constraints:
    """Rules that every sequence of a search keeps.

    Attributes:
        banned: tokens that never occur.
        least: tokens that a sequence has at least, without its end.
        no_repeat: no run of so many tokens occurs twice; 0 for no such rule.
    """

    banned: tuple[int, ...] = ()
    least: int = 0
    no_repeat: int = 0

    def __post_init__(self) -> None:
        check_whole_number("least", self.least, least=0)
        check_whole_number("no_repeat", self.no_repeat, least=0)

    def apply(
        self,
        logs: Tensor,
        tokens: Tensor,
        *,
        end: int,
        most: Sequence[int],
        prefixes: Sequence[Sequence[int]] = (),
    ) -> Tensor:
        """Return log-probabilities in which what is refused has -inf; a row without a choice has to end.

        Args:
            logs: (R, V) of the next tokens.
            tokens: (R, t) those that the rows have.
            end: the token that ends a sequence.
            most: for each row, how many tokens it may have.
            prefixes: for each row, the tokens that it begins with; none for no such rule.
        """
        logs, ends, length = logs.clone(), logs[:, end].clone(), tokens.shape[1]
        logs[:, list(self.banned)] = -math.inf
        if length < self.least:
            logs[:, end] = -math.inf
        if self.no_repeat and length >= self.no_repeat:
            for row, known in enumerate(tokens.tolist()):
                logs[row, _repeating(known, self.no_repeat)] = -math.inf
        for row, prefix in enumerate(prefixes):
            if length < len(prefix):  # whatever the other rules say
                chosen = logs[row, prefix[length]].clamp(min=torch.finfo(logs.dtype).min)
                logs[row] = -math.inf
                logs[row, prefix[length]] = chosen
        over = torch.tensor([length >= limit for limit in most], device=logs.device)
        logs[over] = -math.inf
        stuck = logs.isneginf().all(dim=1)
        logs[stuck, end] = ends[stuck]
        return logs


def _repeating(tokens: Sequence[int], size: int) -> list[int]:
    """Return the tokens that would repeat a run of `size` tokens.

    >>> _repeating([1, 2, 3, 1, 2], 3)
    [3]
    """
    last = tokens[len(tokens) - size + 1 :]
    starts = range(len(tokens) - size + 1)
    return [tokens[at + size - 1] for at in starts if tokens[at : at + size - 1] == last]
