"""All layers of a projected LSTM over packed batches, by the native kernel.

Shapes: B sentences, S tokens, N cell, P projection, L layers, D directions of a call.
"""

import ctypes
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from elmokit.errors import ConfigError
from elmokit.kernels.gates import LayerWeights, LSTMShape, add_to_forget_gate
from elmokit.kernels.native.library import NativeCall, NativeEngine, NativeObject, address, call
from elmokit.kernels.packing import Packing


class NativeLSTM:
    """What `InferenceLSTM` is, computed by the native kernel.

    Args:
        layers: For each layer its weights in each direction. Packed once; later changes are not seen.
        shape: Of the model.
        engine: Instruction set and precision.
    """

    # Multiplications below which a second thread costs more (about 50 µs to wake it) than it brings.
    worth_a_thread = 60_000_000

    def __init__(
        self, layers: Sequence[Sequence[LayerWeights]], shape: LSTMShape, engine: NativeEngine
    ) -> None:
        self._arguments = (layers, shape, engine)
        self._cell_dim, self._dim = shape.cell_dim, layers[0][0].input_weight.shape[1]
        self._num_layers = len(layers)
        self._directions = [
            _pack([directions[number] for directions in layers], shape, engine)
            for number in range(len(layers[0]))
        ]

    def __reduce__(self) -> tuple[type["NativeLSTM"], tuple[object, ...]]:
        return NativeLSTM, self._arguments

    def __call__(
        self,
        x: Tensor,
        directions: slice,
        packing: Packing,
        start: tuple[Tensor, Tensor] | None,
        out: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Run all layers over a batch; see `InferenceLSTM`."""
        numbers = range(len(self._directions))[directions]
        tokens, batch = len(x), len(packing.order)
        sizes = torch.tensor(packing.step_sizes, dtype=torch.int32)  # (steps,)
        hidden = x.new_empty(self._num_layers, len(numbers), batch, self._dim)  # (L, D, B, P)
        cell = x.new_empty(self._num_layers, len(numbers), batch, self._cell_dim)  # (L, D, B, N)
        if start is not None:
            start = (start[0].contiguous(), start[1].contiguous())
            address(start[0], *hidden.shape), address(start[1], *cell.shape)
        place = address(out, self._num_layers, tokens, len(self._directions), self._dim)
        for position, number in enumerate(numbers):
            run = NativeCall(
                x=address(x, tokens, self._dim),
                rows=tokens,
                index=address(packing.index[number], tokens, dtype=torch.int64),
                sizes=sizes.data_ptr(),
                steps=len(sizes),
                batch=batch,
                hidden=None if start is None else start[0][:, position].data_ptr(),
                cell=None if start is None else start[1][:, position].data_ptr(),
                hidden_stride=len(numbers) * batch * self._dim,
                cell_stride=len(numbers) * batch * self._cell_dim,
                out=place + 4 * number * self._dim,
                layer_stride=tokens * len(self._directions) * self._dim,
                row_stride=len(self._directions) * self._dim,
                end_hidden=hidden[:, position].data_ptr(),
                end_cell=cell[:, position].data_ptr(),
            )
            call("lstm_run", self._directions[number].pointer, ctypes.byref(run))
        return hidden, cell


@torch.no_grad()
def _pack(layers: Sequence[LayerWeights], shape: LSTMShape, engine: NativeEngine) -> NativeObject:
    """Pack the weights of all layers of one direction."""
    cells, dim = shape.cell_dim, layers[0].input_weight.shape[1]
    clips = [math.inf if clip is None else clip for clip in (shape.cell_clip, shape.projection_clip)]
    if layers[0].projection is None:
        clips[1] = math.inf
    lstm = NativeObject("lstm", *engine.codes, cells, dim, int(shape.skip_connections), *clips)
    for layer in layers:
        bias = add_to_forget_gate(layer.bias, shape.forget_bias).contiguous()
        projection = None if layer.projection is None else layer.projection.contiguous()
        if projection is None and dim != cells:
            raise ConfigError(f"a layer without projection gives {cells} numbers, its input has {dim}")
        weights = layer.input_weight.contiguous(), layer.state_weight.contiguous()
        call(
            "lstm_add",
            lstm.pointer,
            *(address(weight, 4 * cells, dim) for weight in weights),
            address(bias, 4 * cells),
            None if projection is None else address(projection, dim, cells),
        )
    return lstm
