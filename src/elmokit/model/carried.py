"""State that is carried from call to call, row by row, as in the old systems."""

from torch import Tensor

from elmokit.model.bidirectional import BiLM
from elmokit.model.lstm import LayerState


class CarriedState:
    """Where each row of the earlier calls has stopped; new rows start from zero."""

    def __init__(self) -> None:
        self._layers: list[LayerState] | None = None

    def reset(self) -> None:
        """Forget everything: the next call starts from zero."""
        self._layers = None

    def rows(self, model: BiLM, rows: Tensor) -> list[LayerState]:
        """Return the state of these rows."""
        weight = next(model.parameters())
        layers = model.start(0) if self._layers is None else [layer.to(weight) for layer in self._layers]
        missing = int(rows.max()) + 1 - layers[0].cell.shape[1] if len(rows) else 0
        if missing > 0:
            layers = [
                LayerState.cat([old, new]) for old, new in zip(layers, model.start(missing), strict=True)
            ]
        self._layers = layers
        return [layer.rows(rows) for layer in layers]

    def put(self, rows: Tensor, ends: list[LayerState]) -> None:
        """Keep the state of these rows, which `rows` has returned before."""
        assert self._layers is not None
        # New tensors: those of inference mode cannot be written outside it.
        self._layers = [
            LayerState(_with_rows(old.hidden, rows, new.hidden), _with_rows(old.cell, rows, new.cell))
            for old, new in zip(self._layers, ends, strict=True)
        ]


def _with_rows(old: Tensor, rows: Tensor, new: Tensor) -> Tensor:
    changed = old.clone()
    changed[:, rows] = new.detach().to(old)
    return changed
