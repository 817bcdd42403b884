"""A transformer layer that looks back only, in both directions (Vaswani et al. 2017).

Positions enter as a bias of the attention that grows with distance (ALiBi, Press et al. 2022), so sentences
may be longer than those of the training.

Shapes: S tokens of all sentences, B sentences, T tokens of the longest, h heads, d numbers of a head, N inner
numbers, P projection. A leading axis of 2 is the direction: 0 forward, 1 backward, each in the order in which
it reads.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.model.config import BiLMConfig
from elmokit.model.layer_weights import Norm, draw, pairwise_linear
from elmokit.model.reading_order import positions_of


class CausalTransformerLayer(nn.Module):
    """Attention to what was read so far, then a feed-forward network.

    score_ij = q_i · k_j / √d - m (i - j)   for j ≤ i, with m = 2^(-8 (n + 1) / h) for head n
    a = norm(x + W_o softmax(score) v),   h = norm(a + W_2 gelu(W_1 a + b_1) + b_2)
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        inner, dim = config.cell_dim, config.projection_dim
        self.heads = config.heads
        self.attended = nn.Parameter(torch.empty(2, 3 * dim, dim))
        self.attended_bias = nn.Parameter(torch.zeros(2, 3 * dim))
        self.joined = nn.Parameter(torch.empty(2, dim, dim))
        self.inner = nn.Parameter(torch.empty(2, inner, dim))
        self.inner_bias = nn.Parameter(torch.zeros(2, inner))
        self.outer = nn.Parameter(torch.empty(2, dim, inner))
        self.outer_bias = nn.Parameter(torch.zeros(2, dim))
        self.attention_norm, self.norm = Norm(dim), Norm(dim)
        if self.joined.device.type != "meta":
            self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw initial weights (Glorot)."""
        matrices = [self.attended, self.joined, self.inner, self.outer]
        draw(matrices, [self.attended_bias, self.inner_bias, self.outer_bias], generator)
        for norm in (self.attention_norm, self.norm):
            norm.reset_parameters()

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Run both directions, (2, S, P) → (2, S, P)."""
        triples = pairwise_linear(x, self.attended, self.attended_bias)  # (2, S, 3P)
        a = self.attention_norm(x + pairwise_linear(self._attend(triples, lengths), self.joined))
        inner = functional.gelu(pairwise_linear(a, self.inner, self.inner_bias))  # (2, S, N)
        out: Tensor = self.norm(a + pairwise_linear(inner, self.outer, self.outer_bias))
        return out

    def _attend(self, triples: Tensor, lengths: Tensor) -> Tensor:
        """Return what each token takes from those up to itself, (2, S, 3P) → (2, S, P)."""
        if not triples.shape[1]:
            return triples[..., : triples.shape[2] // 3]
        sentences, longest = len(lengths), int(lengths.max())
        row = torch.repeat_interleave(torch.arange(sentences), lengths.cpu())
        place = (row * longest + positions_of(lengths)).to(triples.device)  # (S,)
        padded = triples.new_zeros(2, sentences * longest, triples.shape[2]).index_copy(1, place, triples)
        q, k, v = padded.view(2 * sentences, longest, 3, self.heads, -1).permute(
            2, 0, 3, 1, 4
        )  # (2B, h, T, d)
        found = functional.scaled_dot_product_attention(q, k, v, attn_mask=self._bias(longest).to(q))
        return found.transpose(1, 2).reshape(2, sentences * longest, -1)[:, place]

    def _bias(self, longest: int) -> Tensor:
        """Return what is added to the scores, (h, T, T)."""
        slope = 2.0 ** (-8.0 * torch.arange(1, self.heads + 1) / self.heads)
        position = torch.arange(longest)
        distance = (position[:, None] - position).float()  # (T, T), negative for what was not read yet
        bias = -slope[:, None, None] * distance
        return bias.masked_fill(distance < 0, -torch.inf)
