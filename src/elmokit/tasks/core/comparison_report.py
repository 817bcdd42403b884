"""One document that says which encoder to take: what each brings with few and many labels, and what it costs.

REPORT/report.md, report.json, and pictures: scores against the share of the labels, and against the time of
training and of use, where the best choices form a line (the Pareto front).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.base import COLOURS, check_number, drawing, write_json, write_text
from elmokit.errors import ConfigError, MissingExtra
from elmokit.tasks.core.comparison import Compared, MeasuredRun, compare
from elmokit.tasks.core.task_model import TaskModel
from elmokit.tasks.core.task_settings import TaskSettings

SHARES = (0.01, 0.1, 1.0)
_RESAMPLES = 10_000
_AT_ONCE = 2_000_000  # numbers in a block of resamples
_SIGNIFICANT = 0.05
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """How much better one encoder is than another on the same dev examples.

    Attributes:
        better, worse: The names.
        difference: Of the scores.
        low, high: 95 % of the resampled differences lie between these.
        p: How often the difference would have the other sign, doubled: two-sided.
    """

    better: str
    worse: str
    difference: float
    low: float
    high: float
    p: float


def compare_report(
    task: type[TaskModel[Any, Any, Any]],
    source: str | Path,
    encoders: Sequence[str],
    *,
    out: str | Path,
    report: str | Path,
    shares: Sequence[float] = SHARES,
    seeds: int = 3,
    settings: TaskSettings | None = None,
    dev: str | Path | None = None,
    format: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    tokenizer: str | None = None,
    epochs: int | None = None,
    adapt: bool | float = False,
    adapt_text: Sequence[str | Path] = (),
    allow_unseen: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    notice: Callable[[str, MeasuredRun], None] = lambda name, run: None,
) -> dict[float, list[Compared]]:
    """Compare encoders with parts of the labels, and write a report.

    Args:
        task: As for `compare`, like all that is not named here.
        source: The data.
        encoders: To compare.
        out: A folder for all runs, with one for each share. An interrupted report is continued by
            `resume=True`; finished runs are not repeated.
        report: A folder for the report.
        shares: Of the training data.
        seeds: How many runs with each encoder and share.
        settings: Of all runs, except seed and share.
        dev: The dev file, the same for all shares.
        format: Of the files.
        text_column: Of a table, like `label_column`.
        label_column: The same for the label.
        tokenizer: For running text, the same for all encoders.
        epochs: Of each run, at most.
        adapt: Let each ELMo read the training text first.
        adapt_text: Further text for it to read.
        allow_unseen: Count new labels as errors.
        resume: Continue an interrupted report.
        overwrite: Train again what is in `out` already.
        notice: Called with each run when it is done.

    Raises:
        ConfigError: A share is not above 0 and at most 1, or occurs twice.
        DataError: See `compare`.
    """
    for share in shares:
        check_number("a share of the labels", share, above=0, most=1)
    if not shares or len(set(shares)) < len(shares):
        raise ConfigError(f"shares must be different numbers above 0 and at most 1, found {list(shares)}")
    settings = settings or task.task_type.settings_type()
    common: dict[str, Any] = {
        "seeds": seeds, "dev": dev, "format": format, "text_column": text_column, "epochs": epochs,
        "label_column": label_column, "tokenizer": tokenizer, "adapt": adapt, "adapt_text": adapt_text,
        "allow_unseen": allow_unseen, "resume": resume, "overwrite": overwrite,
    }  # fmt: skip
    results = {}
    for share in sorted(shares):
        results[share] = compare(
            *(task, source, encoders),
            out=Path(out) / f"share-{share:g}",
            settings=replace(settings, training=replace(settings.training, share=share)),
            notice=partial(_tell, notice, share),
            **common,
        )
    write_comparison_report(results, Path(report), title=f"Encoders on {Path(source).name}")
    return results


def _tell(notice: Callable[[str, MeasuredRun], None], share: float, name: str, run: MeasuredRun) -> None:
    notice(f"{name}, {100 * share:g} % of the labels", run)


def write_comparison_report(results: dict[float, list[Compared]], folder: Path, *, title: str) -> None:
    """Write report.md, report.json and the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    most = max(results)
    full = results[most]
    differences = paired_differences(full)
    pictures = ""
    try:
        draw_shares(results, folder / "shares.png")
        for quantity, name in (("cpu", "training, CPU seconds"), ("use", "use, ms per 1,000 tokens")):
            draw_front(full, quantity, name, folder / f"{quantity}.png")
        pictures = (
            "\n![score against the share of the labels](shares.png)\n\n"
            "![score against the time of training](cpu.png)\n\n"
            "![score against the time of use](use.png)\n"
        )
    except MissingExtra as missing:
        pictures = f"\n(No pictures: {missing}.)\n"
    lines = [
        f"# {title}",
        "",
        *_summary(full, differences),
        "",
        *_share_table(results),
        "",
        *_cost_table(full),
    ]
    lines += ["", *_difference_lines(differences), pictures]
    write_text(folder / "report.md", "\n".join(lines))
    content = {
        "title": title,
        "shares": {f"{share:g}": [one.to_dict() for one in found] for share, found in results.items()},
        "differences": [vars(one) for one in differences],
        "front": {quantity: [one.name for one in pareto(full, quantity)] for quantity in ("cpu", "use")},
    }
    write_json(folder / "report.json", content)


def paired_differences(results: Sequence[Compared], *, seed: int = 0) -> list[Difference]:
    """Compare the best encoder with each other one by a paired bootstrap over the dev examples.

    An example has the same weight for both in each resample; the counts of all seeds are added. Empty where
    a task does not count items, as for correlations.
    """
    ranked = sorted(results, key=lambda one: -one.score)
    counts = {one.encoder: _counts(one) for one in ranked}
    best = ranked[0]
    found = []
    for other in ranked[1:]:
        a, b = counts[best.encoder], counts[other.encoder]
        if a is None or b is None or a.shape != b.shape:
            continue
        drawn = _resampled(a, b, seed)
        low, high = np.quantile(drawn, [0.025, 0.975])
        p = min(1.0, 2 * (float((drawn <= 0).sum()) + 1) / (len(drawn) + 1))
        difference = float(_f1(a.sum(0)) - _f1(b.sum(0)))
        found.append(Difference(best.name, other.name, difference, float(low), float(high), p))
    return found


def _counts(one: Compared) -> Floats | None:
    """Return (examples, parts, 3): true positives, predicted and gold items, over all seeds."""
    parts = [run.examples for run in one.runs]
    if any(part is None for part in parts):
        return None
    found: Floats = np.sum([np.asarray(part, np.float64) for part in parts], axis=0)
    return found


def _f1(sums: Floats) -> Floats:
    """Return the mean F1 of the parts, (…, parts, 3) → (…,)."""
    found: Floats = (2 * sums[..., 0] / np.maximum(1, sums[..., 1] + sums[..., 2])).mean(-1)
    return found


def _resampled(a: Floats, b: Floats, seed: int) -> Floats:
    """Return the differences of resampled scores."""
    random, count, drawn = np.random.default_rng(seed), len(a), list[Floats]()
    while sum(map(len, drawn)) < _RESAMPLES:
        block = max(1, min(_RESAMPLES, _AT_ONCE // count))
        times = random.multinomial(count, np.full(count, 1 / count), size=block)  # (block, n)
        sums = (np.tensordot(times, part, axes=1) for part in (a, b))  # (block, parts, 3) each
        first, second = (_f1(one) for one in sums)
        drawn.append(first - second)
    return np.concatenate(drawn)[:_RESAMPLES]


def pareto(results: Sequence[Compared], quantity: str) -> list[Compared]:
    """Return the encoders that no other beats in score without costing more, the cheapest first."""
    front: list[Compared] = []
    for one in sorted(results, key=lambda one: (one.mean(quantity), -one.score)):
        if not front or one.score > front[-1].score:
            front.append(one)
    return front


def _summary(results: Sequence[Compared], differences: Sequence[Difference]) -> list[str]:
    """Say in words which one to take."""
    best = max(results, key=lambda one: one.score)
    lines = [f"Best with all labels given here: **{best.name}**, {best.score_text} ({best.metric})."]
    close = [one.worse for one in differences if one.p > _SIGNIFICANT]
    if close:
        lines.append(f"Not told apart from it by these dev data: {', '.join(close)}.")
    for quantity, name in (("cpu", "to train"), ("use", "to use")):
        front = pareto(results, quantity)
        lines.append(f"Worth their time {name}, the cheapest first: {', '.join(one.name for one in front)}.")
    return lines


def _share_table(results: dict[float, list[Compared]]) -> list[str]:
    shares = sorted(results)
    first = results[shares[0]]
    lines = [
        f"## {first[0].metric}, % ± standard deviation of the seeds",
        "",
        "| encoder | " + " | ".join(f"{100 * share:g} % of the labels" for share in shares) + " |",
        "|---" * (len(shares) + 1) + "|",
    ]
    for place, one in enumerate(first):
        lines.append(f"| {one.name} | " + " | ".join(results[s][place].score_text for s in shares) + " |")
    return lines


def _cost_table(results: Sequence[Compared]) -> list[str]:
    lines = [
        "## Cost, means of the runs with all labels",
        "",
        "| encoder | training, s | CPU seconds | use, ms per 1,000 tokens | peak memory, MB | size, MB | "
        "parameters trained |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in results:
        numbers = (
            one.mean("seconds"),
            one.mean("cpu"),
            one.mean("use"),
            one.mean("memory"),
            one.mean("size"),
        )
        shown = " | ".join("–" if math.isnan(number) else f"{number:,.1f}" for number in numbers)
        lines.append(f"| {one.name} | {shown} | {one.mean('trained'):,.0f} |")
    lines += [
        "",
        "Seconds are those of training alone, CPU seconds those of all cores, with the vectors of frozen "
        "encoders (computed once for all seeds); they stand for energy. Size is that of the model with its "
        "encoders, as a folder that needs nothing else.",
    ]
    return lines


def _difference_lines(differences: Sequence[Difference]) -> list[str]:
    if not differences:
        return ["## Significance", "", "One encoder only, or a score that is not made of counts: not tested."]
    lines = [
        "## Significance",
        "",
        f"Paired bootstrap over the dev examples, {_RESAMPLES:,} resamples, the seeds together.",
        "",
        "| better | than | by, points | 95 % between | p |",
        "|---|---|---|---|---|",
    ]
    for one in differences:
        between = f"{100 * one.low:.2f} and {100 * one.high:.2f}"
        lines.append(f"| {one.better} | {one.worse} | {100 * one.difference:.2f} | {between} | {one.p:.4f} |")
    return lines


def draw_shares(results: dict[float, list[Compared]], path: Path) -> None:
    """Draw the score of each encoder against the share of the labels."""
    shares = sorted(results)
    with drawing(path, width=7, height=4.2) as figure:
        axes = figure.subplots()
        for place, one in enumerate(results[shares[0]]):
            found = [results[share][place] for share in shares]
            axes.errorbar(
                [100 * share for share in shares],
                [100 * each.score for each in found],
                yerr=[100 * (each.deviation or 0.0) for each in found],
                marker="o",
                color=COLOURS[place % len(COLOURS)],
                label=one.name,
            )
        axes.set_xscale("log")
        axes.set_xticks([100 * share for share in shares], [f"{100 * share:g} %" for share in shares])
        axes.minorticks_off()
        axes.set(xlabel="labels", ylabel=f"dev {results[shares[0]][0].metric}, %")
        axes.grid(alpha=0.3)
        figure.legend(loc="outside upper center", ncols=2, fontsize=8)


def draw_front(results: Sequence[Compared], quantity: str, name: str, path: Path) -> None:
    """Draw the scores against a cost, and the line of those that no other beats."""
    with drawing(path, width=7, height=4.2) as figure:
        axes = figure.subplots()
        front = pareto(results, quantity)
        costs, scores = [one.mean(quantity) for one in front], [100 * one.score for one in front]
        axes.plot(costs, scores, "--", color=COLOURS[1], label="not beaten at its cost")
        for one in results:
            at = (one.mean(quantity), 100 * one.score)
            axes.errorbar(*at, yerr=100 * (one.deviation or 0.0), fmt="o", color=COLOURS[0])
            axes.annotate(one.name, at, xytext=(5, 5), textcoords="offset points", fontsize=8)
        axes.set_xscale("log")
        axes.set(xlabel=name, ylabel=f"dev {results[0].metric}, %")
        axes.margins(x=0.2)
        axes.grid(alpha=0.3)
        figure.legend(loc="outside upper center", fontsize=8)
