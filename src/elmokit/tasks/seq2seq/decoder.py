"""The decoder: two LSTM layers with attention between them, so that training runs over whole texts at once.

With m_i the source tokens' vectors, s their mean, x_t the embedding of the last piece,

    h_t = LSTM(x_t, h_{t-1})                      h_0 = tanh(W s), as for the second layer
    a_t = softmax_i(h_t · W m_i)                  attention to the source (Luong et al. 2015)
    c_t = Σ_i a_ti m_i
    g_t = LSTM([h_t; c_t], g_{t-1})
    o_t = tanh(W [g_t; c_t])
    v(y) = softmax_y(o_t · E_y + b_y)             E are the embeddings x_t is one of

and p(y) = v(y), or, where source tokens may be copied (See et al. 2017),

    k_t = σ(w · [g_t; c_t; x_t])                  p(y) = (1 - k_t) v(y) + k_t Σ a_ti over all i that say y

A source token that is no piece of the vocabulary is y = V + (its first place in the source). Shapes: B items,
R rows (items, or their beams), T source tokens, U pieces of the targets, V vocabulary, D vectors of the head,
N cell, E embedding.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.kernels import Dropout
from elmokit.tasks.core import attention
from elmokit.tasks.seq2seq.target_vocabulary import UNKNOWN

LSTMState = tuple[Tensor, Tensor]  # (1, R, N) each


class SourceMemory(NamedTuple):
    """What the decoder attends to.

    Attributes:
        vectors: (B, T, N) m_i.
        mask: (B, T) where there are tokens.
        copies: (B, T) what each token says: its piece, or V + its first place; None without copying.
    """

    vectors: Tensor
    mask: Tensor
    copies: Tensor | None

    def rows(self, index: Tensor) -> "SourceMemory":
        """Return the memory of the items `index`."""
        copies = None if self.copies is None else self.copies[index]
        return SourceMemory(self.vectors[index], self.mask[index], copies)


@dataclass(frozen=True)
class DecoderState:
    """The states of both layers, and the item that each row (R,) belongs to."""

    first: LSTMState
    second: LSTMState
    owners: Tensor

    def rows(self, index: Tensor) -> "DecoderState":
        """Return the state of the rows `index`."""
        index = index.to(self.owners.device)
        first, second = ((h[:, index], c[:, index]) for h, c in (self.first, self.second))
        return DecoderState(first, second, self.owners[index])


class DecoderSteps(NamedTuple):
    """What the decoder makes of U pieces of each row.

    Attributes:
        outputs: (R, U, E) o_t.
        attention: (R, U, T) a_t.
        copying: (R, U) the logit of k_t; None without copying.
        state: after the last piece.
    """

    outputs: Tensor
    attention: Tensor
    copying: Tensor | None
    state: DecoderState


class AttentionDecoder(nn.Module):
    """See the module.

    Args:
        size: V.
        dim: N, the size of the memory, too.
        embedding: E.
        dropout: rate for embeddings, attention's result and outputs.
        copy: whether source tokens may be copied.
    """

    def __init__(self, size: int, *, dim: int, embedding: int, dropout: float, copy: bool) -> None:
        super().__init__()
        self.size = size
        self.dropout = Dropout(dropout)
        self.embeddings = nn.Embedding(size, embedding)
        self.bias = nn.Parameter(torch.zeros(size))
        self.start = nn.Linear(dim, 2 * dim)
        self.first = nn.LSTM(embedding, dim, batch_first=True)
        self.second = nn.LSTM(2 * dim, dim, batch_first=True)
        self.query = nn.Linear(dim, dim, bias=False)
        self.output = nn.Linear(2 * dim, embedding)
        self.copying = nn.Linear(2 * dim + embedding, 1) if copy else None
        nn.init.normal_(self.embeddings.weight, std=embedding**-0.5)
        for layer in (self.first, self.second):
            nn.init.constant_(
                layer.get_parameter("bias_ih_l0")[dim : 2 * dim], 1.0
            )  # start with an open forget gate

    def begin(self, memory: SourceMemory) -> DecoderState:
        """Return the state before the first piece."""
        lengths = memory.mask.sum(dim=1, keepdim=True).clamp(min=1)
        mean = (memory.vectors * memory.mask[..., None]).sum(dim=1) / lengths  # (B, N)
        first, second = self.start(mean).tanh()[None].chunk(2, dim=-1)  # (1, B, N) each
        first, second = first.contiguous(), second.contiguous()
        owners = torch.arange(len(memory.mask), device=memory.mask.device)
        return DecoderState((first, torch.zeros_like(first)), (second, torch.zeros_like(second)), owners)

    def forward(self, pieces: Tensor, memory: SourceMemory, state: DecoderState) -> DecoderSteps:
        """Read the pieces (R, U) and say what comes after each; copied ones are read as unknown.

        The rows of an item, its beams, stand side by side and share its memory.
        """
        x = self.embeddings(pieces.masked_fill(pieces >= self.size, UNKNOWN))  # (R, U, E)
        x = self.dropout(x)
        h, first = self.first(x, state.first)  # (R, U, N)
        m, mask, _ = memory  # (B, T, N), (B, T)
        together = self.query(h).view(len(m), -1, m.shape[2])  # (B, R/B · U, N)
        weights = attention(together @ m.transpose(1, 2), mask[:, None, :])  # (B, R/B · U, T)
        context = self.dropout((weights @ m).view_as(h))  # (R, U, N)
        weights = weights.view(*h.shape[:2], m.shape[1])  # (R, U, T)
        g, second = self.second(torch.cat([h, context], dim=-1), state.second)  # (R, U, N)
        merged = torch.cat([g, context], dim=-1)  # (R, U, 2N)
        outputs = self.dropout(self.output(self.dropout(merged)).tanh())  # (R, U, E)
        copying = None
        if self.copying is not None:
            copying = self.copying(torch.cat([merged, x], dim=-1))[..., 0]  # (R, U)
        return DecoderSteps(outputs, weights, copying, DecoderState(first, second, state.owners))

    def logits(self, outputs: Tensor) -> Tensor:
        """(…, E) → (…, V)."""
        return functional.linear(outputs, self.embeddings.weight, self.bias)

    def step(
        self, pieces: Tensor, memory: SourceMemory, state: DecoderState, *, beams: int
    ) -> tuple[Tensor, DecoderState]:
        """Read the last pieces (R,) and return log p of the next, (R, V), or (R, V + T) with copying.

        Args:
            pieces: of the items that are not finished, `beams` for each.
            memory: of all items.
            state: of the rows.
            beams: rows of each item.
        """
        copied = memory.copies
        if beams * len(memory.mask) > len(pieces):  # some items are finished
            memory = memory.rows(state.owners[::beams])
        found = self(pieces.to(memory.mask.device)[:, None], memory, state)
        logs = self.logits(found.outputs[:, 0]).log_softmax(dim=1)  # (R, V)
        if found.copying is None or copied is None:
            return logs, found.state
        copying, copies = found.copying, copied[state.owners]  # (R, 1), (R, T)
        shares = logs.new_zeros(len(logs), self.size + copies.shape[1])  # (R, V + T)
        shares = shares.scatter_add(1, copies, found.attention[:, 0])
        written = functional.pad(logs, (0, copies.shape[1]), value=-math.inf)
        either = (functional.logsigmoid(-copying) + written, functional.logsigmoid(copying) + shares.log())
        return torch.logaddexp(*either), found.state

    def loss(
        self, found: DecoderSteps, gold: Tensor, known: Tensor, memory: SourceMemory, smoothing: float
    ) -> Tensor:
        """Return the mean of -log p of the gold pieces (R, U) where `known`, with label smoothing."""
        wanted = gold[known]  # (n,)
        logits = self.logits(found.outputs[known])  # (n, V)
        if found.copying is None or memory.copies is None:
            return functional.cross_entropy(logits, wanted, label_smoothing=smoothing)
        logs, copying = logits.log_softmax(dim=1), found.copying[known]  # (n, V), (n,)
        said = (memory.copies[:, None, :] == gold[..., None]) & memory.mask[:, None, :]  # (R, U, T)
        shares = (found.attention * said).sum(dim=2)[known]  # (n,)
        written = logs.gather(1, wanted.clamp(max=self.size - 1)[:, None])[:, 0]
        # Two numbers whose exponential is zero, and whose gradient is finite.
        written = torch.where(wanted < self.size, written, -1e4) + functional.logsigmoid(-copying)
        copied = (shares + 1e-20).log() + functional.logsigmoid(copying)
        smoothed = -logs.mean(dim=1)
        return ((smoothing - 1) * torch.logaddexp(written, copied) + smoothing * smoothed).mean()
