"""The biLM made ready for embedding: the same numbers as `BiLM`, without gradients and without needless work.

`BiLM` says what is computed; this says how, as fast as the machine allows:
  * every matrix is laid out once, in the chosen precision;
  * the input half of all gates is a large product for many steps, the state half a small one for each step;
  * gates are worked on in place, both directions in one pass;
  * tanh(x) is written 2σ(2x) - 1, because torch's vectorised σ is about four times as fast as its tanh. All
    factors of two are folded into weights, where they are exact.

Shapes: see `lstm.py`.
"""

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.model.bilm import BiLM, State
from elmokit.model.char_cnn import CharCNN, Highway
from elmokit.model.lstm import BiLSTMLayer, LayerState, Packing
from elmokit.model.precision import Precision, make_product

# The gates' input half of one direction for one block of steps, in numbers (8 MB in float32): larger blocks
# leave the processor's cache.
_BLOCK_NUMBERS = 2 * 1024 * 1024


class InferenceBiLM:
    """A frozen copy of a BiLM, made for embedding.

    Args:
        model: what to copy; later changes of its weights are not seen.
        precision: of the products.
    """

    def __init__(self, model: BiLM, precision: Precision) -> None:
        self.config = model.config
        self.precision = precision
        self._encoder = (
            _Encoder(model.encoder, precision) if isinstance(model.encoder, CharCNN) else model.encoder
        )
        self._layers = [_Layer(layer, precision) for layer in model.layers if isinstance(layer, BiLSTMLayer)]

    @torch.inference_mode()
    def encode(self, *inputs: Tensor) -> Tensor:
        """The vectors (U, P) of types, from what the model's encoder takes."""
        vectors: Tensor = self._encoder(*inputs)
        return vectors

    @torch.inference_mode()
    def __call__(
        self, x: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, list[LayerState]]:
        """What `BiLM.forward` gives: (S, P), (B,) → (L + 1, S, 2P) and the state after each sentence."""
        packing = Packing.of(lengths)
        index, inverse = packing.index.to(x.device), packing.inverse.to(x.device)  # (2, S)
        order, rank = packing.order.to(x.device), torch.argsort(packing.order).to(x.device)  # (B,)
        dim = self.config.projection_dim
        layers = x.new_empty(len(self._layers) + 1, len(x), 2 * dim)  # (L + 1, S, 2P)
        layers[0, :, :dim] = layers[0, :, dim:] = x
        packed, ends = x[index], []  # (2, S, P)
        for number, layer in enumerate(self._layers):
            start = None if state is None else state[number].rows(order)
            out, end = layer(packed, packing, start)
            packed = out.add_(packed) if self.config.skip_connections and number > 0 else out
            for direction in range(2):
                half = layers[number + 1, :, direction * dim : (direction + 1) * dim]
                half.copy_(packed[direction][inverse[direction]])
            ends.append(end.rows(rank))
        return layers, ends


class _Encoder:
    """The character encoder with its tables made once."""

    def __init__(self, encoder: CharCNN, precision: Precision) -> None:
        self._encoder = encoder
        self._tables = [table.detach() for table in encoder.tables()]
        # Gate and transform side by side are one product.
        self._highways = [
            make_product(
                precision,
                torch.cat([highway.gate.weight, highway.transform.weight]),
                torch.cat([highway.gate.bias, highway.transform.bias]),
            )
            for highway in encoder.highways
            if isinstance(highway, Highway)
        ]
        linear = encoder.projection
        self._projection = None if linear is None else make_product(precision, linear.weight, linear.bias)

    def __call__(self, ids: Tensor, used: Tensor) -> Tensor:
        x = self._encoder.convolve(ids, used, self._tables)  # (U, F)
        for highway in self._highways:
            gate, transformed = highway(x).chunk(2, dim=-1)  # (U, F) each
            x = torch.lerp(x, functional.relu_(transformed), gate.sigmoid_())
        return x if self._projection is None else self._projection(x)


class _Layer:
    """One LSTM layer of both directions.

    With everything that meets a σ-for-tanh doubled (the candidate's rows of W and b, and the cell itself,
    C = 2c), a step is

        s = σ(z);  C ← clip(s_f · C + 4 · s_i · (s_j - ½), ± 2 cell_clip);  h = clip(2W_p (s_o · (σ(C) - ½)))
    """

    def __init__(self, layer: BiLSTMLayer, precision: Precision) -> None:
        config = layer.config
        self._config = config
        gates = layer.bias.new_tensor([1.0, 1.0, 2.0, 1.0]).repeat_interleave(config.cell_dim)  # (4N,)
        forget = layer.bias.new_tensor([0.0, config.forget_bias, 0.0, 0.0]).repeat_interleave(config.cell_dim)
        with torch.no_grad():
            biases = (layer.bias + forget) * gates  # (2, 4N)
            rows = gates[:, None]
            self._inputs = [
                make_product(precision, weight * rows, bias)
                for weight, bias in zip(layer.input_weight, biases, strict=True)
            ]
            self._states = [make_product(precision, weight * rows) for weight in layer.state_weight]
            projection = layer.projection
            self._projections = (
                None if projection is None else [make_product(precision, 2 * weight) for weight in projection]
            )

    def __call__(self, x: Tensor, packing: Packing, state: LayerState | None) -> tuple[Tensor, LayerState]:
        """(2, S, P) packed → (2, S, P) packed, and the state after each sentence, longest first."""
        sizes = packing.step_sizes
        batch, cell_dim = len(packing.order), self._config.cell_dim
        out = torch.empty_like(x)
        cell = x.new_zeros(2, batch, cell_dim) if state is None else 2 * state.cell
        hidden = None if state is None else state.hidden  # zero: nothing to add
        work = x.new_empty(2, batch, cell_dim)
        most = max(batch, _BLOCK_NUMBERS // (4 * cell_dim))
        space = x.new_empty(2, min(most, x.shape[1]), 4 * cell_dim)
        step = start = 0
        while step < len(sizes):
            stop, end = step + 1, start + sizes[step]
            while stop < len(sizes) and end + sizes[stop] - start <= most:
                end += sizes[stop]
                stop += 1
            block = [  # (block, 4N) each
                product(x[d, start:end], space[d, : end - start]) for d, product in enumerate(self._inputs)
            ]
            offset = 0
            for size in sizes[step:stop]:
                gates = [half[offset : offset + size] for half in block]  # (b, 4N) each
                target = out[:, start + offset : start + offset + size]  # (2, b, P)
                self._step(gates, hidden, cell[:, :size], work[:, :size], target)
                hidden, offset = target, offset + size
            step, start = stop, end
        return out, LayerState(self._last(out, packing, state), cell / 2)

    def _step(
        self, gates: list[Tensor], hidden: Tensor | None, cell: Tensor, work: Tensor, target: Tensor
    ) -> None:
        """One time step of b sentences: updates `cell` and writes the new hidden state into `target`."""
        config = self._config
        for d in range(2):
            if hidden is not None:
                self._states[d].add_to(gates[d], hidden[d, : len(gates[d])])
            s_i, s_f, s_j, s_o = gates[d].sigmoid_().chunk(4, dim=-1)  # (b, N) each
            c, m = cell[d], work[d]
            c.mul_(s_f).addcmul_(s_i, s_j.sub_(0.5), value=4)
            if config.cell_clip is not None:
                c.clamp_(-2 * config.cell_clip, 2 * config.cell_clip)
            torch.sigmoid(c, out=m)
            m.sub_(0.5).mul_(s_o)
            if self._projections is None:
                torch.mul(m, 2, out=target[d])
            else:
                self._projections[d].into(target[d], m)
        if self._projections is not None and config.projection_clip is not None:
            target.clamp_(-config.projection_clip, config.projection_clip)

    @staticmethod
    def _last(out: Tensor, packing: Packing, state: LayerState | None) -> Tensor:
        """(2, B, P) the hidden state at each sentence's own last step."""
        sizes = torch.tensor([*packing.step_sizes, 0])
        batch = len(packing.order)
        ranks = torch.arange(batch)
        steps = (sizes[None, :] > ranks[:, None]).sum(dim=1)  # (B,) length of each sentence, longest first
        starts = torch.cumsum(sizes, 0) - sizes
        places = (starts[(steps - 1).clamp_min(0)] + ranks).to(out.device)  # (B,)
        hidden = out.new_zeros(2, batch, out.shape[-1]) if state is None else state.hidden.clone()
        running = int((steps > 0).sum())
        hidden[:, :running] = out[:, places[:running]]
        return hidden
