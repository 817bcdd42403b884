"""One step of training a biLM whose layers read all tokens at once: gated convolutions or transformers.

    distinct types → token encoder (each type once) → x
    gather x for both directions → dropout → layers → softmax → and all the way back by autograd

A window of a row is read as the texts that it consists of; a text goes on over a sentence boundary where the
recipe does not reset it. Nothing is carried from window to window.

Shapes: T steps, B rows, U distinct types, P projection.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from elmokit.kernels import Precision, dropout
from elmokit.model import BiLM, LayerState
from elmokit.pretraining.bilm.network import WindowResult, make_objective
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.bilm.softmax_training import SoftmaxTable, coalesce
from elmokit.pretraining.bilm.windows import Ids, Window
from elmokit.text import SPECIAL_TOKENS, UNKNOWN_TOKEN

_UNKNOWN = SPECIAL_TOKENS.index(UNKNOWN_TOKEN)


class ParallelNetwork:
    """Such a biLM and its softmax in training; see `TrainingNetwork`, which does the same for LSTMs.

    Args:
        model: The biLM; trained in place.
        table: The softmax; trained in place.
        recipe: How.
        encoder_inputs: Makes the inputs of the model's encoder from type ids.
        precision: Of the matrix products.
        rows: The rows of the batch that this process has; by default all.
        frozen: Train the softmax alone.
    """

    def __init__(
        self,
        model: BiLM,
        table: SoftmaxTable,
        recipe: Recipe,
        encoder_inputs: Callable[[Ids], tuple[Tensor, ...]],
        *,
        precision: Precision = "float32",
        rows: slice | None = None,
        frozen: bool = False,
    ) -> None:
        self.model, self.table, self.recipe, self.frozen = model, table, recipe, frozen
        self._rows = rows or slice(0, recipe.batch)
        self._encoder_inputs, self._precision = encoder_inputs, precision
        self._objective = make_objective(recipe, precision)
        self._device = table.weight.device

    def step(self, window: Window, state: Sequence[LayerState], step: int) -> WindowResult:
        """Compute losses and gradients of a window; those of the network go to `.grad` of its parameters."""
        recipe = self.recipe
        seeds = np.random.SeedSequence([recipe.seed, step]).generate_state(2, np.uint64)
        draws = torch.Generator().manual_seed(int(seeds[0]) >> 1)  # the same in all processes
        generator = torch.Generator(self._device).manual_seed((int(seeds[1]) >> 1) + self._rows.start)
        lengths = self._lengths(window, step)
        self.model.zero_grad()
        with torch.set_grad_enabled(not self.frozen):
            top = self._top(window, lengths, generator)  # (2, BT, P)
        scale = recipe.loss_factor / (2 * recipe.batch * recipe.unroll)
        losses, grads, table = [], [], []
        for direction in range(2):
            targets = _by_row(window.targets[direction]).to(self._device)  # (BT,)
            targets = targets.masked_fill(targets >= self.table.num_words, _UNKNOWN)
            found = self._objective(self.table, top[direction].detach(), targets, scale, draws)
            losses.append(found.loss / len(targets))
            grads.append(found.hidden)
            table += found.table
        if not self.frozen:
            torch.autograd.backward(top, torch.stack(grads))
        return WindowResult(losses[0], losses[1], coalesce(table), [], None)

    def _top(self, window: Window, lengths: Tensor, generator: torch.Generator) -> Tensor:
        """Return the top layer of both directions, each in the order in which it reads, (2, BT, P)."""
        inputs = (part.to(self._device) for part in self._encoder_inputs(window.types))
        x = self.model.encoder(*inputs)  # (U, P)
        places = torch.stack([_by_row(part) for part in window.inputs]).to(self._device)  # (2, BT)
        hidden = x[places]
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._precision == "bfloat16"):
            for layer in self.model.layers:
                hidden = layer(self._drop(hidden, generator), lengths)
        return self._drop(hidden.float(), generator)

    def _drop(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return dropout(x, self.recipe.dropout, training=True, generator=generator)

    def _lengths(self, window: Window, step: int) -> Tensor:
        """Return the lengths of the texts that the rows are read as."""
        shape = (self.recipe.unroll, self.recipe.batch)
        chance = np.random.default_rng([self.recipe.seed, step]).random(shape)[:, self._rows]
        starts = window.starts & (chance < self.recipe.reset)  # (T, B)
        starts[0] = True
        places = np.flatnonzero(starts.T)  # row after row
        return torch.from_numpy(np.diff(places, append=starts.size))


def _by_row(array: Ids) -> Tensor:
    """Lay out (T, B) row after row, (BT,)."""
    return torch.from_numpy(np.ascontiguousarray(array.T)).flatten()
