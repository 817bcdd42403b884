"""Texts of different lengths side by side, for heads that relate the tokens of several texts."""

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


def pad(vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """(S, D), (B,) → (B, T, D) with zeros after the end of a text, and (B, T) where its tokens are.

    `padded[mask]` is (S, D) again, in the same order.

    Example:
        >>> padded, mask = pad(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([1, 2]))
        >>> padded[:, :, 0].tolist(), mask.tolist()
        ([[1.0, 0.0], [2.0, 3.0]], [[True, False], [True, True]])
    """
    padded = pad_sequence(list(torch.split(vectors, lengths.tolist())), batch_first=True)  # (B, T, D)
    places = torch.arange(padded.shape[1], device=padded.device)
    return padded, places < lengths.to(padded.device)[:, None]


def attention(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over the last dimension, of the places in the mask; zeros if there are none.

    Args:
        scores: any shape.
        mask: true where there is a token; of the same shape, or one that broadcasts to it.
    """
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1) * mask
