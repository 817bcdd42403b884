"""AdamW or Adagrad for the network, the same by rows for the softmax; clipping."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.kernels import PairOfThreads
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.bilm.softmax_training import RowGradient, SoftmaxTable

_BETAS = (0.9, 0.98)
# A row of the softmax has a large gradient where its word is the target and, if the word is rare, many tiny
# ones in between, where it was drawn. If Adam forgot the large ones, it would blow up the tiny ones.
_ROW_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


class Optimizer:
    """Optimizer of the network, by its `.grad`, and of the rows of the softmax that have a gradient."""

    def __init__(self, model: nn.Module, table: SoftmaxTable, recipe: Recipe, threads: PairOfThreads) -> None:
        self._threads = threads
        self._parameters = list(model.parameters())
        self._clip_norm = recipe.clip_norm
        self._dense = _dense_optimizer(model, recipe)
        make = _RowAdam if recipe.optimizer == "adamw" else _RowAdagrad
        self._rows: list[_RowAdam | _RowAdagrad] = [make(table.weight), make(table.bias)]

    def step(self, gradient: RowGradient, learning_rate: float) -> float:
        """Clip all gradients together and update, if they are finite; return their norm before clipping."""
        trained = [p.grad for p in self._parameters if p.grad is not None]  # none where the network is frozen
        norms = torch.stack([torch.linalg.vector_norm(g) for g in (*trained, gradient.weight, gradient.bias)])
        norm = float(torch.linalg.vector_norm(norms))
        if not math.isfinite(norm):
            return norm
        factor = min(1.0, self._clip_norm / max(norm, 1e-30))

        def update_network() -> None:
            for grad in trained:
                grad.mul_(factor)
            for group in self._dense.param_groups:
                group["lr"] = learning_rate
            self._dense.step()

        def update_rows() -> None:
            for rows, grad in zip(self._rows, (gradient.weight, gradient.bias), strict=True):
                rows.step(gradient.rows, grad * factor, learning_rate)

        self._threads.map(lambda update: update(), [update_network, update_rows])
        return norm

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a checkpoint needs."""
        return {"dense": self._dense.state_dict(), "rows": [rows.state_dict() for rows in self._rows]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned."""
        self._dense.load_state_dict(state["dense"])
        for rows, kept in zip(self._rows, state["rows"], strict=True):
            rows.load_state_dict(kept)


def _dense_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    if recipe.optimizer == "adagrad":  # as in TensorFlow: accumulators start at 1, no epsilon
        return torch.optim.Adagrad(
            model.parameters(), lr=recipe.learning_rate, initial_accumulator_value=1.0, eps=0.0, fused=True
        )
    matrices: list[Tensor] = []
    others: list[Tensor] = []
    for name, parameter in model.named_parameters():
        (others if name.endswith("bias") or "embedding" in name else matrices).append(parameter)
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=_BETAS, eps=_EPSILON, fused=True)


class _RowAdam(nn.Module):
    """Adam by rows: each row counts only the steps in which it has a gradient."""

    def __init__(self, parameter: Tensor) -> None:
        super().__init__()
        self._parameter = (parameter,)  # in a tuple, so that it is not registered in this module
        self.register_buffer("mean", torch.zeros_like(parameter))
        self.register_buffer("square", torch.zeros_like(parameter))
        self.register_buffer("steps", parameter.new_zeros(len(parameter), *(1,) * (parameter.dim() - 1)))
        self.mean: Tensor
        self.square: Tensor
        self.steps: Tensor

    @torch.no_grad()
    def step(self, rows: Tensor, grad: Tensor, learning_rate: float) -> None:
        steps = self.steps[rows].add_(1)  # (r, 1), or (r,) for the bias
        mean = self.mean[rows].lerp_(grad, 1 - _ROW_BETAS[0])
        square = self.square[rows].mul_(_ROW_BETAS[1]).addcmul_(grad, grad, value=1 - _ROW_BETAS[1])
        self.steps[rows], self.mean[rows], self.square[rows] = steps, mean, square
        first, second = (1 - beta**steps for beta in _ROW_BETAS)
        root = square.div_(second).sqrt_().add_(_EPSILON)
        self._parameter[0].index_add_(0, rows, mean.div_(first).div_(root), alpha=-learning_rate)


class _RowAdagrad(nn.Module):
    """Adagrad by rows, as in TensorFlow."""

    def __init__(self, parameter: Tensor) -> None:
        super().__init__()
        self._parameter = (parameter,)
        self.register_buffer("square", torch.ones_like(parameter))
        self.square: Tensor

    @torch.no_grad()
    def step(self, rows: Tensor, grad: Tensor, learning_rate: float) -> None:
        square = self.square[rows].addcmul_(grad, grad)
        self.square[rows] = square
        self._parameter[0].index_add_(0, rows, grad / square.sqrt_(), alpha=-learning_rate)
