"""The biLM made ready for embedding: the same numbers as `BiLM`, without gradients and without needless work.

`BiLM` says what is computed; this says how, as fast as the machine allows:
  * every matrix is laid out once, in the chosen precision;
  * the two directions know nothing of each other, so each of them, and each batch, is a piece of work for one
    thread (see `threads.py`);
  * the input half of all gates is a large product for many steps, the state half a small one for each step;
  * gates are worked on in place, in memory that is used again;
  * tanh(x) is written 2σ(2x) - 1, because torch's vectorised σ is about four times as fast as its tanh. All
    factors of two are folded into weights, where they are exact.

Shapes: see `lstm.py`.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.model.bilm import BiLM, State
from elmokit.model.char_cnn import CharCNN, Highway
from elmokit.model.lexicon_encoder import LexiconEncoder
from elmokit.model.lstm import BiLSTMLayer, LayerState, Packing
from elmokit.model.precision import Precision, Product, make_product
from elmokit.model.threads import side_by_side

# The gates' input half for one block of steps, in numbers (8 MB in float32): larger blocks leave the cache.
_BLOCK_NUMBERS = 2 * 1024 * 1024
_TYPES_AT_ONCE = 256
# Multiplications below which a second thread costs more (by taking turns with Python's lock) than it brings:
# about a sentence of 25 words for the small shape.
_WORTH_A_THREAD = 250_000_000


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
        self._directions = [[_Layer(layer, d, precision) for layer in layers] for d in range(2)]

    def encode(self, *inputs: Tensor) -> Tensor:
        """The vectors (U, P) of types, from what the model's encoder takes."""
        parts = list(zip(*(torch.split(tensor, _TYPES_AT_ONCE) for tensor in inputs), strict=True))
        return torch.cat(side_by_side(lambda part: self._encoder(*part), parts, inputs[0].device))

    def __call__(self, batches: Sequence[Batch]) -> list[tuple[Tensor, list[LayerState]]]:
        """For each batch what `BiLM.forward` gives: (L + 1, S, 2P) and the state after each sentence."""
        runs = [_Run(batch, self.config.num_layers) for batch in batches]
        pieces = [[(run, direction)] for run in runs for direction in range(2)]
        tokens = sum(len(batch.x) for batch in batches)
        if tokens * self._work_per_token < _WORTH_A_THREAD:
            pieces = [list(chain.from_iterable(pieces))]
        if batches:
            side_by_side(self._run_piece, pieces, batches[0].x.device)
        return [(run.layers, run.ends()) for run in runs]

    def _run_piece(self, piece: "list[tuple[_Run, int]]") -> None:
        for run, direction in piece:
            self._run_direction(run, direction)

    def _run_direction(self, run: "_Run", direction: int) -> None:
        """All layers of one direction of one batch."""
        dim, packing = self.config.projection_dim, run.packing
        inverse = packing.inverse[direction].to(run.x.device)  # (S,)
        x = run.x[packing.index[direction].to(run.x.device)]  # (S, P)
        half = slice(direction * dim, (direction + 1) * dim)
        run.layers[0, :, half] = run.x
        for number, layer in enumerate(self._directions[direction]):
            out, *end = layer(x, packing, run.start(number, direction))  # (S, P)
            x = out.add_(x) if self.config.skip_connections and number > 0 else out
            run.layers[number + 1, :, half] = x[inverse]
            run.set_end(number, direction, *end)


class _Run:
    """One batch on its way through the layers."""

    def __init__(self, batch: Batch, num_layers: int) -> None:
        self.x, lengths, self._state = batch
        self.packing = Packing.of(lengths)
        self.layers = self.x.new_empty(num_layers + 1, len(self.x), 2 * self.x.shape[1])  # (L + 1, S, 2P)
        self._ends: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}

    def start(self, layer: int, direction: int) -> tuple[Tensor, Tensor] | None:
        """(B, P) and (B, N), longest sentence first; None for zero."""
        if self._state is None:
            return None
        state = self._state[layer].rows(self.packing.order.to(self.x.device))
        return state.hidden[direction], state.cell[direction]

    def set_end(self, layer: int, direction: int, hidden: Tensor, cell: Tensor) -> None:
        self._ends[layer, direction] = (hidden, cell)

    def ends(self) -> list[LayerState]:
        rank = torch.argsort(self.packing.order).to(self.x.device)  # (B,)
        states = []
        for layer in range(len(self.layers) - 1):
            forward, backward = self._ends[layer, 0], self._ends[layer, 1]
            hidden, cell = (torch.stack(pair) for pair in zip(forward, backward, strict=True))
            states.append(LayerState(hidden, cell).rows(rank))
        return states


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
        for highway in self._highways:
            # For the few new words of one sentence the time goes into reading the weights: each thread half.
            gate, transformed = side_by_side(partial(_apply, x), highway, x.device)  # (U, F) each
            x = torch.lerp(x, functional.relu_(transformed), gate.sigmoid_())
        if isinstance(encoder, LexiconEncoder):
            x = encoder.with_word(x, words)
        return x if self._projection is None else self._projection(x)


def _apply(x: Tensor, product: Product) -> Tensor:
    return product(x)


class _Layer:
    """One LSTM layer of one direction.

    With everything that meets a σ-for-tanh doubled (the candidate's rows of W and b, and the cell itself,
    C = 2c), a step is

        s = σ(z);  C ← clip(s_f · C + 4 · s_i · (s_j - ½), ± 2 cell_clip);  h = clip(2W_p (s_o · (σ(C) - ½)))
    """

    def __init__(self, layer: BiLSTMLayer, direction: int, precision: Precision) -> None:
        config = layer.config
        self._config = config
        # A tensor, because torch turns a plain number into one at every call, which takes as long as the sum.
        self._half = layer.bias.new_tensor(0.5)
        with torch.no_grad():
            gates = layer.bias.new_tensor([1.0, 1.0, 2.0, 1.0]).repeat_interleave(config.cell_dim)  # (4N,)
            forget = layer.bias.new_tensor([0.0, config.forget_bias, 0.0, 0.0])
            bias = (layer.bias[direction] + forget.repeat_interleave(config.cell_dim)) * gates
            rows = gates[:, None]
            self._input = make_product(precision, layer.input_weight[direction] * rows, bias)
            self._state = make_product(precision, layer.state_weight[direction] * rows)
            projection = layer.projection
            self._projection = (
                None if projection is None else make_product(precision, 2 * projection[direction])
            )

    def __call__(
        self, x: Tensor, packing: Packing, start: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(S, P) packed → (S, P) packed, and hidden (B, P) and cell (B, N) at the ends, longest first."""
        batch, cell_dim = len(packing.order), self._config.cell_dim
        hidden, cell = (None, x.new_zeros(batch, cell_dim)) if start is None else (start[0], 2 * start[1])
        end_hidden = x.new_zeros(batch, x.shape[1]) if start is None else start[0].clone()
        out, scratch = torch.empty_like(x), x.new_empty(batch, cell_dim)
        most = max(batch, _BLOCK_NUMBERS // (4 * cell_dim))
        space = x.new_empty(min(most, len(x)), 4 * cell_dim)
        running_cell, running_scratch = cell, scratch
        for sizes, begin, end in _blocks(packing.step_sizes, most):
            block = self._input(x[begin:end], space[: end - begin])  # (block, 4N)
            # All views of a block are made at once: for a single sentence they would cost more than the sums.
            each_gate = [torch.split(gate, sizes) for gate in block.chunk(4, dim=-1)]
            for gates, target, *four in zip(
                torch.split(block, sizes), torch.split(out[begin:end], sizes), *each_gate, strict=True
            ):
                size = target.shape[0]  # b
                if size < running_cell.shape[0]:  # some sentences have ended
                    running_cell, running_scratch = cell[:size], scratch[:size]
                    if hidden is not None:
                        end_hidden[size : len(hidden)] = hidden[size:]
                        hidden = hidden[:size]
                self._step(gates, four, hidden, running_cell, running_scratch, target)
                hidden = target
        if hidden is not None:
            end_hidden[: len(hidden)] = hidden
        return out, end_hidden, cell.div_(2)

    def _step(
        self,
        gates: Tensor,
        each_gate: list[Tensor],
        hidden: Tensor | None,
        cell: Tensor,
        scratch: Tensor,
        out: Tensor,
    ) -> None:
        """A time step of b sentences: updates `cell` (b, N), writes the new hidden state to `out` (b, P)."""
        config = self._config
        if hidden is not None:  # else zero: nothing to add
            self._state.add_to(gates, hidden)
        gates.sigmoid_()  # (b, 4N)
        s_i, s_f, s_j, s_o = each_gate  # (b, N) each, views of it
        cell.mul_(s_f).addcmul_(s_i, s_j.sub_(self._half), value=4)
        if config.cell_clip is not None:
            cell.clamp_(-2 * config.cell_clip, 2 * config.cell_clip)
        torch.sigmoid(cell, out=scratch)
        scratch.sub_(self._half).mul_(s_o)
        if self._projection is None:
            torch.mul(scratch, 2, out=out)
            return
        self._projection.into(out, scratch)
        if config.projection_clip is not None:
            out.clamp_(-config.projection_clip, config.projection_clip)


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
