"""All layers of a projected LSTM over packed batches, for embedding: the torch implementation.

`InferenceLSTM` is the one interface for this job, which `NativeLSTM` offers, too; `engine_choice` chooses.

The loop computes what `model.lstm.BiLSTMLayer` does, without gradients and without needless work:
  * every matrix is laid out once, in the chosen precision;
  * W_x x of many steps is one large product, W_h h one small product for each step;
  * gates are worked on in place, in memory that is used again;
  * tanh is computed by σ, see `gate_products`; all factors of two are folded into weights, which is exact.

Shapes: D directions of a call (one or both), B sentences, b of them running, S tokens in packed order,
N cell, P projection, L layers.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from elmokit.kernels.gates import LayerWeights, LSTMShape, gate_products
from elmokit.kernels.packing import Packing, step_blocks
from elmokit.kernels.precision import Precision, Product, make_product

# Numbers of W_x x that are computed at once (8 MB in float32): a larger block would not fit in the cache.
_BLOCK_NUMBERS = 2 * 1024 * 1024

Tensors = tuple[Tensor, ...]


class InferenceLSTM:
    """All layers of an LSTM, ready to run in either direction or in both at once.

    Args:
        layers: For each layer its weights in each direction. Later changes of them are not seen.
        shape: Of the model.
        precision: Of the products.
    """

    # Multiplications below which a second thread costs more (by taking turns with Python's lock) than it
    # brings: about a sentence of 25 words for the small shape.
    worth_a_thread = 250_000_000

    def __init__(
        self, layers: Sequence[Sequence[LayerWeights]], shape: LSTMShape, precision: Precision
    ) -> None:
        self._shape = shape
        self._layers = [[_prepare(one, shape, precision) for one in directions] for directions in layers]
        # A tensor, because torch turns a plain number into one at every call, which takes as long as the sum.
        self._half = torch.tensor(0.5)

    def __call__(
        self,
        x: Tensor,
        directions: slice,
        packing: Packing,
        start: tuple[Tensor, Tensor] | None,
        out: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Run all layers over a batch, whose sentences lie one after another.

        Args:
            x: (S, P).
            directions: Which of the two to run.
            packing: How the batch is laid out.
            start: Hidden (L, D, B, P) and cell (L, D, B, N), longest sentence first; None for zero.
            out: (L, S, 2, P); the outputs of these directions are written there, skip connections included.

        Returns:
            The hidden (L, D, B, P) and the cell (L, D, B, N) after each sentence's own last token.
        """
        num_layers, batch, dim = len(self._layers), len(packing.order), x.shape[1]
        index = packing.index[directions].to(x.device)  # (D, S)
        inverse = packing.inverse[directions].to(x.device)  # (D, S)
        packed = x[index]  # (D, S, P)
        outputs = x.new_empty(num_layers, *packed.shape)  # (L, D, S, P)
        if start is None:
            hidden = x.new_zeros(num_layers, len(index), batch, dim)  # (L, D, B, P)
            cell = x.new_zeros(num_layers, len(index), batch, self._shape.cell_dim)  # (L, D, B, N)
        else:
            hidden, cell = start[0].clone(), 2 * start[1]
        for number, layer in enumerate(self._layers):
            state = (hidden[number], cell[number])
            self._run_layer(
                layer[directions], packed, outputs[number], packing, state, from_zero=start is None
            )
            if self._shape.skip_connections and number > 0:
                outputs[number] += packed
            packed = outputs[number]
        for number, direction in enumerate(range(2)[directions]):
            out[:, :, direction] = outputs[:, number, inverse[number]]
        return hidden, cell.div_(2)

    def _run_layer(
        self,
        weights: list["_Products"],
        x: Tensor,
        out: Tensor,
        packing: Packing,
        state: tuple[Tensor, Tensor],
        *,
        from_zero: bool,
    ) -> None:
        """Write the outputs of a layer into `out`, and its state at the end over `state`.

        With everything that meets a σ in place of a tanh doubled (the candidate's rows of W and b, and the
        cell itself, C = 2c), a step is

            s = σ(z)
            C ← clip(s_f · C + 4 · s_i · (s_j - ½), ± 2 cell_clip)
            h = clip(2W_p (s_o · (σ(C) - ½)), ± projection_clip)
        """
        end_hidden, cell = state
        hidden = None if from_zero else end_hidden.clone()
        own_hidden = None if hidden is None else hidden.unbind()
        scratch = torch.empty_like(cell)
        most = max(cell.shape[1], _BLOCK_NUMBERS // (4 * self._shape.cell_dim))
        space = x.new_empty(len(weights), min(most, x.shape[1]), 4 * self._shape.cell_dim)
        running_cell, running_scratch, own_scratch = cell, scratch, scratch.unbind()
        for sizes, begin, end in step_blocks(packing.step_sizes, most):
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

    def _step(
        self,
        weights: list["_Products"],
        step: "_Step",
        own_hidden: Tensors | None,
        cell: Tensor,
        scratch: Tensor,
        own_scratch: Tensors,
    ) -> None:
        """Run a time step of b sentences: from each direction's hidden (b, P), update `cell` (D, b, N)."""
        shape = self._shape
        if own_hidden is not None:  # else zero: nothing to add
            for one, gates, hidden in zip(weights, step.own_gates, own_hidden, strict=True):
                one.state.add_to(gates, hidden)
        step.gates.sigmoid_()  # (D, b, 4N)
        s_i, s_f, s_j, s_o = step.each_gate  # (D, b, N) each, views of it
        cell.mul_(s_f).addcmul_(s_i, s_j.sub_(self._half), value=4)
        if shape.cell_clip is not None:
            cell.clamp_(-2 * shape.cell_clip, 2 * shape.cell_clip)
        torch.sigmoid(cell, out=scratch)
        scratch.sub_(self._half).mul_(s_o)
        if weights[0].projection is None:
            torch.mul(scratch, 2, out=step.out)
            return
        for one, out, what in zip(weights, step.own_out, own_scratch, strict=True):
            if one.projection is not None:
                one.projection.into(out, what)
        if shape.projection_clip is not None:
            step.out.clamp_(-shape.projection_clip, shape.projection_clip)


class _Products(NamedTuple):
    """The matrices of one layer and direction, laid out."""

    input: Product
    state: Product
    projection: Product | None


@torch.no_grad()
def _prepare(weights: LayerWeights, shape: LSTMShape, precision: Precision) -> _Products:
    projection = weights.projection
    bound = 1.0 if projection is None else shape.projection_clip  # of |σ(o) · tanh(c)|, or of |h|
    gates = gate_products(weights, shape, precision, bound=bound)
    if projection is None:
        return _Products(*gates, None)
    return _Products(*gates, make_product(precision, 2 * projection, bound=0.5))  # of |s_o · (σ(C) - ½)|


class _Step(NamedTuple):
    """Views on the memory of one time step of b sentences: of all directions together, and of each."""

    gates: Tensor  # (D, b, 4N)
    each_gate: Tensors  # four of (D, b, N)
    own_gates: Tensors  # D of (b, 4N)
    out: Tensor  # (D, b, P), the new hidden state
    own_out: Tensors  # D of (b, P)


def _steps(block: Tensor, out: Tensor, sizes: list[int]) -> Iterator[_Step]:
    """Split a block, (D, block, 4N) and (D, block, P), into its steps.

    All views are made at once: one by one they would cost more than the sums of a single sentence.
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
