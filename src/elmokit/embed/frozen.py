"""x."""

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.kernels import Precision, Product, make_product, side_by_side
from elmokit.model import CharCNN, Highway, LexiconEncoder

ROWS_TOGETHER = 8


class _Encoder:
    """The character encoder with its tables made once; a lexicon has too many characters for that."""

    def __init__(self, encoder: CharCNN | LexiconEncoder, precision: Precision) -> None:
        self._encoder = encoder
        characters = encoder if isinstance(encoder, CharCNN) else encoder.characters
        self._tables = [table.detach() for table in encoder.tables()] if encoder is characters else []
        self._highways = [
            [make_product(precision, part.weight, part.bias) for part in (highway.gate, highway.transform)]
            for highway in characters.highways
            if isinstance(highway, Highway)
        ]
        linear = encoder.projection
        self._projection = None if linear is None else make_product(precision, linear.weight, linear.bias)

    def __call__(self, ids: Tensor, used: Tensor, words: Tensor | None = None) -> Tensor:
        encoder = self._encoder
        if isinstance(encoder, CharCNN):
            x = encoder.convolve(ids, used, self._tables)  # (U, F)
        else:
            x = encoder.convolve(ids, used)
        more = -len(x) % ROWS_TOGETHER
        x = functional.pad(x, (0, 0, 0, more))  # (U + more, F)
        for highway in self._highways:
            # For the few new words of one sentence the time goes into reading the weights: each thread half.
            gate, transformed = side_by_side(partial(_apply, x), highway, x.device)  # (U + more, F) each
            x = torch.lerp(x, functional.relu_(transformed), gate.sigmoid_())
        if isinstance(encoder, LexiconEncoder):
            x = encoder.with_word(x, None if words is None else functional.pad(words, (0, more)))
        return (x if self._projection is None else self._projection(x))[: len(ids)]


def _apply(x: Tensor, product: Product) -> Tensor:
    return product(x)
