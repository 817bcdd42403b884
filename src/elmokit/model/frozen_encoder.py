"""A character encoder made ready for embedding: the numbers of the module, without needless work."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from elmokit.kernels import ROWS_TOGETHER, Precision, make_highway, make_linear


class FrozenEncoder:
    """Convolutions, highways and projection with all products laid out once.

    Args:
        convolve: From ids (U, C) and used characters (U,) to (U, F).
        highways: The modules that follow.
        join: What puts the inputs after the first two before the filters, (U, F) → (U, F'); None for nothing.
        projection: The last module, or None.
        precision: Of the products.
    """

    def __init__(
        self,
        convolve: Callable[[Tensor, Tensor], Tensor],
        highways: Iterable[Any],
        join: Callable[..., Tensor] | None,
        projection: nn.Linear | None,
        precision: Precision,
    ) -> None:
        self._convolve, self._join = convolve, join
        self._highways = [make_highway(precision, one.gate, one.transform) for one in highways]
        self._projection = None if projection is None else make_linear(precision, projection)

    def __call__(self, ids: Tensor, used: Tensor, *others: Tensor) -> Tensor:
        """Return the vectors (U, P) of types."""
        x = self._convolve(ids, used)  # (U, F)
        more = -len(x) % ROWS_TOGETHER
        x = functional.pad(x, (0, 0, 0, more))  # (U + more, F)
        for highway in self._highways:
            x = highway(x)
        if self._join is not None:
            x = self._join(x, *(functional.pad(other, (0, more)) for other in others))
        return (x if self._projection is None else self._projection(x))[: len(ids)]
