"""The same task with one encoder after another: what each brings, and what it costs."""

import hashlib
import json
import logging
import multiprocessing
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from elmokit.base import belong_to_parent, write_json, write_text
from elmokit.encoders import TunableEncoder, open_encoders
from elmokit.errors import DataError, ElmoError, MissingExtra
from elmokit.tasks.core.pictures import new_figure
from elmokit.tasks.core.task_model import TaskModel, num_tokens
from elmokit.tasks.core.task_settings import TaskSettings
from elmokit.tasks.core.training import open_training, train

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
    """

    score: float
    values: dict[str, float]
    trained: int
    encoder: int
    training: float
    use: float
    memory: float


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
    def deviation(self) -> float:
        """The standard deviation of the runs."""
        return statistics.stdev(run.score for run in self.runs) if len(self.runs) > 1 else 0.0

    def mean(self, quantity: str) -> float:
        """Return the mean over the runs of one of their numbers."""
        return statistics.fmean(getattr(run, quantity) for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self) | {"score": self.score, "deviation": self.deviation}


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
    tokenizer: str | None = None,
    allow_unseen: bool = False,
    resume: bool = False,
    notice: Callable[[str, MeasuredRun], None] = lambda name, run: None,
) -> list[Compared]:
    """Train the same head on each encoder with each seed, one run after another.

    The results are also written to `out`, as a table (comparison.md) and a picture (comparison.png).

    Args:
        task: as for `train`, like `source`, `dev`, `format`, `tokenizer` and `allow_unseen`.
        source: the data.
        encoders: to compare.
        out: a folder for all runs.
        seeds: how many runs with each encoder; their seeds are 1, 2, and so on.
        settings: of all runs, except the seed.
        dev: the dev file.
        format: of the files.
        tokenizer: for running text, the same for all encoders.
        allow_unseen: count new labels as errors.
        resume: continue an interrupted comparison; finished runs are not repeated.
        notice: called with each run when it is done.

    Raises:
        DataError: `out` is not empty, or holds runs with other data, settings or encoders; or the data cannot
            be used.
    """
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()) and not resume:
        raise DataError(f"{folder} is not empty; choose another name, or pass resume=True")
    settings = settings or task.task_type.settings_type()
    for encoder in encoders:
        open_encoders(encoder)  # report a wrong name before hours of training, not after
    results = []
    for encoder in encoders:
        # Encoders of the same name differ by a few more letters.
        name = re.sub(r"[^\w.+-]+", "_", Compared(encoder, "", []).name)
        name += f"-{hashlib.sha256(encoder.encode()).hexdigest()[:6]}"
        runs, metric = [], ""
        for seed in range(1, seeds + 1):
            arguments = {
                "task": task, "source": source, "encoder": encoder, "settings": settings.with_seed(seed),
                "dev": dev, "format": format, "tokenizer": tokenizer, "allow_unseen": allow_unseen,
            }  # fmt: skip
            run = folder / f"{name}-seed{seed}"
            measured = _finished(run, arguments) or _in_own_process(run, arguments)
            metric = measured["metric"]
            runs.append(MeasuredRun(**measured["run"]))
            notice(f"{encoder}, seed {seed}", runs[-1])
        results.append(Compared(encoder, metric, runs))
    shutil.rmtree(folder / "cache", ignore_errors=True)
    write_text(folder / "comparison.md", comparison_text(results) + "\n")
    try:
        draw_comparison(results, folder / "comparison.png")
    except MissingExtra as missing:
        logger.warning("no picture: %s", missing)
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
            f"| {one.name} | {100 * one.score:.2f} ± {100 * one.deviation:.2f} | "
            f"{one.mean('trained'):,.0f} | {one.mean('encoder'):,.0f} | {one.mean('training'):.0f} | "
            f"{one.mean('use'):.0f} | {one.mean('memory'):,.0f} |"
        )
    return "\n".join(lines)


def draw_comparison(results: Sequence[Compared], path: Path) -> None:
    """Draw the scores as bars with their deviations."""
    figure = new_figure(7, 1.5 + 0.5 * len(results))
    axes = figure.subplots()
    scores, deviations = [100 * one.score for one in results], [100 * one.deviation for one in results]
    axes.barh([one.name for one in results], scores, xerr=deviations, ecolor="black", capsize=3)
    axes.invert_yaxis()
    axes.set(xlabel=f"dev {results[0].metric}, %", xlim=(max(0, min(scores) - 15), 100))
    figure.savefig(path, dpi=120)


def _in_own_process(out: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run in a fresh process, so that its peak memory is its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_child, args=(sender, out, arguments), daemon=True)
    process.start()
    sender.close()  # so that the end of the process ends `recv`
    try:
        found: dict[str, Any] | str = receiver.recv()
    except EOFError:
        process.join()
        raise ElmoError(
            f"the training of {out} was killed (exit code {process.exitcode}), perhaps for want of "
            "memory; continue with resume=True when there is more"
        ) from None
    except BaseException:  # Ctrl-C
        process.terminate()
        raise
    finally:
        process.join()
    if isinstance(found, str):
        raise ElmoError(found)
    return found


def _run_child(sender: Connection, out: Path, arguments: dict[str, Any]) -> None:
    belong_to_parent()
    try:
        sender.send(_measure(out, arguments))
    except ElmoError as error:
        sender.send(str(error))
    except Exception as error:
        sender.send(f"the training of {out} failed: {type(error).__name__}: {error}")
        raise  # for its traceback


def _measure(out: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """Train and use a model, and return what it took; runs in the child."""
    found = train(**arguments, out=out, overwrite=True, cache=out.parent / "cache")
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
    )
    measured = {"metric": found.scores.main, "run": asdict(run), "purpose": opened.purpose()}
    write_json(out / _MEASURED, measured)
    return measured


def _finished(out: Path, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return what was measured before, if anything was."""
    path = out / _MEASURED
    if not path.exists():
        return None
    measured: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if measured.get("purpose") != open_training(**arguments).purpose():
        raise DataError(
            f"{out} holds a run of other data or settings, or of an encoder that has changed since; "
            "choose another folder, or delete that one"
        )
    return measured


def peak_memory() -> float:
    """Return the peak memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent had when this process was made
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        return 1024 * float(lines["VmHWM"].split()[0])
    import resource  # which Windows does not have

    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
