"""From the characters of a token to its vector: convolutions, highways, projection.

Shapes: U types, G types of one length, C characters, E character vector, F filters, P projection.
"""

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.model.config import CharCNNConfig

# Types of like length are convolved together. Each group costs dozens of small operations, so there are few;
# but a filter gives at most so many numbers before their maximum is taken (16 MB in float32).
_GROUP_TYPES = 64
_MOST_GROUPS = 6
_GROUP_NUMBERS = 4 * 1024 * 1024


class Highway(nn.Module):
    """One highway layer: g = σ(W_g x + b_g);  y = g · relu(W_t x + b_t) + (1 - g) · x.

    The gate g lets the *transformed* value through (bilm-tf calls it "carry").
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, dim)
        self.transform = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """(U, F) → (U, F)."""
        gate = torch.sigmoid(self.gate(x))  # (U, F)
        changed = torch.relu(self.transform(x))
        return torch.lerp(x, changed.to(x), gate.to(x))  # x + g · (relu(…) - x)


def make_embedding(rows: int, dim: int) -> nn.Embedding:
    """A table of vectors that starts uniform in ± 1, as in bilm-tf.

    Not torch's own start: drawing normal numbers on the meta device, where models are made that are to be
    loaded, imports 800 modules, which takes two seconds.
    """
    embedding = nn.Embedding(rows, dim, _weight=torch.empty(rows, dim))
    nn.init.uniform_(embedding.weight, -1.0, 1.0)
    return embedding


class CharCNN(nn.Module):
    """The token encoder of the paper (Peters et al. 2018, section 3.4; Kim et al. 2015).

    With e the character vectors of a token, for each filter k of width w:
        y_k = act(max_t (Σ_d W_k,d · e_t+d) + b_k),   t = 0 … C - w, padding characters included,
    then the highways, then x = W_p y + b_p.
    """

    def __init__(self, config: CharCNNConfig, output_dim: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = make_embedding(config.num_characters, config.embedding_dim)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_dim, number, width) for width, number in config.filters
        )
        self.highways = nn.ModuleList(Highway(config.num_filters) for _ in range(config.num_highway))
        self.projection = nn.Linear(config.num_filters, output_dim) if config.projection else None

    def forward(self, ids: Tensor, used: Tensor) -> Tensor:
        """The vector of each type.

        Args:
            ids: (U, C) character ids, each row filled up with the padding character.
            used: (U,) how many ids of a row stand before its padding.

        Returns:
            (U, P).
        """
        x = self.convolve(ids, used, self.tables())  # (U, F)
        for highway in self.highways:
            x = highway(x)
        return x if self.projection is None else self.projection(x)

    def tables(self, characters: Tensor | None = None) -> list[Tensor]:
        """What each character adds to each filter at each place of its window, (width · characters, number).

        There are only `num_characters` of them, so W_k,d · e is a table and the convolution a sum of its
        rows: several times faster than multiplying, and the same numbers.

        Args:
            characters: (n,) those to take; all when not given.
        """
        weight = (
            self.embedding.weight if characters is None else self.embedding(characters)
        )  # (characters, E)
        return [
            torch.einsum("ce,new->wcn", weight, convolution.weight).flatten(0, 1)
            for convolution in self.convolutions
            if isinstance(convolution, nn.Conv1d)
        ]

    def convolve(self, ids: Tensor, used: Tensor, tables: list[Tensor]) -> Tensor:
        """(U, C) → (U, F), types of like length together, so that little of their padding is looked at.

        `ids` count the characters that the `tables` were made of.
        """
        if not len(ids):
            return self.embedding.weight.new_zeros(0, self.config.num_filters)
        order = torch.argsort(used, stable=True)  # (U,)
        groups = [self._convolve(ids[rows], longest, tables) for rows, longest in self._groups(used, order)]
        # By attribute: the replicas of nn.DataParallel have no parameters to list.
        biases = torch.cat([cast(Tensor, convolution.bias) for convolution in self.convolutions])  # (F,)
        x = torch.cat(groups)[torch.argsort(order)] + biases  # (U, F)
        return functional.relu(x) if self.config.activation == "relu" else torch.tanh(x)

    def _groups(self, used: Tensor, order: Tensor) -> Iterator[tuple[Tensor, int]]:
        """Types in order of length, and the length of the longest of each group."""
        largest = max(number for _, number in self.config.filters)
        for rows in torch.split(order, max(_GROUP_TYPES, -(-len(order) // _MOST_GROUPS))):
            longest = int(used[rows[-1]])
            for part in torch.split(rows, max(1, _GROUP_NUMBERS // (largest * (longest + 1)))):
                yield part, longest

    def _convolve(self, ids: Tensor, length: int, tables: list[Tensor]) -> Tensor:
        """(G, C) ids of which the first `length` are not padding → (G, F), bias and activation to follow.

        All windows that lie in the padding are equal, so one of them is enough for the maximum: a filter of
        width w needs the first length + w characters only. That is exact, and a third of the work for words
        of ordinary length.
        """
        maxima = []
        for (width, _), table in zip(self.config.filters, tables, strict=True):
            places = torch.arange(width, device=ids.device) * (len(table) // width)  # (width,)
            windows = ids[:, : length + width].unfold(1, width, 1) + places  # (G, windows, width)
            sums = functional.embedding_bag(windows.flatten(0, 1), table, mode="sum")  # (G · windows, number)
            maxima.append(sums.view(len(ids), -1, table.shape[1]).amax(dim=1))  # (G, number)
        return torch.cat(maxima, dim=-1)
