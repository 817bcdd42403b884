"""The same head on one encoder after another: what each brings, and what it costs."""

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

from elmokit.base import belong_to_parent, write_text
from elmokit.encoders import Encoder, TunableEncoder, open_encoders
from elmokit.errors import DataError, ElmoError, MissingExtra
from elmokit.tasks.core.dataset import TaskData, read_data
from elmokit.tasks.core.pictures import new_figure
from elmokit.tasks.core.task_model import TaskModel, num_tokens
from elmokit.tasks.core.task_settings import TaskSettings
from elmokit.tasks.core.training import choose_tokenizer, train
from elmokit.text import make_word_tokenizer

logger = logging.getLogger(__name__)

_MEASURED = "measured.json"
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class MeasuredRun:
    """One training, measured in a process of its own.

    Attributes:
        score: the main score on dev.
        values: all scores on dev.
        trained: parameters that were trained.
        encoder: parameters of the pretrained networks; a table of static vectors counts as none.
        training: milliseconds for 1,000 tokens in an epoch, with cached vectors where the encoder is frozen.
        use: milliseconds for 1,000 tokens of dev, from tokens to labels.
        memory: most memory in use at any time, in megabytes.
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
        return "+".join(_short(part) for part in self.encoder.split("+"))

    @property
    def score(self) -> float:
        """Mean of the seeds."""
        return statistics.fmean(run.score for run in self.runs)

    @property
    def deviation(self) -> float:
        """Standard deviation over the seeds."""
        return statistics.stdev(run.score for run in self.runs) if len(self.runs) > 1 else 0.0

    def mean(self, quantity: str) -> float:
        """Mean over the runs of one of their numbers."""
        return statistics.fmean(getattr(run, quantity) for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
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
        task: as for `train`, like what else has its name there.
        source: the data.
        encoders: to compare.
        out: a folder for all runs.
        seeds: how many; 1, 2, and so on.
        settings: of all runs, but for the seed.
        dev: the dev file.
        format: of the files.
        tokenizer: of running text, for all encoders.
        allow_unseen: let new labels count as errors.
        resume: go on with a comparison that was interrupted; what is finished is not run again.
        notice: is told of each run when it is done.

    Raises:
        DataError: `out` is not empty, or holds runs of other data, settings or encoders; or the data cannot
            be used.
    """
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()) and not resume:
        raise DataError(f"{folder} is not empty; choose another name, or pass resume=True")
    settings = settings or task.task_type.settings_type()
    for encoder in encoders:
        open_encoders(encoder)  # a wrong name is told before hours of training, not after
    results = []
    for encoder in encoders:
        runs, metric = [], ""
        for seed in range(1, seeds + 1):
            run_folder = folder / f"{_file_name(encoder)}-seed{seed}"
            arguments = {
                "task": task, "source": str(source), "encoder": encoder, "out": str(run_folder),
                "settings": settings.with_seed(seed), "dev": None if dev is None else str(dev),
                "format": format, "tokenizer": tokenizer, "allow_unseen": allow_unseen,
                "cache": str(folder / "cache"),
            }  # fmt: skip
            measured = _finished(run_folder, arguments) or _in_own_process(arguments)
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
    """The results as a Markdown table; scores in percent."""
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
    """Bars of the scores, with their deviations."""
    figure = new_figure(7, 1.5 + 0.5 * len(results))
    axes = figure.subplots()
    names = [one.name for one in results]
    scores, deviations = [100 * one.score for one in results], [100 * one.deviation for one in results]
    axes.barh(names, scores, xerr=deviations, color="tab:blue", ecolor="black", capsize=3)
    axes.invert_yaxis()
    axes.set(xlabel=f"dev {results[0].metric}, %", xlim=(max(0, min(scores) - 15), 100))
    figure.savefig(path, dpi=120)


def _in_own_process(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run in a fresh process, so that its memory is its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_child, args=(sender, arguments), daemon=True)
    process.start()
    sender.close()  # so that the end of the process is the end of what can be received
    try:
        found: dict[str, Any] | str = receiver.recv()
    except EOFError:
        process.join()
        raise ElmoError(
            f"the training of {arguments['out']} was killed (exit code {process.exitcode}), perhaps for want "
            "of memory; continue with resume=True when there is more"
        ) from None
    except BaseException:  # Ctrl-C
        process.terminate()
        raise
    finally:
        process.join()
    if isinstance(found, str):
        raise ElmoError(found)
    return found


def _run_child(sender: Connection, arguments: dict[str, Any]) -> None:
    belong_to_parent()
    try:
        sender.send(_measure(arguments))
    except ElmoError as error:
        sender.send(str(error))
    except Exception as error:
        sender.send(f"the training of {arguments['out']} failed: {type(error).__name__}: {error}")
        raise  # so that it is shown where it happened


def _measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Train, use, and say what it took; runs in the child."""
    out = Path(arguments["out"])
    shutil.rmtree(out, ignore_errors=True)
    found = train(**arguments)
    model = arguments["task"].load(out)
    examples = _data(arguments, model.encoders).dev
    began = time.perf_counter()
    model.decode(examples)
    use = time.perf_counter() - began
    epochs = [entry["epoch_seconds"] for entry in found.history]
    networks = [e.module for e in model.encoders if e.pretrained and isinstance(e, TunableEncoder)]
    run = MeasuredRun(
        score=found.scores.value,
        values=found.scores.values,
        trained=sum(weight.numel() for weight in found.model.parameters() if weight.requires_grad),
        encoder=sum(weight.numel() for network in networks for weight in network.parameters()),
        training=1e6 * statistics.fmean(epochs) / found.tokens,
        use=1e6 * use / max(1, sum(map(num_tokens, examples))),
        memory=peak_memory() / _MEGABYTE,
    )
    measured = {"metric": found.scores.main, "run": asdict(run), "purpose": _purpose(arguments)}
    (out / _MEASURED).write_text(json.dumps(measured, indent=2), encoding="utf-8")
    return measured


def _purpose(arguments: dict[str, Any]) -> dict[str, Any]:
    """What a run is of: its settings, and data and encoders as they are now."""
    where = ("out", "cache")
    encoders = open_encoders(arguments["encoder"])
    now = {
        "encoders": [encoder.fingerprint() for encoder in encoders],
        "data": _data(arguments, encoders).fingerprint(),
    }
    given = {name: value for name, value in arguments.items() if name not in where}
    as_data = {"task": given["task"].task_type.name, "settings": asdict(given["settings"])}
    return given | as_data | now


def _data(arguments: dict[str, Any], encoders: Sequence[Encoder]) -> TaskData[Any]:
    tokenize = make_word_tokenizer(choose_tokenizer(arguments["tokenizer"], encoders))
    formats, source = arguments["task"].task_type.formats, arguments["source"]
    return read_data(formats, source, tokenize=tokenize, dev=arguments["dev"], format=arguments["format"])


def peak_memory() -> float:
    """The most memory that this process has had, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent had when this process was made
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        return 1024 * float(lines["VmHWM"].split()[0])
    import resource  # which Windows does not have

    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _finished(folder: Path, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """What was measured there before, if anything was."""
    path = folder / _MEASURED
    if not path.exists():
        return None
    measured: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if measured.get("purpose") != _purpose(arguments):
        raise DataError(
            f"{folder} holds a run of other data or settings, or of an encoder that has changed since; "
            "choose another folder, or delete that one"
        )
    return measured


def _short(part: str) -> str:
    kind, _, path = part.rpartition(":")
    return f"{kind}:{Path(path).name}" if kind else Path(path).name


def _file_name(encoder: str) -> str:
    """A name for people, and a few letters by which encoders of the same name differ."""
    name = re.sub(r"[^\w.+-]+", "_", "+".join(_short(part) for part in encoder.split("+")))
    return f"{name}-{hashlib.sha256(encoder.encode()).hexdigest()[:6]}"
