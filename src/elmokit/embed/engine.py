"""The biLM made ready for embedding: the same numbers as `BiLM`, without gradients and without needless work.

`BiLM` says what is computed; this says how, as fast as the machine allows:
  * every matrix is laid out once, in the chosen precision;
  * the two directions know nothing of each other, so each of them, and each batch, is a piece of work for one
    thread (see `threads.py`); where that would be too little work, one loop runs both, which halves the
    number of small operations;
  * the input half of all gates is a large product for many steps, the state half a small one for each step;
  * gates are worked on in place, in memory that is used again;
  * tanh(x) is written 2σ(2x) - 1, because torch's vectorised σ is about four times as fast as its tanh. All
    factors of two are folded into weights, where they are exact.

Shapes: see `lstm.py`. D is the directions of a piece of work, one or both.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.kernels import Packing, Precision, Product, make_product, num_threads, side_by_side
from elmokit.model import BiLM, BiLMConfig, BiLSTMLayer, CharCNN, Highway, LayerState, LexiconEncoder, State

# The gates' input half for one block of steps, in numbers (8 MB in float32): larger blocks leave the cache.
_BLOCK_NUMBERS = 2 * 1024 * 1024
_TYPES_AT_ONCE = 256
# Products treat the rows of a last, incomplete group differently, in the last bit. With whole groups a type's
# vector is the same whatever types it is computed with, so the history of a cache never shows.
_ROWS_TOGETHER = 8
# Multiplications below which a second thread costs more (by taking turns with Python's lock) than it brings:
# about a sentence of 25 words for the small shape.
_WORTH_A_THREAD = 250_000_000


Tensors = tuple[Tensor, ...]


class Batch(NamedTuple):
    """What `BiLM.forward` takes: (S, P), (B,), and the state or None for zero."""

    x: Tensor
    lengths: Tensor
    state: State | None = None


class InferenceBiLM:
    """A frozen copy of a BiLM, made for embedding.

    Args:
        model: what to copy; later changes of its weights are not seen.
        precision: of the products.
    """

    def __init__(self, model: BiLM, precision: Precision) -> None:
        self.config = model.config
        encoder = model.encoder
        self._encoder = encoder if isinstance(encoder, nn.Embedding) else _Encoder(encoder, precision)
        layers = [layer for layer in model.layers if isinstance(layer, BiLSTMLayer)]
        cell, dim = model.config.cell_dim, model.config.projection_dim
        self._work_per_token = 2 * len(layers) * (8 * cell * dim + cell * dim)
        self._layers = [
            _Layer(model.config, [_Weights.of(layer, d, precision) for d in range(2)]) for layer in layers
        ]

    def encode(self, *inputs: Tensor) -> Tensor:
        """The vectors (U, P) of types, from what the model's encoder takes."""
        size = _size_of_parts(len(inputs[0]), num_threads())
        parts = list(zip(*(torch.split(tensor, size) for tensor in inputs), strict=True))
        return torch.cat(side_by_side(lambda part: self._encoder(*part), parts, inputs[0].device))

    def __call__(self, batches: Sequence[Batch]) -> list[tuple[Tensor, list[LayerState]]]:
        """For each batch what `BiLM.forward` gives: (L + 1, S, 2P) and the state after each sentence."""
        runs = [_Run(batch, self.config) for batch in batches]
        tokens = sum(len(batch.x) for batch in batches)
        if tokens * self._work_per_token < _WORTH_A_THREAD or batches[0].x.device.type != "cpu":
            for run in runs:
                self._run((run, slice(0, 2)))
        else:
            pieces = [(run, slice(d, d + 1)) for run in runs for d in range(2)]
            side_by_side(self._run, pieces, batches[0].x.device)
        return [(run.layers, run.ends()) for run in runs]

    @torch.inference_mode()
    def _run(self, piece: "tuple[_Run, slice]") -> None:
        """All layers of one batch, in one direction or both."""
        run, which = piece
        x = run.x[run.index[which]]  # (D, S, P)
        for number, layer in enumerate(self._layers, start=1):
            out, *end = layer(x, which, run.packing, run.start(number, which))  # (D, S, P)
            x = out.add_(x) if self.config.skip_connections and number > 1 else out
            run.put(number, which, x)
            run.put_end(number, which, *end)


class _Run:
    """One batch on its way through the layers, counted from 1 (0 is the token layer).

    `which` says the directions that are meant, of the two.
    """

    def __init__(self, batch: Batch, config: BiLMConfig) -> None:
        self.x, lengths, self._state = batch
        self.packing = Packing.of(lengths)
        self.index = self.packing.index.to(self.x.device)  # (2, S)
        self._inverse = self.packing.inverse.to(self.x.device)  # (2, S)
        size, dim, num_layers = len(self.x), config.projection_dim, config.num_layers
        self.layers = self.x.new_empty(num_layers + 1, size, 2 * dim)  # (L + 1, S, 2P)
        self._halves = self.layers.view(num_layers + 1, size, 2, dim)
        self._halves[0] = self.x[:, None]
        self._hidden = self.x.new_empty(num_layers, 2, len(lengths), dim)  # (L, 2, B, P)
        self._cell = self.x.new_empty(num_layers, 2, len(lengths), config.cell_dim)  # (L, 2, B, N)

    def start(self, layer: int, which: slice) -> tuple[Tensor, Tensor] | None:
        """(D, B, P) and (D, B, N), longest sentence first; None for zero."""
        if self._state is None:
            return None
        state = self._state[layer - 1].rows(self.packing.order.to(self.x.device))
        return state.hidden[which], state.cell[which]

    def put(self, layer: int, which: slice, x: Tensor) -> None:
        """Lay down what a layer gives, (D, S, P) packed."""
        for direction, vectors in zip(range(2)[which], x.unbind(), strict=True):
            self._halves[layer, :, direction] = vectors[self._inverse[direction]]

    def put_end(self, layer: int, which: slice, hidden: Tensor, cell: Tensor) -> None:
        """Lay down where a layer stands after each sentence: (D, B, P), (D, B, N)."""
        self._hidden[layer - 1, which] = hidden
        self._cell[layer - 1, which] = cell

    def ends(self) -> list[LayerState]:
        rank = torch.argsort(self.packing.order).to(self.x.device)  # (B,)
        return [
            LayerState(*layer).rows(rank)
            for layer in zip(self._hidden.unbind(), self._cell.unbind(), strict=True)
        ]


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
        more = -len(x) % _ROWS_TOGETHER
        x = functional.pad(x, (0, 0, 0, more))  # (U + more, F)
        for highway in self._highways:
            # For the few new words of one sentence the time goes into reading the weights: each thread half.
            gate, transformed = side_by_side(partial(_apply, x), highway, x.device)  # (U + more, F) each
            x = torch.lerp(x, functional.relu_(transformed), gate.sigmoid_())
        if isinstance(encoder, LexiconEncoder):
            x = encoder.with_word(x, None if words is None else functional.pad(words, (0, more)))
        return (x if self._projection is None else self._projection(x))[: len(ids)]


def _size_of_parts(number: int, threads: int) -> int:
    """How many types go together so that every thread has the same to do."""
    if number <= _TYPES_AT_ONCE:
        return max(number, 1)
    parts = threads * math.ceil(number / (threads * _TYPES_AT_ONCE))
    return math.ceil(number / (parts * _ROWS_TOGETHER)) * _ROWS_TOGETHER


def _apply(x: Tensor, product: Product) -> Tensor:
    return product(x)


class _Weights(NamedTuple):
    """The matrices of one layer and direction; `_Layer` says why some are doubled."""

    input: Product
    state: Product
    projection: Product | None

    @classmethod
    @torch.no_grad()
    def of(cls, layer: BiLSTMLayer, direction: int, precision: Precision) -> "_Weights":
        config = layer.config
        double = layer.bias.new_tensor([1.0, 1.0, 2.0, 1.0]).repeat_interleave(config.cell_dim)  # (4N,)
        forget = layer.bias.new_tensor([0.0, config.forget_bias, 0.0, 0.0]).repeat_interleave(config.cell_dim)
        projection = layer.projection
        return cls(
            make_product(
                precision,
                layer.input_weight[direction] * double[:, None],
                (layer.bias[direction] + forget) * double,
            ),
            make_product(
                precision,
                layer.state_weight[direction] * double[:, None],
                bound=1.0 if projection is None else config.projection_clip,  # σ(o) · tanh(c), or h
            ),
            None
            if projection is None
            else make_product(precision, 2 * projection[direction], bound=0.5),  # s_o · (σ(C) - ½)
        )


class _Layer:
    """One LSTM layer.

    With everything that meets a σ-for-tanh doubled (the candidate's rows of W and b, and the cell itself,
    C = 2c), a step is

        s = σ(z);  C ← clip(s_f · C + 4 · s_i · (s_j - ½), ± 2 cell_clip);  h = clip(2W_p (s_o · (σ(C) - ½)))
    """

    def __init__(self, config: BiLMConfig, weights: list[_Weights]) -> None:
        self._config = config
        self._weights = weights
        # A tensor, because torch turns a plain number into one at every call, which takes as long as the sum.
        self._half = torch.tensor(0.5)

    def __call__(
        self, x: Tensor, which: slice, packing: Packing, start: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run over a packed batch.

        Args:
            x: (D, S, P).
            which: the directions that these are.
            packing: how the batch is laid out.
            start: hidden (D, B, P) and cell (D, B, N), longest sentence first; None for zero.

        Returns:
            (D, S, P), and hidden and cell after each sentence's own last token.
        """
        weights = self._weights[which]
        batch, cell_dim = len(packing.order), self._config.cell_dim
        hidden, cell = (
            (None, x.new_zeros(len(weights), batch, cell_dim)) if start is None else (start[0], 2 * start[1])
        )
        own_hidden = None if hidden is None else hidden.unbind()
        end_hidden = x.new_zeros(len(weights), batch, x.shape[2]) if hidden is None else hidden.clone()
        out, scratch = torch.empty_like(x), torch.empty_like(cell)
        most = max(batch, _BLOCK_NUMBERS // (4 * cell_dim))
        space = x.new_empty(len(weights), min(most, x.shape[1]), 4 * cell_dim)
        running_cell, running_scratch, own_scratch = cell, scratch, scratch.unbind()
        for sizes, begin, end in _blocks(packing.step_sizes, most):
            block = space[:, : end - begin]  # (D, block, 4N)
            for one, one_x, one_block in zip(weights, x[:, begin:end].unbind(), block.unbind(), strict=True):
                one.input(one_x, one_block)
            for step in _steps(block, out[:, begin:end], sizes):
                size = step.out.shape[1]  # b
                if size < running_cell.shape[1]:  # some sentences have ended
                    running_cell, running_scratch = cell[:, :size], scratch[:, :size]
                    own_scratch = running_scratch.unbind()
                    if hidden is not None:
                        end_hidden[:, size : hidden.shape[1]] = hidden[:, size:]
                        own_hidden = hidden[:, :size].unbind()
                self._step(weights, step, own_hidden, running_cell, running_scratch, own_scratch)
                hidden, own_hidden = step.out, step.own_out
        if hidden is not None:
            end_hidden[:, : hidden.shape[1]] = hidden
        return out, end_hidden, cell.div_(2)

    def _step(
        self,
        weights: list[_Weights],
        step: "_Step",
        own_hidden: Tensors | None,
        cell: Tensor,
        scratch: Tensor,
        own_scratch: Tensors,
    ) -> None:
        """A time step of b sentences: from each direction's `hidden` (b, P), updates `cell` (D, b, N)."""
        config = self._config
        if own_hidden is not None:  # else zero: nothing to add
            for one, gates, hidden in zip(weights, step.own_gates, own_hidden, strict=True):
                one.state.add_to(gates, hidden)
        step.gates.sigmoid_()  # (D, b, 4N)
        s_i, s_f, s_j, s_o = step.each_gate  # (D, b, N) each, views of it
        cell.mul_(s_f).addcmul_(s_i, s_j.sub_(self._half), value=4)
        if config.cell_clip is not None:
            cell.clamp_(-2 * config.cell_clip, 2 * config.cell_clip)
        torch.sigmoid(cell, out=scratch)
        scratch.sub_(self._half).mul_(s_o)
        if not config.projection:
            torch.mul(scratch, 2, out=step.out)
            return
        for one, out, what in zip(weights, step.own_out, own_scratch, strict=True):
            if one.projection is not None:
                one.projection.into(out, what)
        if config.projection_clip is not None:
            step.out.clamp_(-config.projection_clip, config.projection_clip)


class _Step(NamedTuple):
    """The places where a time step of b sentences is worked on: of all directions together, and of each."""

    gates: Tensor  # (D, b, 4N)
    each_gate: Tensors  # four of (D, b, N)
    own_gates: Tensors  # D of (b, 4N)
    out: Tensor  # (D, b, P), the new hidden state
    own_out: Tensors  # D of (b, P)


def _steps(block: Tensor, out: Tensor, sizes: list[int]) -> Iterator[_Step]:
    """The steps of a block, (D, block, 4N) and (D, block, P).

    All their views are made at once: for a single sentence they would cost more than the sums.
    """

    def split(x: Tensor) -> Tensors:
        return x.split_with_sizes(sizes, dim=-2)

    return map(
        _Step,
        split(block),
        zip(*map(split, block.chunk(4, dim=-1)), strict=True),
        zip(*map(split, block.unbind()), strict=True),
        split(out),
        zip(*map(split, out.unbind()), strict=True),
    )


def _blocks(step_sizes: list[int], most: int) -> Iterator[tuple[list[int], int, int]]:
    """As many steps as have `most` rows together, one at least: their sizes and the range of their rows."""
    sizes: list[int] = []
    begin = 0
    for size in step_sizes:
        if sizes and sum(sizes) + size > most:
            yield sizes, begin, begin + sum(sizes)
            sizes, begin = [], begin + sum(sizes)
        sizes.append(size)
    if sizes:
        yield sizes, begin, begin + sum(sizes)
