"""A character encoder made ready for embedding: the numbers of the module, without needless work."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.kernels import ROWS_TOGETHER, Precision, Product, make_product, side_by_side


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
        def product(linear: nn.Linear) -> Product:
            return make_product(precision, linear.weight, linear.bias)

        self._convolve, self._join = convolve, join
        self._highways = [[product(highway.gate), product(highway.transform)] for highway in highways]
        self._projection = None if projection is None else product(projection)

    def __call__(self, ids: Tensor, used: Tensor, *others: Tensor) -> Tensor:
        """Return the vectors (U, P) of types."""
        x = self._convolve(ids, used)  # (U, F)
        more = -len(x) % ROWS_TOGETHER
        x = functional.pad(x, (0, 0, 0, more))  # (U + more, F)
        for highway in self._highways:
            # For the few new words of one sentence the time goes into reading the weights: each thread half.
            gate, transformed = side_by_side(partial(_apply, x), highway, x.device)  # (U + more, F) each
            x = torch.lerp(x, functional.relu_(transformed), gate.sigmoid_())
        if self._join is not None:
            x = self._join(x, *(functional.pad(other, (0, more)) for other in others))
        return (x if self._projection is None else self._projection(x))[: len(ids)]


def _apply(x: Tensor, product: Product) -> Tensor:
    return product(x)
