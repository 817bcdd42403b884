"""From the bytes of a token to its vector: convolutions, highways, projection.

Shapes: U types, G types of similar length, C characters, E character vector, F filters, P projection.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass
from functools import partial
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.base import bounded, check_fields, check_whole_number, shown
from elmokit.errors import ConfigError
from elmokit.kernels import Precision, TrainedLinear, window_maxima
from elmokit.model.frozen_encoder import FrozenEncoder
from elmokit.model.token_encoder import MAX_CHARACTERS, MAX_LAYERS, MAX_SIZE, Inputs, TokenEncoderConfig
from elmokit.model.vector_table import VectorTable
from elmokit.text import Lexicon, Vocabulary, character_matrix, is_truncated, used_characters

# Types of similar length are convolved together. Each group costs dozens of small operations, so there are
# few; but a filter makes at most so many numbers before their maximum is taken (16 MB in float32).
_GROUP_TYPES = 64
_MOST_GROUPS = 6
_GROUP_NUMBERS = 4 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class CharCNNConfig(TokenEncoderConfig):
    """The character encoder: what the vector of a token is made from.

    Attributes:
        filters: (width, number) of each convolution, in the order of the weights.
        embedding_dim: E, size of a character's vector.
        max_characters: C, ids of a token including begin- and end-of-word.
        num_characters: Rows of the character table.
        activation: What follows the maximum over positions.
        num_highway: Highway layers.
        projection: Whether a linear layer brings F to P (without it F must be P).
    """

    reads: ClassVar[Literal["bytes"]] = "bytes"

    filters: tuple[tuple[int, int], ...]
    embedding_dim: int = bounded(MISSING, least=1, most=MAX_SIZE)
    max_characters: int = bounded(50, least=3, most=MAX_CHARACTERS)
    num_characters: int = bounded(261, least=1, most=MAX_SIZE)
    activation: Literal["relu", "tanh"] = "relu"
    num_highway: int = bounded(0, least=0, most=MAX_LAYERS)
    projection: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "filters", _checked_filters(self.filters))
        check_fields(self)
        widest = max(width for width, _ in self.filters)
        if widest > self.max_characters:
            raise ConfigError(
                f"a filter is {widest} characters wide, but a token has only {self.max_characters} of them; "
                "make max_characters larger or the filter narrower"
            )

    @property
    def num_filters(self) -> int:
        """Return F, the filters of all widths together."""
        return sum(number for _, number in self.filters)

    def build(self, output_dim: int) -> "CharCNN":
        """Make the encoder."""
        return CharCNN(self, output_dim)

    def check_output_dim(self, output_dim: int) -> None:
        """Raise a ConfigError if there is no projection and F is another size."""
        if not self.projection and self.num_filters != output_dim:
            raise ConfigError(
                f"without a projection the {self.num_filters} filters must equal projection_dim "
                f"({output_dim}); set the encoder's projection=True"
            )

    def inputs(self, vocabulary: Vocabulary | None, lexicon: Lexicon | None) -> Inputs:
        """Return the function from types to character ids (U, C) and used characters (U,)."""
        return partial(_character_inputs, self.max_characters)

    def truncated(self, tokens: Sequence[str]) -> list[int]:
        """Return the positions of the tokens that have more bytes than the encoder reads."""
        most = self.max_characters
        # A character has at most four bytes, so most tokens need no second look.
        return [
            place
            for place, token in enumerate(tokens)
            if 4 * len(token) > most - 2 and is_truncated(token, max_characters=most)
        ]

    def describe(self) -> str:
        """Describe the encoder in a few words."""
        return f"{self.num_filters} character filters"


def _checked_filters(value: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ConfigError(f"filters must be a list of [width, number] pairs, found {shown(value)}")
    if len(value) > MAX_LAYERS:
        raise ConfigError(f"filters must be at most {MAX_LAYERS} [width, number] pairs, found {len(value):,}")
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ConfigError(f"filters must be a list of [width, number] pairs, found {shown(pair)} in it")
        check_whole_number("a filter's width", pair[0], least=1, most=MAX_SIZE)
        check_whole_number("a filter's number", pair[1], least=1, most=MAX_SIZE)
    return tuple((width, number) for width, number in value)


def _character_inputs(max_characters: int, types: list[str]) -> tuple[Tensor, ...]:
    matrix = character_matrix(types, max_characters=max_characters)
    return torch.from_numpy(matrix), torch.from_numpy(used_characters(matrix))


class Highway(nn.Module):
    """One highway layer: g = σ(W_g x + b_g);  y = g · relu(W_t x + b_t) + (1 - g) · x.

    The gate g lets the *transformed* value through (bilm-tf calls it "carry").
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gate = TrainedLinear(dim, dim)
        self.transform = TrainedLinear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Transform x, (U, F) → (U, F)."""
        gate = torch.sigmoid(self.gate(x))  # (U, F)
        changed = torch.relu(self.transform(x))
        return torch.lerp(x, changed.to(x), gate.to(x))  # x + g · (relu(…) - x)


class CharCNN(nn.Module):
    """The token encoder of the paper (Peters et al. 2018, section 3.4; Kim et al. 2015).

    With e the character vectors of a token, for each filter k of width w:
        y_k = act(max_t (Σ_d W_k,d · e_t+d) + b_k),   t = 0 … C - w, padding characters included,
    then the highways, then x = W_p y + b_p.
    """

    def __init__(self, config: CharCNNConfig, output_dim: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = VectorTable(config.num_characters, config.embedding_dim)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_dim, number, width) for width, number in config.filters
        )
        self.highways = nn.ModuleList(Highway(config.num_filters) for _ in range(config.num_highway))
        self.projection = TrainedLinear(config.num_filters, output_dim) if config.projection else None

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw initial weights as bilm-tf does."""
        self.embedding.reset_parameters(generator)
        for convolution in cast(list[nn.Conv1d], self.convolutions):
            if self.config.activation == "relu":
                nn.init.uniform_(convolution.weight, -0.05, 0.05, generator=generator)
            else:
                std = (convolution.kernel_size[0] * self.config.embedding_dim) ** -0.5
                nn.init.normal_(convolution.weight, std=std, generator=generator)
            nn.init.zeros_(cast(Tensor, convolution.bias))
        std = self.config.num_filters**-0.5
        for highway in cast(list[Highway], self.highways):
            for linear, bias in ((highway.gate, -2.0), (highway.transform, 0.0)):
                nn.init.normal_(linear.weight, std=std, generator=generator)
                nn.init.constant_(linear.bias, bias)
        if self.projection is not None:
            nn.init.normal_(self.projection.weight, std=std, generator=generator)
            nn.init.zeros_(self.projection.bias)

    def frozen(self, precision: Precision) -> Callable[..., Tensor]:
        """Return the same function without gradients, its tables and products laid out once."""
        tables = [table.detach() for table in self.tables()]
        convolve = partial(self.convolve, tables=tables)
        return FrozenEncoder(convolve, self.highways, None, self.projection, precision)

    def forward(self, ids: Tensor, used: Tensor) -> Tensor:
        """Return the vector of each type.

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
        """Compute what each character adds to each filter at each place of its window.

        There are only `num_characters` of them, so W_k,d · e is a table and the convolution a sum of its
        rows: several times faster than multiplying, and the same numbers.

        Args:
            characters: (n,) those to take; all of them if not given.

        Returns:
            (width · n, number) for each convolution.
        """
        weight = self.embedding.weight if characters is None else self.embedding(characters)  # (n, E)
        return [
            torch.einsum("ce,new->wcn", weight, convolution.weight).flatten(0, 1)
            for convolution in cast(list[nn.Conv1d], self.convolutions)
        ]

    def convolve(self, ids: Tensor, used: Tensor, tables: list[Tensor]) -> Tensor:
        """Apply the filters, (U, C) → (U, F).

        `ids` count the characters that the `tables` were made of. Torch convolves types of similar length
        together, to skip most padding.
        """
        if not len(ids):
            return self.embedding.weight.new_zeros(0, self.config.num_filters)
        widths = [width for width, _ in self.config.filters]
        maxima = window_maxima(ids, used, widths, tables)  # (U, F)
        if maxima is None:
            order = torch.argsort(used, stable=True)  # (U,)
            groups = [
                self._convolve(ids[rows], longest, tables) for rows, longest in self._groups(used, order)
            ]
            maxima = torch.cat(groups)[torch.argsort(order)]
        # By attribute: the replicas of nn.DataParallel have no parameters to list.
        biases = torch.cat([cast(Tensor, convolution.bias) for convolution in self.convolutions])  # (F,)
        x = maxima + biases  # (U, F)
        return functional.relu(x) if self.config.activation == "relu" else torch.tanh(x)

    def _groups(self, used: Tensor, order: Tensor) -> Iterator[tuple[Tensor, int]]:
        """Group the types in order of length; with each group comes the length of its longest type."""
        largest = max(number for _, number in self.config.filters)
        for rows in torch.split(order, max(_GROUP_TYPES, -(-len(order) // _MOST_GROUPS))):
            longest = int(used[rows[-1]])
            for part in torch.split(rows, max(1, _GROUP_NUMBERS // (largest * (longest + 1)))):
                yield part, longest

    def _convolve(self, ids: Tensor, length: int, tables: list[Tensor]) -> Tensor:
        """Apply the filters to ids (G, C), all padding after the first `length`: (G, F) without bias.

        All windows that lie in the padding are equal, so one of them is enough for the maximum: a filter of
        width w needs only the first length + w characters. That is exact, and a third of the work for words
        of ordinary length.
        """
        maxima = []
        for (width, _), table in zip(self.config.filters, tables, strict=True):
            places = torch.arange(width, device=ids.device) * (len(table) // width)  # (width,)
            windows = ids[:, : length + width].unfold(1, width, 1) + places  # (G, windows, width)
            sums = functional.embedding_bag(windows.flatten(0, 1), table, mode="sum")  # (G · windows, number)
            maxima.append(sums.view(len(ids), -1, table.shape[1]).amax(dim=1))  # (G, number)
        return torch.cat(maxima, dim=-1)
