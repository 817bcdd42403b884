"""From the characters of a token to its vector: convolutions, highways, projection.

Shapes: U types, C characters, E character vector, F filters, P projection.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.model.config import CharCNNConfig

# Types of equal length go through the convolutions together; this bounds one group's memory.
_GROUP_SIZE = 1024


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
        return torch.lerp(x, torch.relu(self.transform(x)), gate)  # x + g · (relu(…) - x)


class CharCNN(nn.Module):
    """The token encoder of the paper (Peters et al. 2018, section 3.4; Kim et al. 2015).

    With e the character vectors of a token, for each filter k of width w:
        y_k = act(max_t (Σ_d W_k,d · e_t+d + b_k)),   t = 0 … C - w, padding characters included,
    then the highways, then x = W_p y + b_p.
    """

    def __init__(self, config: CharCNNConfig, output_dim: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.num_characters, config.embedding_dim)
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
        order = torch.argsort(used, stable=True)  # (U,)
        groups = []
        for rows in torch.split(order, _GROUP_SIZE):
            x = self._convolve(ids[rows], longest=int(used[rows[-1]]))  # (G, F)
            for highway in self.highways:
                x = highway(x)
            groups.append(x if self.projection is None else self.projection(x))  # (G, P)
        if not groups:
            dim = self.config.num_filters if self.projection is None else self.projection.out_features
            return self.embedding.weight.new_zeros(0, dim)
        return torch.cat(groups)[torch.argsort(order)]

    def _convolve(self, ids: Tensor, longest: int) -> Tensor:
        """(G, C) ids of which at most the first `longest` are not padding → (G, F).

        All windows that lie in the padding are equal, so one of them is enough for the maximum: a filter of
        width w needs the first longest + w characters only. That is exact, and a third of the work for words
        of ordinary length.
        """
        characters = self.embedding(ids).transpose(1, 2)  # (G, E, C)
        maxima = []
        for (width, _), convolution in zip(self.config.filters, self.convolutions, strict=True):
            window = characters[:, :, : longest + width]  # (G, E, ≤ C)
            maxima.append(convolution(window).amax(dim=-1))  # (G, number)
        x = torch.cat(maxima, dim=-1)  # (G, F)
        return functional.relu(x) if self.config.activation == "relu" else torch.tanh(x)
