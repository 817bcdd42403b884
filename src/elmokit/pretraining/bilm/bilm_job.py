"""Pretraining of a biLM as a job for the training loop."""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import Tensor, nn

from elmokit.corpus import PreparedCorpus
from elmokit.formats import ModelBundle
from elmokit.kernels import PairOfThreads, Precision
from elmokit.language_model import LanguageModel
from elmokit.model import BiLM, Inputs, LayerState
from elmokit.pretraining.bilm.bilm_optimizer import Optimizer
from elmokit.pretraining.bilm.lowercase import LowerCase
from elmokit.pretraining.bilm.network import TrainingNetwork, WindowResult
from elmokit.pretraining.bilm.parallel_network import ParallelNetwork
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.bilm.softmax_training import RowGradient, SoftmaxTable, coalesce
from elmokit.pretraining.bilm.teacher import Teacher
from elmokit.pretraining.bilm.windows import Ids, Windows
from elmokit.training import Evaluation, Processes, StepResult

EVALUATED_TOKENS = 10_000  # of the held-out text, while the model is trained
_EVALUATION_SHARE = 0.05  # of the time, at most


class BiLMJob:
    """A biLM and its softmax, trained window by window.

    Args:
        model: Trained in place.
        table: The softmax; trained in place.
        corpus: The text.
        recipe: How.
        processes: That train together; each has some rows of the batch.
        precision: Of the matrix products.
        frozen: Train the softmax alone.
        teacher: The files of a model whose layers are imitated.
    """

    def __init__(
        self,
        model: BiLM,
        table: SoftmaxTable,
        corpus: PreparedCorpus,
        recipe: Recipe,
        *,
        processes: Processes | None = None,
        precision: Precision = "float32",
        frozen: bool = False,
        teacher: ModelBundle | None = None,
    ) -> None:
        self.model, self.table, self.corpus, self.recipe = model, table, corpus, recipe
        self._processes = processes or Processes()
        self._rows = self._processes.rows(recipe.batch)
        lower = LowerCase(corpus) if recipe.lowercase else None
        self._windows = Windows(
            corpus.train,
            rows=recipe.batch,
            steps=recipe.unroll,
            order=recipe.order,
            seed=recipe.seed,
            join=recipe.join,
            lowercase=recipe.lowercase,
            lowercase_ids=None if lower is None else lower.ids,
        )
        spell = corpus.spellings if lower is None else lower.spellings
        to_inputs = model.config.encoder.inputs(corpus.vocabulary, None)
        device = table.weight.device
        threads = PairOfThreads(device)
        self._teacher = None
        if teacher is not None:
            self._teacher = Teacher(teacher, model.config, spell, corpus.num_types, device)
        encoder_inputs = partial(_encoder_inputs, to_inputs, spell)
        self._network: TrainingNetwork | ParallelNetwork
        if model.config.layers == "lstm":
            self._network = TrainingNetwork(
                *(model, table, recipe, encoder_inputs),
                precision=precision,
                threads=threads,
                rows=self._rows,
                frozen=frozen,
                teacher=self._teacher,
            )
        else:
            self._network = ParallelNetwork(
                *(model, table, recipe, encoder_inputs), precision=precision, rows=self._rows, frozen=frozen
            )
        self._trained = nn.ModuleList([model, *([self._teacher.maps] if self._teacher else [])])
        self._optimizer = Optimizer(self._trained, table, recipe, threads)
        models = (model, *([self._teacher.model] if self._teacher else []))
        rows = recipe.batch // self._processes.count
        self._state = [layer for one in models for layer in one.start(rows)]
        self._computed: WindowResult | None = None
        self._evaluated_at, self._evaluation_seconds = -math.inf, 0.0

    @property
    def steps_per_epoch(self) -> int:
        """Windows in a pass over the text."""
        return self._windows.per_pass

    def compute(self, step: int) -> StepResult:
        """Compute losses and gradients of a window."""
        window = self._windows(step, self._rows)
        self._computed = found = self._network.step(window, self._state, step)
        forward, backward = self._processes.mean([found.forward, found.backward])
        name = f"{self.recipe.softmax}_loss"
        values = {f"{name}/forward": forward, f"{name}/backward": backward}
        if found.distance is not None:
            (values["teacher_distance"],) = self._processes.mean([found.distance])
        return StepResult((forward + backward) / 2, self.recipe.batch * self.recipe.unroll, values)

    def update(self, rate: float) -> float:
        """Change the network and those rows of the softmax that have a gradient."""
        assert self._computed is not None
        norm = self._optimizer.step(self._sum_gradients(self._computed.table), rate)
        if math.isfinite(norm):
            self._state = self._computed.state
        self._computed = None
        return norm

    def _sum_gradients(self, table: RowGradient) -> RowGradient:
        """Sum the gradients over all processes: those of the network in place, those of the table by rows."""
        if self._processes.count == 1:
            return table
        grads = (parameter.grad for parameter in self._trained.parameters())
        self._processes.sum_in_place([grad for grad in grads if grad is not None])
        columns = [self._processes.gather_rows(part) for part in (table.rows, table.weight, table.bias)]
        return coalesce([RowGradient(*part) for part in zip(*columns, strict=True)])

    def evaluate(self) -> Evaluation | None:
        """Measure the perplexity of the first held-out tokens, if that takes a small share of the time."""
        resting = time.monotonic() - self._evaluated_at
        too_soon = resting <= self._evaluation_seconds / _EVALUATION_SHARE
        if not self._processes.leads or not self.corpus.heldout or too_soon:
            return None
        began = time.monotonic()
        found = self.language_model().perplexity(heldout_sentences(self.corpus, EVALUATED_TOKENS))
        self._evaluated_at, self._evaluation_seconds = time.monotonic(), time.monotonic() - began
        text = (
            f"perplexity of the {heldout_name(self.corpus)} {found.forward:.1f} forward, "
            f"{found.backward:.1f} backward, {found.bits_per_character:.3f} bits per character"
        )
        return Evaluation({"heldout": found.to_dict()}, text)

    def language_model(self) -> LanguageModel:
        """Return the model as it is now, for evaluation."""
        return LanguageModel(self.model, self.table.export(), self.corpus.vocabulary, self.corpus.tokenizer)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a checkpoint needs; all processes take part."""
        join = partial(self._processes.join_rows, dim=1)
        return {
            "model": self.model.state_dict(),
            "table": self.table.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "state": [(join(layer.hidden), join(layer.cell)) for layer in self._state],
            **({"maps": self._teacher.maps.state_dict()} if self._teacher else {}),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned; each process takes its own rows."""
        self.model.load_state_dict(state["model"])
        self.table.load_state_dict(state["table"])
        if self._teacher is not None:
            self._teacher.maps.load_state_dict(state["maps"])
        self._optimizer.load_state_dict(state["optimizer"])
        device = self.table.weight.device
        self._state = [
            LayerState(hidden[:, self._rows].to(device), cell[:, self._rows].to(device))
            for hidden, cell in state["state"]
        ]


def _encoder_inputs(to_inputs: Inputs, spell: Callable[[Ids], list[str]], types: Ids) -> tuple[Tensor, ...]:
    return to_inputs(spell(types))


def heldout_name(corpus: PreparedCorpus) -> str:
    """Say what part of the held-out text is measured while the model is trained."""
    whole = corpus.report["heldout"]["tokens"] <= EVALUATED_TOKENS
    return "held-out text" if whole else f"held-out text, first {EVALUATED_TOKENS:,} tokens"


def heldout_sentences(corpus: PreparedCorpus, most_tokens: int | None = None) -> Iterator[list[str]]:
    """Yield the held-out sentences of a corpus as words, until there are `most_tokens`."""
    tokens = 0
    for shard in corpus.heldout:
        for start, end in zip(shard.starts[:-1], shard.starts[1:], strict=True):
            if most_tokens is not None and tokens >= most_tokens:
                return
            words = corpus.spellings(shard.tokens[start + 1 : end - 1])
            tokens += len(words)
            yield words
