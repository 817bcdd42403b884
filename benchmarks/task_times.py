"""How fast a task model learns and predicts, and what memory it takes: seconds that depend on no score.

    ELMOKIT_DATA=… python benchmarks/task_times.py [--only nli-snli …] [--encoder chars+en]

Each row of the benchmark of tasks in a process of its own, with untrained weights: some steps of training
with cached vectors, from which the time of an epoch follows, and predictions for a part of dev, from tokens
to labels, without a cache, with ELMo in float32 and in the fastest precision of the machine. A model of roles
that is not trained finds predicates everywhere, so its predictions are left out. The table goes to
benchmarks/results/task-times.md.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import RESULTS, data_file, machine, markdown_table
from elmokit.base import progress_display
from elmokit.encoders import Encoder, open_encoder
from elmokit.kernels import peak_memory
from elmokit.tasks import find_task, task_settings
from elmokit.tasks.core.task_job import TaskJob
from elmokit.tasks.core.task_model import num_tokens
from elmokit.tasks.core.training import cache_encoders, open_training
from task_rows import ROWS

TIMED = ("nli-snli", "nli-zh", "qa-squad1", "qa-cmrc2018", "srl-ewt", "coref-gum")
_STEPS = 12
_DEV_TOKENS = 30_000


class TimedTask:
    """A task with a share of the training data.

    Args:
        task: its name.
        source: the data.
        encoder: see `open_encoders`.
        folder: for cached vectors.
        share: of the training data.
        dev_tokens: about how much of dev.
        changes: of the settings.
        more: of `train`.
    """

    def __init__(
        self,
        task: str,
        source: Path,
        encoder: str,
        folder: Path,
        *,
        share: float = 0.05,
        dev_tokens: int | None = None,
        changes: Sequence[str] = (),
        **more: Any,  # noqa: ANN401 (of `train`)
    ) -> None:
        self._type = find_task(task)
        settings = task_settings(task, [*changes, "training.least_steps=1"])
        opened = open_training(
            self._type, source, encoder=encoder, settings=settings, allow_unseen=True, **more
        )
        data, self.steps = opened.data, -(-len(opened.data.train) // settings.training.batch)
        dev = data.dev if dev_tokens is None else _first(data.dev, dev_tokens)
        self.opened = replace(opened, data=replace(data.share(share), dev=dev))
        with progress_display(shown=False) as display:
            self.cached = cache_encoders(self.opened, folder, display)

    def epoch(self, *changes: str, cached: bool = True) -> float:
        """Milliseconds for 1,000 tokens in an epoch of the share, after two steps to warm up."""
        job = self._job(changes, cached=cached)
        tokens = 0
        for step in range(2):
            self._step(job, step)
        began = time.perf_counter()
        tokens = sum(self._step(job, step) for step in range(job.steps_per_epoch))
        return 1e6 * (time.perf_counter() - began) / tokens

    def step_seconds(self, count: int) -> float:
        """The mean time of some steps, after two to warm up."""
        job = self._job((), cached=True)
        for step in range(2):
            self._step(job, step)
        began = time.perf_counter()
        for step in range(2, 2 + count):
            self._step(job, step)
        return (time.perf_counter() - began) / count

    def use(self, precision: str = "float32") -> float:
        """Milliseconds for 1,000 tokens of dev, from tokens to labels."""
        encoders = [open_encoder(one.spec, precision=precision) for one in self.opened.encoders]
        model, dev = self._model(self.opened.task, encoders), self.opened.data.dev
        model.decode(dev[:4])
        began = time.perf_counter()
        model.decode(dev)
        return 1e6 * (time.perf_counter() - began) / sum(map(num_tokens, dev))

    def _job(self, changes: Sequence[str], *, cached: bool) -> TaskJob[Any]:
        task = replace(self.opened.task, settings=self.opened.task.settings.changed(changes))
        encoders = self.cached if cached else self.opened.encoders
        return TaskJob(self._model(task, encoders), self.opened.data)

    def _step(self, job: TaskJob[Any], step: int) -> int:
        tokens = job.compute(step).tokens
        job.update(1.0)
        return tokens

    def _model(self, task: Any, encoders: Sequence[Encoder]) -> Any:  # noqa: ANN401 (of any task)
        return self._type(task, encoders, tokenizer=self.opened.tokenizer)


def _first(examples: Sequence[Any], tokens: int) -> list[Any]:
    """Some examples, up to so many tokens."""
    found, count = [], 0
    for example in examples:
        found.append(example)
        count += num_tokens(example)
        if count >= tokens:
            break
    return found


def measure(arguments: tuple[str, str | None, Path]) -> list[object]:
    """The cells of a row; runs in a process of its own."""
    name, encoder, folder = arguments
    row = ROWS[name]
    glove = data_file("vectors/glove-100d-tasks.txt.xz", "GloVe vectors of the tasks' words")
    beside = f"glove:{glove}+chars" if row.vectors else "words"
    tasks = glove.parent.parent / "tasks"
    timed = TimedTask(
        row.task,
        tasks / row.data,
        encoder or f"{beside}+{'zh' if row.chinese else 'en'}",
        folder,
        dev_tokens=_DEV_TOKENS,
        changes=row.changes,
        dev=None if row.dev is None else tasks / row.dev,
        format=row.format,
        tokenizer=row.tokenizer,
        text_column=row.text_column,
        label_column=row.label_column,
    )
    speeds = [] if row.task == "roles" else [1e6 / timed.use(one) for one in ("float32", "auto")]
    uses = [f"{speed:,.0f}" for speed in speeds] or ["–", "–"]
    step = timed.step_seconds(_STEPS)
    memory = peak_memory() / 1024**3
    return [name, *uses, f"{1000 * step:.0f}", f"{timed.steps * step / 60:.1f}", f"{memory:.1f}"]


def main() -> None:
    """Measure the rows that were asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=TIMED)
    parser.add_argument("--encoder", help="another than that of the benchmark of tasks")
    arguments = parser.parse_args()
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                (found,) = pool.map(measure, [(name, arguments.encoder, Path(folder))])
            print(*found, sep="\t", flush=True)
            cells.append(found)
    header = ["data", "predicts, tokens/s", "with precision auto", "a step of training, ms"]
    header += ["an epoch, minutes", "peak memory, GB"]
    facts = ", ".join(f"{name} {value}" for name, value in machine().items() if name != "instructions")
    text = f"{markdown_table(header, cells)}\n\n{facts}\n"
    (RESULTS / "task-times.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
