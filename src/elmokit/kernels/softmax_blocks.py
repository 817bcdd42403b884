"""Softmax over some words with loss and gradients computed together, in blocks that stay in the cache.

Where there is a native kernel for the precision, it does the same (`native/softmax.h`).

Shapes: n positions, K words, P projection.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from elmokit.kernels.native import SoftmaxGradients, native_softmax, training_engine
from elmokit.kernels.precision import Precision, make_product

# Scores of one block of positions (8 MB in float32); more would not fit the cache.
_BLOCK_NUMBERS = 2 * 1024 * 1024


@torch.no_grad()
def softmax_gradients(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor,
    columns: Tensor,
    score: Tensor | None,
    precision: Precision,
) -> SoftmaxGradients:
    """Return loss and gradients of a softmax over the words.

    Args:
        hidden: (n, P).
        weight: (K, P).
        bias: (K,).
        columns: (n,) the target of each position among the words. With `score`, the word to leave out there,
            or -1.
        score: (n,) scores of targets that stand beside the words.
        precision: Of the matrix products.
    """
    engine = training_engine(precision, hidden)
    if engine is not None:
        return native_softmax(engine, hidden, weight, bias, columns, score)
    product, back = make_product(precision, weight, bias), make_product(precision, weight.T)
    grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(bias)
    grad_hidden = torch.empty_like(hidden)
    grad_score = None if score is None else torch.empty_like(score)
    words, loss = len(weight), 0.0
    for span, logits, probability in _blocks(hidden, words + (score is not None)):
        product(hidden[span], logits[:, :words])
        if score is not None:
            hit = (columns[span] >= 0).nonzero().squeeze(1)
            logits[hit, columns[span][hit]] = -torch.inf
            logits[:, -1] = score[span]
        torch.softmax(logits, dim=1, out=probability)  # (b, K), or (b, K + 1)
        if grad_score is not None:
            true = probability[:, -1]
            loss -= float(true.log().sum())
            torch.sub(true, 1, out=grad_score[span])
        else:
            target = columns[span, None]
            loss -= float(probability.gather(1, target).log().sum())
            probability.scatter_add_(1, target, probability.new_full(target.shape, -1.0))
        others = probability[:, :words]
        grad_bias += others.sum(0)
        if precision == "bfloat16":  # converted once for both products
            others = others.bfloat16()
        back(others, grad_hidden[span])
        _add_product(grad_weight, others.T, hidden[span])
    return SoftmaxGradients(loss, grad_hidden, grad_weight, grad_bias, grad_score)


def _blocks(hidden: Tensor, columns: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield blocks of positions with memory for scores and probabilities, (b, columns) each."""
    most = min(len(hidden), max(16, _BLOCK_NUMBERS // columns))
    aligned = -(-columns // 16) * 16  # rows aligned to cache lines are written a quarter faster
    logits, probability = hidden.new_empty(2, most, aligned)[:, :, :columns]
    for start in range(0, len(hidden), most):
        span = slice(start, min(start + most, len(hidden)))
        size = span.stop - span.start
        yield span, logits[:size], probability[:size]


def _add_product(target: Tensor, a: Tensor, b: Tensor) -> None:
    """Add a · b to `target`, in the precision of a."""
    if a.dtype == target.dtype:
        target.addmm_(a, b)
    else:
        target.add_(a @ b.to(a.dtype))
