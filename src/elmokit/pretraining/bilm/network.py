"""One step of training: the loss of a window and the gradients of all parameters.

    distinct types → token encoder (each type once) → x
    for each direction, on a thread of its own: gather x → LSTM layers → softmax → and all the way back
    gradients of x from both directions → back through the token encoder

The directions share nothing in between, so they run side by side without waiting. Sums are formed in a fixed
order, so a step always gives the same numbers.

Shapes: T steps, B rows, U distinct types, P projection, V words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmokit.kernels import LayerWeights, PairOfThreads, Precision, lstm_window
from elmokit.model import BiLM, BiLSTMLayer, LayerState
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.bilm.softmax_training import (
    AdaptiveSoftmax,
    FullSoftmax,
    Objective,
    RowGradient,
    SampledSoftmax,
    SoftmaxTable,
    coalesce,
)
from elmokit.pretraining.bilm.teacher import Teacher, distance
from elmokit.pretraining.bilm.windows import Ids, Window
from elmokit.text import SPECIAL_TOKENS, UNKNOWN_TOKEN

_UNKNOWN = SPECIAL_TOKENS.index(UNKNOWN_TOKEN)
EncoderInputs = Callable[[Ids], tuple[Tensor, ...]]


class WindowResult(NamedTuple):
    """What a step found.

    Attributes:
        forward, backward: Mean loss of each direction.
        table: Gradient of the softmax.
        state: After the window; that of a teacher follows that of the model.
        distance: From the teacher; None without one.
    """

    forward: float
    backward: float
    table: RowGradient
    state: list[LayerState]
    distance: float | None


@dataclass(frozen=True)
class _DirectionResult:
    loss: float
    x: Tensor  # (U, P) gradient of the type vectors
    layers: list[LayerWeights]  # gradients
    table: list[RowGradient]
    ends: list[tuple[Tensor, Tensor]]
    maps: Sequence[Tensor] = ()  # gradients of the maps to a teacher's layers
    distance: float = 0.0


class TrainingNetwork:
    """A biLM and its softmax in training. After `step` the biLM's parameters have their gradients.

    Args:
        model: The biLM; trained in place.
        table: The softmax; trained in place.
        recipe: How.
        encoder_inputs: Makes the inputs of the model's encoder from type ids.
        precision: Of the matrix products.
        threads: To work with.
        rows: The rows of the batch that this process has; by default all.
        frozen: Train the softmax alone.
        teacher: A model whose layers are imitated; the maps to them get gradients too.
    """

    def __init__(
        self,
        model: BiLM,
        table: SoftmaxTable,
        recipe: Recipe,
        encoder_inputs: EncoderInputs,
        *,
        precision: Precision = "float32",
        threads: PairOfThreads | None = None,
        rows: slice | None = None,
        frozen: bool = False,
        teacher: Teacher | None = None,
    ) -> None:
        self.model, self.table, self.recipe, self.frozen = model, table, recipe, frozen
        self._rows = rows or slice(0, recipe.batch)
        self._encoder_inputs = encoder_inputs
        self._precision = precision
        self._objective = make_objective(recipe, precision)
        self._layers = [layer for layer in model.layers if isinstance(layer, BiLSTMLayer)]
        self._teacher = teacher
        self._device = table.weight.device
        self._threads = threads or PairOfThreads(self._device)

    def step(self, window: Window, state: Sequence[LayerState], step: int) -> WindowResult:
        """Compute losses and gradients of a window; those of the network go to `.grad` of its parameters.

        Args:
            window: The text.
            state: Of the model before it, followed by that of the teacher.
            step: The number of the step, from which all random numbers follow.
        """
        inputs = self._encoder_inputs(window.types)
        # Every other type, for equal work: ids go by frequency, so the first half would have the short words.
        halves = self._threads.map(self._encode, [[part[h::2] for part in inputs] for h in range(2)])
        x = halves[0].new_empty(len(window.types), halves[0].shape[1])  # (U, P)
        x[0::2], x[1::2] = (half.detach() for half in halves)
        resets = self._resets(window, step)
        taught = None if self._teacher is None else self._teacher.encode(window.types)  # (U, Q)
        results = self._threads.map(
            lambda direction: self._run_direction(direction, x, taught, window, state, resets, step), range(2)
        )
        self.model.zero_grad()
        if not self.frozen:
            self._set_layer_gradients(results)
            self._set_map_gradients(results)
            grad_x = results[0].x + results[1].x  # (U, P)
            self._set_encoder_gradients(halves, [grad_x[h::2] for h in range(2)])
        ends = [
            LayerState(*(torch.stack(pair) for pair in zip(*layer, strict=True)))
            for layer in zip(results[0].ends, results[1].ends, strict=True)
        ]
        table = coalesce([gradient for result in results for gradient in result.table])
        apart = None if self._teacher is None else (results[0].distance + results[1].distance) / 2
        return WindowResult(results[0].loss, results[1].loss, table, ends, apart)

    def _encode(self, inputs: list[Tensor]) -> Tensor:
        with torch.set_grad_enabled(not self.frozen):
            encoded: Tensor = self.model.encoder(*(part.to(self._device) for part in inputs))
        return encoded

    def _resets(self, window: Window, step: int) -> list[Tensor]:
        """Return, for each step of the window, the rows whose state is set to zero before it."""
        shape = (self.recipe.unroll, self.recipe.batch)
        chance = np.random.default_rng([self.recipe.seed, step]).random(shape)[:, self._rows]
        zero = window.starts & (chance < self.recipe.reset)  # (T, B)
        return [torch.from_numpy(np.flatnonzero(row)).to(self._device) for row in zero]

    def _run_direction(
        self,
        direction: int,
        x: Tensor,
        taught: Tensor | None,
        window: Window,
        state: Sequence[LayerState],
        resets: list[Tensor],
        step: int,
    ) -> _DirectionResult:
        """Run forward and backward through all layers of one direction."""
        seeds = np.random.SeedSequence([self.recipe.seed, step, direction]).generate_state(2, np.uint64)
        draws = torch.Generator().manual_seed(int(seeds[0]) >> 1)  # the same in all processes
        generator = torch.Generator(self._device).manual_seed((int(seeds[1]) >> 1) + self._rows.start)
        places = torch.from_numpy(window.inputs[direction]).to(self._device)  # (T, B)
        targets = torch.from_numpy(window.targets[direction]).to(self._device).flatten()  # (TB,)
        targets = targets.masked_fill(targets >= self.table.num_words, _UNKNOWN)
        leaf = x[places].requires_grad_(not self.frozen)  # (T, B, P)
        weights = [_weights_of(layer, direction, train=not self.frozen) for layer in self._layers]
        hidden, ends, layers = leaf, [], [leaf]
        for number, layer in enumerate(weights):
            hidden = self._drop(hidden, generator)
            start = (state[number].hidden[direction], state[number].cell[direction])
            used = self._drop_weights(layer, generator)
            out, end = lstm_window(hidden, used, start, resets, self.model.config, self._precision)
            hidden = out + hidden if self.model.config.skip_connections and number > 0 else out
            ends.append(end)
            layers.append(hidden)
        top = self._drop(hidden, generator).flatten(0, 1)  # (TB, P)
        scale = self.recipe.loss_factor / (2 * self.recipe.batch * self.recipe.unroll)
        found = self._objective(self.table, top.detach(), targets, scale, draws)
        loss = found.loss / len(targets)
        if self.frozen:
            return _DirectionResult(loss, x, [], found.table, ends)
        leaves = [leaf, *(tensor for layer in weights for tensor in _tensors(layer))]
        outputs, grad_outputs, maps, apart = [top], [found.hidden], list[Tensor](), None
        if self._teacher is not None and taught is not None:
            maps = self._teacher.maps_of(direction)
            theirs, of_teacher = self._teacher.layers(
                direction, taught[places], state[len(weights) :], resets, self._precision
            )
            apart = distance(maps, layers, theirs)
            share = places.shape[1] / self.recipe.batch  # the rows of this process
            outputs.append(apart)
            grad_outputs.append(apart.new_tensor(self.recipe.loss_factor * self.recipe.imitate * share / 2))
            ends += of_teacher
        grad_leaf, *grads = torch.autograd.grad(outputs, [*leaves, *maps], grad_outputs)
        grad_x = torch.zeros_like(x).index_add_(0, places.flatten(), grad_leaf.flatten(0, 1))
        of_layers, of_maps = grads[: len(leaves) - 1], grads[len(leaves) - 1 :]
        layer_grads = _as_weights(of_layers, len(weights))
        return _DirectionResult(
            loss, grad_x, layer_grads, found.table, ends, of_maps, 0.0 if apart is None else apart.item()
        )

    def _drop(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Apply dropout to (T, B, P), with one mask for all steps if the recipe is variational."""
        if not self.recipe.dropout:
            return x
        keep = 1 - self.recipe.dropout
        shape = x.shape[1:] if self.recipe.variational else x.shape
        mask = torch.empty(shape, device=x.device).bernoulli_(keep, generator=generator).div_(keep)
        return x * mask

    def _drop_weights(self, layer: LayerWeights, generator: torch.Generator) -> LayerWeights:
        if not self.recipe.weight_drop:
            return layer
        keep = 1 - self.recipe.weight_drop
        mask = torch.empty_like(layer.state_weight).bernoulli_(keep, generator=generator).div_(keep)
        return LayerWeights(layer.input_weight, layer.state_weight * mask, layer.bias, layer.projection)

    def _set_layer_gradients(self, results: list[_DirectionResult]) -> None:
        for number, layer in enumerate(self._layers):
            both = [result.layers[number] for result in results]
            for name, parameter in layer.named_parameters():
                parameter.grad = torch.stack([getattr(weights, name) for weights in both])

    def _set_map_gradients(self, results: list[_DirectionResult]) -> None:
        if self._teacher is not None:
            both = zip(*(result.maps for result in results), strict=True)
            for parameter, grads in zip(self._teacher.maps, both, strict=True):
                parameter.grad = torch.stack(grads)

    def _set_encoder_gradients(self, halves: list[Tensor], grads: list[Tensor]) -> None:
        parameters = list(self.model.encoder.parameters())
        pairs = list(zip(halves, grads, strict=True))
        first, second = self._threads.map(
            lambda pair: torch.autograd.grad(pair[0], parameters, pair[1]), pairs
        )
        for parameter, a, b in zip(parameters, first, second, strict=True):
            parameter.grad = a + b


def make_objective(recipe: Recipe, precision: Precision = "float32") -> Objective:
    """Return the recipe's softmax."""
    if recipe.softmax == "full":
        return FullSoftmax(precision)
    if recipe.softmax == "adaptive":
        return AdaptiveSoftmax(precision)
    return SampledSoftmax(recipe.negatives, precision)


def _weights_of(layer: BiLSTMLayer, direction: int, *, train: bool) -> LayerWeights:
    return layer.weights(direction).apply(lambda part: part.detach().requires_grad_(train))


def _tensors(weights: LayerWeights) -> list[Tensor]:
    return [part for part in weights if part is not None]


def _as_weights(tensors: Sequence[Tensor], layers: int) -> list[LayerWeights]:
    each = len(tensors) // layers
    groups = [tensors[start : start + each] for start in range(0, len(tensors), each)]
    return [LayerWeights(group[0], group[1], group[2], group[3] if each == 4 else None) for group in groups]
