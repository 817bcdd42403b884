"""Pretraining of BERT as a job for the training loop."""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.kernels import Precision
from elmokit.pretraining.bert.bert_recipe import BertRecipe
from elmokit.pretraining.bert.masked_network import MaskedNetwork, MaskedScores
from elmokit.pretraining.bert.packed_rows import PackedRows, RowBatch
from elmokit.pretraining.bert.word_pieces import PieceText
from elmokit.training import Evaluation, Processes, StepResult

EVALUATED_ROWS = 64  # of the held-out text, while the model is trained
HELDOUT = "held-out text"
_EVALUATION_SHARE = 0.05  # of the time, at most
_BETAS, _EPSILON = (0.9, 0.98), 1e-6


class BertJob:
    """A BERT, trained batch by batch.

    Args:
        model: Of transformers; trained in place.
        text: To train on.
        heldout: To measure on.
        recipe: How.
        continues: (V,) whether a piece continues a word.
        processes: That train together; each has some rows of the batch.
        precision: Of the matrix products.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 (untyped)
        text: PieceText,
        heldout: PieceText,
        recipe: BertRecipe,
        continues: np.ndarray,
        *,
        processes: Processes | None = None,
        precision: Precision = "float32",
    ) -> None:
        self.model, self.recipe = model, recipe
        self._processes = processes or Processes()
        self._rows = self._processes.rows(recipe.batch)
        self._batches = PackedRows(text, recipe, continues)
        self._heldout = _heldout_rows(heldout, recipe, continues)
        self._network = MaskedNetwork(model, precision)
        self._optimizer = torch.optim.AdamW(
            _groups(model, recipe.weight_decay),
            lr=recipe.learning_rate,
            betas=_BETAS,
            eps=_EPSILON,
            fused=True,
        )
        self._evaluated_at, self._evaluation_seconds = -math.inf, 0.0

    @property
    def steps_per_epoch(self) -> int:
        """Batches that have as many pieces as the text."""
        return self._batches.per_pass

    def compute(self, step: int) -> StepResult:
        """Compute losses and gradients of a batch."""
        batch = self._batches(step, self._rows)
        self._optimizer.zero_grad()
        totals = self._sum([len(batch.masked), len(batch.labels)])
        found = self._network.step(batch, totals, (self.recipe.seed, step, self._rows.start))
        sums = self._sum([found.masked, found.next_sentence, int((batch.sequences >= 0).sum())])
        masked = sums[0] / totals[0]
        values, loss = {"masked_loss": masked}, masked
        if self._network.nsp and totals[1]:
            values["next_sentence_loss"] = sums[1] / totals[1]
            loss += values["next_sentence_loss"]
        return StepResult(loss, round(sums[2]), values)

    def update(self, rate: float) -> float:
        """Sum the gradients over all processes, clip them and update."""
        grads = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        self._processes.sum_in_place(grads)
        norm = float(nn.utils.get_total_norm(grads))
        if math.isfinite(norm):
            factor = min(1.0, self.recipe.clip_norm / max(norm, 1e-30))
            for grad in grads:
                grad.mul_(factor)
            for group in self._optimizer.param_groups:
                group["lr"] = rate
            self._optimizer.step()
        return norm

    def evaluate(self) -> Evaluation | None:
        """Measure some held-out rows, if that takes a small share of the time."""
        resting = time.monotonic() - self._evaluated_at
        too_soon = resting <= self._evaluation_seconds / _EVALUATION_SHARE
        if not self._processes.leads or too_soon:
            return None
        began = time.monotonic()
        found = self.measure()
        self._evaluated_at, self._evaluation_seconds = time.monotonic(), time.monotonic() - began
        if found is None:
            return None
        text = f"{found.text}: masked loss {found.loss:.3f}, {found.accuracy:.1%} found"
        return Evaluation({"heldout": found.to_dict()}, text)

    def measure(self) -> MaskedScores | None:
        """Measure held-out rows, the same ones every time; None if there are none."""
        return None if self._heldout is None else self._network.measure(self._heldout, HELDOUT)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a checkpoint needs."""
        return {"model": self.model.state_dict(), "optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned."""
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])

    def _sum(self, values: list[float]) -> list[float]:
        return [value * self._processes.count for value in self._processes.mean(values)]


def _heldout_rows(text: PieceText, recipe: BertRecipe, continues: np.ndarray) -> RowBatch | None:
    rows = min(EVALUATED_ROWS, len(text.pieces) // recipe.length)
    documents = np.diff(text.documents)
    nsp = recipe.nsp and len(documents) > 1 and int(documents.max()) > 1
    return PackedRows(text, replace(recipe, batch=rows, nsp=nsp), continues)(0) if rows else None


def _groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Matrices decay; biases, norms and embeddings do not."""
    matrices: list[Tensor] = []
    others: list[Tensor] = []
    for name, parameter in model.named_parameters():
        (others if parameter.dim() < 2 or "embeddings" in name else matrices).append(parameter)
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
