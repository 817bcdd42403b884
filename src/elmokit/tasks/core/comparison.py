"""The same task with one encoder after another: what each brings, and what it costs."""

import hashlib
import logging
import logging.handlers
import math
import multiprocessing
import os
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from elmokit.base import (
    belong_to_parent,
    locked,
    no_empty_folder,
    parse_json,
    remove_folder,
    temporary_folder,
    write_errors,
    write_json,
    write_text,
)
from elmokit.encoders import TunableEncoder, open_encoders
from elmokit.errors import DataError, ElmoError, MissingExtra
from elmokit.kernels import peak_memory
from elmokit.tasks.core.pictures import draw_comparison
from elmokit.tasks.core.task_model import TaskModel, num_tokens
from elmokit.tasks.core.task_settings import TaskSettings
from elmokit.tasks.core.training import open_training, train
from elmokit.training import Checkpoints

logger = logging.getLogger(__name__)

_MEASURED = "measured.json"


@dataclass(frozen=True)
class MeasuredRun:
    """One training, measured in its own process.

    Attributes:
        score: the main score on dev.
        values: all scores on dev.
        trained: number of parameters that were trained.
        encoder: number of parameters of the pretrained networks; static vectors do not count.
        training: milliseconds per 1,000 tokens in an epoch, with cached vectors if the encoder is frozen.
        use: milliseconds per 1,000 tokens of dev, from tokens to labels.
        memory: peak memory in megabytes.
        seconds: of training until it stopped, without the vectors of frozen encoders.
        mixes: the learnt mixes of the encoders' layers: encoder, place, shares and gamma of each.
        cpu: CPU seconds of the training over all cores, with the vectors of frozen encoders; of a run that
            was interrupted, since it was resumed. Not a number if an earlier version measured, like `size`.
        size: megabytes of the model with its encoders.
        examples: counts of each dev example, (n, parts, 3) as in `Scores`; None if the task has none.
    """

    score: float
    values: dict[str, float]
    trained: int
    encoder: int
    training: float
    use: float
    memory: float
    seconds: float = 0.0
    mixes: list[dict[str, Any]] = field(default_factory=list)
    cpu: float = math.nan
    size: float = math.nan
    examples: list[list[list[int]]] | None = None


@dataclass(frozen=True)
class Compared:
    """All runs with one encoder."""

    encoder: str
    metric: str
    runs: list[MeasuredRun]

    @property
    def name(self) -> str:
        """The encoder without the folders of its files."""
        parts = (part.rpartition(":") for part in self.encoder.split("+"))
        return "+".join(f"{kind}{colon}{Path(path).name}" for kind, colon, path in parts)

    @property
    def score(self) -> float:
        """The mean of the runs."""
        return self.mean("score")

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the runs; None if there is one run only."""
        return statistics.stdev(run.score for run in self.runs) if len(self.runs) > 1 else None

    @property
    def score_text(self) -> str:
        """The mean in percent, with the deviation if there are several runs."""
        more = "" if self.deviation is None else f" ± {100 * self.deviation:.2f}"
        return f"{100 * self.score:.2f}{more}"

    def mean(self, quantity: str) -> float:
        """Return the mean over the runs of one of their numbers."""
        return statistics.fmean(getattr(run, quantity) for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        data = asdict(self) | {"score": self.score, "deviation": self.deviation}
        for run in data["runs"]:
            del run["examples"]  # many numbers, which the folders of the runs have
        return data


def compare(
    task: type[TaskModel[Any, Any, Any]],
    source: str | Path,
    encoders: Sequence[str],
    *,
    out: str | Path,
    seeds: int = 3,
    settings: TaskSettings | None = None,
    dev: str | Path | None = None,
    format: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    tokenizer: str | None = None,
    epochs: int | None = None,
    start: str | Path | None = None,
    adapt: bool | float = False,
    adapt_text: Sequence[str | Path] = (),
    allow_unseen: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    notice: Callable[[str, MeasuredRun], None] = lambda name, run: None,
) -> list[Compared]:
    """Train the same head on each encoder with each seed, one run after another.

    The results are also written to `out`, as a table (comparison.md) and a picture (comparison.png).

    Args:
        task: as for `train`, like `source`, `dev`, `format`, the columns, `epochs` and `allow_unseen`.
        source: the data.
        encoders: to compare.
        out: a folder for all runs.
        seeds: how many runs with each encoder; their seeds are 1, 2, and so on.
        settings: of all runs, except the seed.
        dev: the dev file.
        format: of the files.
        text_column: of a table, like `label_column`.
        label_column: the same for the label.
        tokenizer: for running text, the same for all encoders.
        epochs: of each run, at most.
        start: a trained model to start from, with the encoder of the runs.
        adapt: let each ELMo read the training text first, once for all seeds; see `train`.
        adapt_text: further text for it to read.
        allow_unseen: count new labels as errors.
        resume: continue an interrupted comparison: finished runs are not repeated, and the one that was
            interrupted goes on from its last checkpoint.
        overwrite: train again what is in `out` already.
        notice: called with each run when it is done.

    Raises:
        DataError: `out` is not empty, or holds runs with other data, settings or encoders; or the data cannot
            be used.
        BusyError: another process is writing `out`.
    """
    folder = Path(out)
    settings = settings or task.task_type.settings_type()
    arguments = {
        "task": task, "source": source, "dev": dev, "format": format, "text_column": text_column,
        "label_column": label_column, "tokenizer": tokenizer, "epochs": epochs, "allow_unseen": allow_unseen,
        "start": start, "adapt": adapt, "adapt_text": adapt_text,
    }  # fmt: skip
    with (
        no_empty_folder(folder),
        locked(folder, parents=True),
        write_errors(folder, "continue with resume=True"),
    ):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())) and not (resume or overwrite):
            raise DataError(
                f"{folder} is not empty; choose another name, or pass resume=True or overwrite=True"
            )
        for run in folder.glob("*-seed*") if overwrite else ():
            (run / _MEASURED).unlink(missing_ok=True)
            remove_folder(run / "checkpoints")
        for encoder in encoders:
            open_encoders(encoder)  # report a wrong name before hours of training, not after
        results = _all_runs(encoders, folder, seeds, settings, arguments, notice)
        remove_folder(folder / "cache")
        write_text(folder / "comparison.md", comparison_text(results) + "\n")
        try:
            draw_comparison(results, folder / "comparison.png")
        except MissingExtra as missing:
            logger.warning("no picture: %s", missing)
    return results


def _all_runs(
    encoders: Sequence[str],
    folder: Path,
    seeds: int,
    settings: TaskSettings,
    arguments: dict[str, Any],
    notice: Callable[[str, MeasuredRun], None],
) -> list[Compared]:
    """Train what is not measured yet, and return all."""
    results = []
    for encoder in encoders:
        # Encoders of the same name differ by a few more letters.
        name = re.sub(r"[^\w.+-]+", "_", Compared(encoder, "", []).name)
        name += f"-{hashlib.sha256(encoder.encode()).hexdigest()[:6]}"
        runs, metric = [], ""
        for seed in range(1, seeds + 1):
            one = arguments | {"encoder": encoder, "settings": settings.with_seed(seed)}
            run = folder / f"{name}-seed{seed}"
            measured = _finished(run, one) or _in_own_process(run, one)
            metric = measured["metric"]
            runs.append(MeasuredRun(**measured["run"]))
            notice(f"{encoder}, seed {seed}", runs[-1])
        results.append(Compared(encoder, metric, runs))
    return results


def comparison_text(results: Sequence[Compared]) -> str:
    """Return the results as a Markdown table; scores in percent."""
    lines = [
        f"| encoder | dev {results[0].metric}, % | parameters trained | of the encoder | "
        "training, ms per 1,000 tokens | use, ms per 1,000 tokens | peak memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in results:
        lines.append(
            f"| {one.name} | {one.score_text} | "
            f"{one.mean('trained'):,.0f} | {one.mean('encoder'):,.0f} | {one.mean('training'):.0f} | "
            f"{one.mean('use'):.0f} | {one.mean('memory'):,.0f} |"
        )
    return "\n".join(lines)


def _in_own_process(out: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run in a fresh process, so that its peak memory is its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_child, args=(sender, out, arguments), daemon=True)
    process.start()
    sender.close()  # so that the end of the process ends `recv`
    try:
        while isinstance(found := receiver.recv(), logging.LogRecord):
            logging.getLogger(found.name).handle(found)
    except EOFError:
        process.join()
        raise ElmoError(
            f"the training of {out} was killed (exit code {process.exitcode}), perhaps because "
            "memory ran out; continue with resume=True when there is more"
        ) from None
    except BaseException:  # Ctrl-C
        process.terminate()
        raise
    finally:
        process.join()
    if isinstance(found, str):
        raise ElmoError(found)
    measured: dict[str, Any] = found
    return measured


class _ToParent(logging.handlers.QueueHandler):
    """Sends what is logged through a connection, so that the parent logs it as its own."""

    queue: Any

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record that can be pickled."""
        self.queue.send(record)


def _run_child(sender: Connection, out: Path, arguments: dict[str, Any]) -> None:
    belong_to_parent()
    logging.getLogger("elmokit").addHandler(_ToParent(sender))  # type: ignore[arg-type]  # it only sends
    try:
        sender.send(_measure(out, arguments))
    except ElmoError as error:
        sender.send(str(error))
    except Exception as error:
        sender.send(f"the training of {out} failed: {type(error).__name__}: {error}")
        raise  # for its traceback


def _measure(out: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """Train and use a model, and return what it took; runs in the child."""
    begun = Checkpoints(out).exist
    cpu = _cpu_seconds()
    found = train(**arguments, out=out, resume=begun, overwrite=not begun, cache=out.parent / "cache")
    cpu = _cpu_seconds() - cpu
    model = arguments["task"].load(out)
    opened = open_training(**arguments)
    examples = opened.data.dev
    began = time.perf_counter()
    model.decode(examples)
    use = time.perf_counter() - began
    networks = [e.module for e in model.encoders if e.pretrained and isinstance(e, TunableEncoder)]
    run = MeasuredRun(
        score=found.scores.value,
        values=found.scores.values,
        trained=sum(weight.numel() for weight in found.model.parameters() if weight.requires_grad),
        encoder=sum(weight.numel() for network in networks for weight in network.parameters()),
        training=1e6 * statistics.fmean(entry["epoch_seconds"] for entry in found.history) / found.tokens,
        use=1e6 * use / max(1, sum(map(num_tokens, examples))),
        memory=peak_memory() / 1024**2,
        seconds=found.history[-1]["seconds"],
        mixes=[vars(mix) for mix in found.model.inputs.learnt_mixes()],
        cpu=cpu,
        size=_size(model),
        examples=None if found.scores.examples is None else found.scores.examples.tolist(),
    )
    measured = {"metric": found.scores.main, "run": asdict(run), "purpose": opened.purpose()}
    write_json(out / _MEASURED, measured)
    return measured


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _size(model: TaskModel[Any, Any, Any]) -> float:
    """Return the megabytes of a model with all its encoders."""
    with temporary_folder() as folder:
        model.save(folder / "model", self_contained=True)
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1024**2


def _finished(out: Path, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return what was measured before, if anything was."""
    path = out / _MEASURED
    if not path.exists():
        return None
    try:
        measured: dict[str, Any] = parse_json(path.read_bytes())
        MeasuredRun(**measured["run"])
    except (ValueError, LookupError, TypeError) as error:
        raise DataError(f"{path} is damaged ({error}); delete {out} to train it again") from error
    if measured.get("purpose") != open_training(**arguments).purpose():
        raise DataError(
            f"{out} holds a run of other data or settings, or of an encoder that has changed since; "
            "choose another folder, or delete that one"
        )
    return measured
