"""A trained biLM whose layers a smaller one learns to imitate (distillation, layer by layer).

The student reads the same windows as the teacher. For each of its layers, affine maps A_l, a_l of both
directions, which are learnt too, take its vectors h_l to the teacher's t_l. The distance is the share of the
teacher's variance that they leave unexplained, 0 if nothing is lost and 1 if only the mean is known:

    d = mean over l of  mean ‖A_l h_l + a_l - t_l‖² / mean ‖t_l - t̄_l‖²

It is added to the loss of the language model. Shapes: T steps, B rows, U distinct types, P and Q projections
of student and teacher.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.errors import ConfigError
from elmokit.formats import ModelBundle
from elmokit.kernels import Precision, lstm_window
from elmokit.model import BiLMConfig, BiLSTMLayer, LayerState
from elmokit.pretraining.bilm.windows import Ids

_KEPT_TYPES = 100_000  # the commonest types, whose vectors are computed once …
_BLOCK = 1024  # … in blocks of these: what is computed together decides about the last bit
_LEAST_VARIANCE = 1e-8


class Teacher:
    """The teacher, frozen, and the maps to its layers.

    Args:
        bundle: The teacher's files.
        student: Shape of the student. Its layers are compared with teacher's layers evenly from the first to
            the last.
        spell: Returns the spellings of types, given their ids in ascending order.
        num_types: Types of the corpus, by frequency.
        device: Where both compute.

    Attributes:
        maps: Parameters that are learnt: for each layer of the student (2, Q, P) and (2, Q), zero at first.
    """

    def __init__(
        self,
        bundle: ModelBundle,
        student: BiLMConfig,
        spell: Callable[[Ids], list[str]],
        num_types: int,
        device: torch.device,
    ) -> None:
        self.model = bundle.model.to(device).requires_grad_(False)
        self._layers = [layer for layer in self.model.layers if isinstance(layer, BiLSTMLayer)]
        if len(self._layers) < len(self.model.layers):
            raise ConfigError(f"{bundle.source}: a model of ELMoForManyLangs cannot be a teacher")
        deepest = len(self._layers)
        self._compared = [round(n * deepest / student.num_layers) for n in range(student.num_layers + 1)]
        own, theirs = student.projection_dim, self.model.config.projection_dim
        shapes = ((2, theirs, own), (2, theirs)) * len(self._compared)
        self.maps = nn.ParameterList(torch.zeros(shape, device=device) for shape in shapes)
        self._inputs = self.model.config.encoder.inputs(bundle.vocabulary, bundle.lexicon)
        self._spell, self._device = spell, device
        self._kept = torch.empty(min(num_types, _KEPT_TYPES), theirs, device=device)
        self._has_block = np.zeros(-(-len(self._kept) // _BLOCK), dtype=bool)

    @torch.no_grad()
    def encode(self, types: Ids) -> Tensor:
        """Return the teacher's vectors of types, given their ids in ascending order, (U, Q)."""
        common = types[types < len(self._kept)]
        blocks = np.unique(common // _BLOCK)
        for block in blocks[~self._has_block[blocks]].tolist():
            ids = np.arange(block * _BLOCK, min((block + 1) * _BLOCK, len(self._kept)))
            self._kept[ids[0] : ids[-1] + 1] = self._encode(ids)
            self._has_block[block] = True
        kept = self._kept[torch.from_numpy(common)]
        rare = types[len(common) :]
        return torch.cat([kept, self._encode(rare)]) if len(rare) else kept

    def _encode(self, types: Ids) -> Tensor:
        inputs = (part.to(self._device) for part in self._inputs(self._spell(types)))
        encoded: Tensor = self.model.encoder(*inputs)
        return encoded

    @torch.no_grad()
    def layers(
        self,
        direction: int,
        x: Tensor,
        state: Sequence[LayerState],
        resets: list[Tensor],
        precision: Precision,
    ) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]]]:
        """Run one direction of the teacher over a window (T, B, Q).

        Returns:
            The layers that are compared, (T, B, Q) each, and the states at the end.
        """
        config, found, ends = self.model.config, [x], []
        for number, layer in enumerate(self._layers):
            weights = layer.weights(direction).apply(Tensor.detach)
            start = (state[number].hidden[direction], state[number].cell[direction])
            out, end = lstm_window(found[-1], weights, start, resets, config, precision)
            found.append(out + found[-1] if config.skip_connections and number > 0 else out)
            ends.append(end)
        return [found[number] for number in self._compared], ends

    def maps_of(self, direction: int) -> list[Tensor]:
        """Return the maps of one direction as leaves of their own."""
        return [part[direction].detach().requires_grad_() for part in self.maps]


def distance(maps: Sequence[Tensor], own: Sequence[Tensor], theirs: Sequence[Tensor]) -> Tensor:
    """Return d for the layers of one direction, (T, B, P) and (T, B, Q) each."""
    parts = []
    for weight, bias, h, t in zip(maps[0::2], maps[1::2], own, theirs, strict=True):
        left = nn.functional.linear(h, weight, bias) - t  # (T, B, Q)
        variance = (t - t.mean(dim=(0, 1))).square().mean().clamp_min(_LEAST_VARIANCE)
        parts.append(left.square().mean() / variance)
    return torch.stack(parts).mean()
