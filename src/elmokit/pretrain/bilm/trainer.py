"""The training loop.

Everything random follows from the recipe's seed and the number of the step, and a checkpoint holds all the
rest: a run that was killed goes on to the same losses as one that was not.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from elmokit.corpus import PreparedCorpus
from elmokit.embed import encoder_inputs
from elmokit.errors import ConfigError, TrainingError
from elmokit.kernels import PairOfThreads, Precision, whole_pieces
from elmokit.language_model import LanguageModel, Perplexity
from elmokit.model import BiLM, LayerState
from elmokit.pretrain.bilm.bilm_optimizer import Optimizer, learning_rate
from elmokit.pretrain.bilm.lowercase import LowerCase
from elmokit.pretrain.bilm.network import TrainingNetwork
from elmokit.pretrain.bilm.recipe import Recipe
from elmokit.pretrain.bilm.softmax_training import RowGradient, SoftmaxTable, coalesce
from elmokit.pretrain.bilm.windows import Windows
from elmokit.training import Checkpoints, Metrics, Processes

_LOG_EVERY = 10  # steps
_EVALUATIONS = 20  # in a run
_EVALUATION_SHARE = 0.05  # of the time, at most
_EVALUATED_TOKENS = 10_000  # of the held-out text
_CHECKPOINT_SECONDS = 600
_USUAL_OVER = 50  # steps over which the usual loss is averaged
_EXPLODED = 2.0  # above the usual loss, that is more than seven times the perplexity
_MOST_ROLLBACKS = 6


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long to train: exactly one of the three."""

    minutes: float | None = None
    tokens: int | None = None
    epochs: float | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.minutes, self.tokens, self.epochs) if value is not None]
        if len(given) != 1 or given[0] <= 0:
            raise ConfigError(f"give one positive budget: minutes, tokens or epochs; found {self}")

    def part(self, share: float) -> "Budget":
        """That share of it."""
        return Budget(
            minutes=None if self.minutes is None else share * self.minutes,
            tokens=None if self.tokens is None else max(1, round(share * self.tokens)),
            epochs=None if self.epochs is None else share * self.epochs,
        )

    def progress(self, seconds: float, tokens: int, tokens_per_epoch: int) -> float:
        """The share that is used up."""
        if self.minutes is not None:
            return seconds / (60 * self.minutes)
        return tokens / (self.tokens or tokens_per_epoch * (self.epochs or 1))


@dataclass
class Position:
    """Where a run stands, besides its weights."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    usual_loss: float = math.inf
    rate_factor: float = 1.0
    rollbacks: int = 0
    evaluations: int = 0
    sums: list[float] = field(
        default_factory=lambda: [0.0, 0.0, 0.0]
    )  # losses and norm since the last record


@dataclass(frozen=True)
class Status:
    """What a run tells after a step."""

    position: Position
    progress: float
    softmax: str
    loss: float  # mean of both directions
    tokens_per_second: float

    def __str__(self) -> str:
        kind = "" if self.softmax != "sampled" else "sampled "
        left = self.position.seconds * (1 / self.progress - 1) / 60 if self.progress else math.nan
        return (
            f"{self.position.tokens:,} tokens, {self.tokens_per_second:,.0f}/s, loss {self.loss:.3f}, "
            f"{kind}perplexity {math.exp(min(self.loss, 50)):.1f}, {left:.0f} minutes left"
        )


class Trainer:
    """A run of training in a folder, which holds its checkpoints and `metrics.jsonl`.

    Args:
        model: trained in place.
        table: the softmax, trained in place.
        corpus: the text.
        recipe: how.
        budget: how long.
        folder: of the run, which goes on from the newest checkpoint there.
        processes: that train together.
        precision: of the products.
        frozen: whether the softmax alone is trained.
        say: told, in words, of what a user should know.
    """

    def __init__(
        self,
        model: BiLM,
        table: SoftmaxTable,
        corpus: PreparedCorpus,
        recipe: Recipe,
        budget: Budget,
        folder: Path,
        *,
        processes: Processes | None = None,
        precision: Precision = "float32",
        frozen: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.model, self.table, self.corpus, self.recipe, self.budget = model, table, corpus, recipe, budget
        self.position = Position()
        self._processes = processes or Processes()
        self._rows = self._processes.rows(recipe.batch)
        self._say, self._folder = say, folder
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
        to_inputs = encoder_inputs(model.config, corpus.vocabulary, None)
        threads = PairOfThreads(table.weight.device)
        self._network = TrainingNetwork(
            model,
            table,
            recipe,
            lambda types: to_inputs(spell(types)),
            precision=precision,
            threads=threads,
            rows=self._rows,
            frozen=frozen,
        )
        self._optimizer = Optimizer(model, table, recipe, threads)
        self._checkpoints = Checkpoints.of(folder)
        self._state = model.start(recipe.batch // self._processes.count)
        self._evaluated = (-math.inf, 0.0)  # when, and how long it took

    @property
    def progress(self) -> float:
        """The share of the budget that is used up."""
        per_epoch = self._windows.per_pass * self.recipe.batch * self.recipe.unroll
        return self.budget.progress(self.position.seconds, self.position.tokens, per_epoch)

    def run(self, report: Callable[[Status], None], stopped: Callable[[], bool] = lambda: False) -> bool:
        """Train until the budget is used up (True) or `stopped` says so (False); then write a checkpoint."""
        self.restore()
        if self.position.step == 0:
            self._save()
        with ExitStack() as stack:
            metrics = None
            if self._processes.leads:
                metrics = stack.enter_context(closing(Metrics(self._folder, self.position.step)))
            # Between the pair's work there are short operations only, for which torch's threads would spin.
            stack.enter_context(whole_pieces())
            self._loop(metrics, report, stopped)
        self._save()
        return self.progress >= 1

    def _loop(
        self, metrics: Metrics | None, report: Callable[[Status], None], stopped: Callable[[], bool]
    ) -> None:
        began, before, tokens_before = time.monotonic(), self.position.seconds, self.position.tokens
        saved = began
        while self.progress < 1 and not self._processes.from_leader(float(stopped())):
            loss = self._train_step()
            if loss is None:
                self._roll_back()
                if metrics is not None:
                    metrics.rewind(self.position.step)
                continue
            elapsed = time.monotonic() - began
            if self.position.step % _LOG_EVERY == 0:
                self.position.seconds = self._processes.from_leader(before + elapsed)
                self._record(metrics)
                if self._processes.from_leader(time.monotonic() - saved) > _CHECKPOINT_SECONDS:
                    self._save()
                    saved = time.monotonic()
            speed = (self.position.tokens - tokens_before) / elapsed
            report(Status(self.position, self.progress, self.recipe.softmax, loss, speed))
        self.position.seconds = self._processes.from_leader(before + time.monotonic() - began)

    def _train_step(self) -> float | None:
        """One step; its loss, or None when it went wrong, and then nothing was changed."""
        position, recipe = self.position, self.recipe
        result = self._network.step(self._windows(position.step, self._rows), self._state, position.step)
        forward, backward = self._processes.mean([result.forward, result.backward])
        loss = (forward + backward) / 2
        if not loss < position.usual_loss + _EXPLODED:  # not a number goes here too
            return None
        gradient = self._sum_gradients(result.table)
        rate = position.rate_factor * learning_rate(recipe, position.step, self.progress)
        norm = self._optimizer.step(gradient, rate)
        if not math.isfinite(norm):
            return None
        usual = loss if math.isinf(position.usual_loss) else position.usual_loss
        position.usual_loss = usual + (loss - usual) / _USUAL_OVER
        position.step += 1
        position.tokens += recipe.batch * recipe.unroll
        position.sums = [a + b for a, b in zip(position.sums, (forward, backward, norm), strict=True)]
        self._state = result.state
        return loss

    def _sum_gradients(self, table: RowGradient) -> RowGradient:
        """Sum the gradients over all processes: of the parameters in place, of the table by rows."""
        if self._processes.count == 1:
            return table
        grads = (parameter.grad for parameter in self.model.parameters())
        self._processes.sum_in_place([grad for grad in grads if grad is not None])
        columns = [self._processes.gather_rows(part) for part in (table.rows, table.weight, table.bias)]
        return coalesce([RowGradient(*part) for part in zip(*columns, strict=True)])

    def _record(self, metrics: Metrics | None) -> None:
        """Write down what was measured over the last steps; now and then evaluate."""
        position = self.position
        forward, backward, norm = (total / _LOG_EVERY for total in position.sums)
        position.sums = [0.0, 0.0, 0.0]
        due = int(self.progress * _EVALUATIONS)
        evaluate = due > position.evaluations
        position.evaluations = due
        if metrics is None:
            return
        record: dict[str, Any] = {
            "step": position.step,
            "tokens": position.tokens,
            "seconds": round(position.seconds, 1),
            "learning_rate": position.rate_factor * learning_rate(self.recipe, position.step, self.progress),
            "gradient_norm": norm,
            f"{self.recipe.softmax}_loss": {"forward": forward, "backward": backward},
        }
        if evaluate and self.corpus.heldout and self._evaluation_pays():
            began = time.monotonic()
            found = self.evaluate(_EVALUATED_TOKENS)
            self._evaluated = (time.monotonic(), time.monotonic() - began)
            record["heldout"] = found.to_dict()
            self._say(
                f"step {position.step}: held-out perplexity {found.forward:.1f} forward, "
                f"{found.backward:.1f} backward, {found.bits_per_character:.3f} bits per character"
            )
        metrics.write(record)

    def _evaluation_pays(self) -> bool:
        """Whether training has gone on for long since the last evaluation, compared with what that took."""
        when, seconds = self._evaluated
        return time.monotonic() - when > seconds / _EVALUATION_SHARE

    def evaluate(self, most_tokens: int | None = None) -> Perplexity:
        """Full-softmax perplexity of the held-out text, or of its first tokens."""
        model = LanguageModel(self.model, self.table.export(), self.corpus.vocabulary, self.corpus.tokenizer)
        return model.perplexity(heldout_sentences(self.corpus, most_tokens))

    def _roll_back(self) -> None:
        """After a step that went wrong: back to the last checkpoint, with half the learning rate."""
        step, factor, rollbacks = (
            self.position.step,
            self.position.rate_factor / 2,
            self.position.rollbacks + 1,
        )
        if rollbacks > _MOST_ROLLBACKS:
            raise TrainingError(
                f"the loss exploded again at step {step}, after {_MOST_ROLLBACKS} returns to a checkpoint, "
                "each with half the learning rate; use a smaller learning_rate or a longer warmup"
            )
        self.restore()
        self.position.rate_factor, self.position.rollbacks = factor, rollbacks
        self._say(
            f"the loss exploded at step {step}: back to the checkpoint of step {self.position.step}, "
            f"learning rate × {factor:g}"
        )

    def _save(self) -> None:
        """Write a checkpoint; every process takes part, one writes."""
        join = partial(self._processes.join_rows, dim=1)
        state = [LayerState(join(layer.hidden), join(layer.cell)) for layer in self._state]
        if self._processes.leads:
            self._checkpoints.save(
                self.position.step,
                {
                    "position": asdict(self.position),
                    "recipe": self.recipe.to_dict(),
                    "corpus": self.corpus.fingerprint,
                    "model": self.model.state_dict(),
                    "table": self.table.state_dict(),
                    "optimizer": self._optimizer.state_dict(),
                    "state": [(layer.hidden, layer.cell) for layer in state],
                },
            )
        self._processes.wait()

    def restore(self) -> None:
        """Go on from the newest checkpoint, if there is one."""
        kept = self._checkpoints.load()
        if kept is None:
            return
        differences = self.recipe.differences(Recipe.from_dict(kept["recipe"]))
        if kept["corpus"] != self.corpus.fingerprint:
            differences.append("the corpus is another")
        if differences:
            raise ConfigError(
                f"{self._folder} was begun otherwise: {'; '.join(differences)}. Go on with the settings it "
                "was begun with, or begin anew in another folder"
            )
        self.position = Position(**kept["position"])
        self.model.load_state_dict(kept["model"])
        self.table.load_state_dict(kept["table"])
        self._optimizer.load_state_dict(kept["optimizer"])
        device = self.table.weight.device
        self._state = [
            LayerState(hidden[:, self._rows].to(device), cell[:, self._rows].to(device))
            for hidden, cell in kept["state"]
        ]


def heldout_sentences(corpus: PreparedCorpus, most_tokens: int | None = None) -> Iterator[list[str]]:
    """The held-out sentences of a corpus as words, until there are that many."""
    tokens = 0
    for shard in corpus.heldout:
        for start, end in zip(shard.starts[:-1], shard.starts[1:], strict=True):
            if most_tokens is not None and tokens >= most_tokens:
                return
            words = corpus.spellings(shard.tokens[start + 1 : end - 1])
            tokens += len(words)
            yield words
