"""The tables and pictures of docs/measurements/tasks.md, of what benchmarks/tasks.py has measured so far."""

import json
import re
import statistics
from pathlib import Path
from typing import Any

from common import RESULTS, markdown_table
from elmokit.base import COLOURS, drawing
from task_rows import CURVES, PAPER, ROWS

PAGE = Path(__file__).parent.parent / "docs" / "measurements" / "tasks.md"
KEPT = RESULTS / "tasks.json"

Entry = dict[str, Any]  # what was measured with one encoder: its runs, the model's fingerprint, the settings
Kept = dict[str, dict[str, Entry]]  # row → encoder → entry


def read_kept() -> Kept:
    """All that was measured."""
    if not KEPT.exists():
        return {}
    kept: Kept = json.loads(KEPT.read_text(encoding="utf-8"))
    return kept


def without_and_with(measured: dict[str, Entry]) -> list[Entry]:
    """Of what was measured for a row, the baseline and the same with ELMo, as far as they are there."""
    halves = {
        bool(one["fingerprint"]): one
        for name, one in measured.items()
        if "bert:" not in name and not name.endswith("-adapted")
    }
    return [halves[half] for half in sorted(halves)]


def complete(kept: Kept) -> dict[str, list[Entry]]:
    """The rows of which both halves were measured."""
    found = {name: without_and_with(kept.get(name, {})) for name in ROWS}
    return {name: both for name, both in found.items() if len(both) == 2}


def scores_of(row: str, entry: Entry) -> list[float]:
    """The score of a row in percent, of each run."""
    return [100 * run["values"][ROWS[row].score] for run in entry["runs"]]


def shown(scores: list[float]) -> str:
    """Mean and deviation."""
    deviation = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{statistics.fmean(scores):.2f}{deviation}"


def summary(name: str, measured: list[Entry]) -> list[str]:
    """The cells of one row, of what was measured without and with ELMo."""
    row = ROWS[name]
    scores = [scores_of(name, one) for one in measured]
    before, after = map(statistics.fmean, scores)
    aim, met = "–", "–"
    if row.gain is not None:
        aim, met = f"gain ≥ {row.gain:g}", _yes_or_no(after - before >= row.gain)
    if row.least is not None:
        aim, met = f"{row.score} ≥ {row.least:g}", _yes_or_no(after >= row.least)
    seeds = " / ".join(dict.fromkeys(str(len(one)) for one in scores))
    return [name, row.score, *map(shown, scores), f"{after - before:+.2f}", aim, met, seeds]


def _yes_or_no(met: bool) -> str:
    return "yes" if met else "**no**"


def tasks_table(kept: Kept) -> str:
    """Every row that was measured, with its aim."""
    header = ["data", "score", "without ELMo", "with ELMo", "gain", "aim", "met", "seeds"]
    return markdown_table(header, [summary(name, both) for name, both in complete(kept).items()])


def paper_table(kept: Kept) -> str:
    """The six tasks of the paper: its figures (test) beside ours (dev)."""
    cells = []
    for task, (name, data, *paper) in PAPER.items():
        measured = complete(kept).get(name)
        own = [statistics.fmean(scores_of(name, one)) for one in measured] if measured else []
        cells.append([task, data, *_gains(paper), name, *(_gains(own) if own else ["not yet"] * 4)])
    four = ["baseline", "+ ELMo", "gain", "relative"]
    return markdown_table(["task", "the paper's data", *four, "ours", *four], cells)


def _gains(scores: list[float]) -> list[str]:
    """Baseline, ELMo, the gain in points, and as the share of the errors that are gone."""
    before, after = scores
    relative = 100 * (after - before) / (100 - before)
    return [f"{before:.1f}", f"{after:.1f}", f"{after - before:+.1f}", f"{relative:+.1f} %"]


def adapted_table(kept: Kept, rows: tuple[str, ...]) -> str:
    """A line for each row with an adapted model: perplexities, the baseline, the scores, the gain."""
    table = []
    for name in rows:
        baseline = without_and_with(kept.get(name, {}))[:1]
        for one in (one for encoder, one in kept.get(name, {}).items() if encoder.endswith("-adapted")):
            _, score, *cells = summary(name, [*baseline, one])
            before, after = one["perplexities"]
            table.append([name, f"{before:.0f} → {after:.0f}", score, *cells])
    before = ["data", "perplexity of dev", "score", "without ELMo", "with ELMo, adapted"]
    return markdown_table([*before, "gain", "aim", "met", "seeds"], table)


def curve_of(kept: Kept, name: str) -> dict[float, list[list[float]]]:
    """For each share of the training data the scores of the runs, without and with ELMo."""
    found = {}
    for share in CURVES[name]:
        both = without_and_with(kept.get(name if share == 1 else f"{name}-{share}", {}))
        if len(both) == 2:
            found[share] = [scores_of(name, one) for one in both]
    return found


def shares_table(kept: Kept) -> str:
    """Scores by the share of the training data."""
    cells = [
        [name, f"{share:.0%}", *map(shown, both), f"{gain_of(both):+.2f}", len(both[1])]
        for name in CURVES
        for share, both in curve_of(kept, name).items()
    ]
    return markdown_table(["data", "share of train", "without ELMo", "with ELMo", "gain", "seeds"], cells)


def gain_of(both: list[list[float]]) -> float:
    """Between the means."""
    before, after = map(statistics.fmean, both)
    return after - before


def draw_shares(kept: Kept, path: Path) -> None:
    """Score against the share of the training data (Peters et al. 2018, figure 1)."""
    curves = {name: curve_of(kept, name) for name in CURVES}
    curves = {name: curve for name, curve in curves.items() if len(curve) > 1}
    with drawing(path, width=1 + 4 * len(curves), height=4) as figure:
        panels = figure.subplots(1, len(curves), squeeze=False)[0]
        for axes, (name, curve) in zip(panels, curves.items(), strict=True):
            shares = [100 * share for share in curve]
            for place, label in ((0, "baseline"), (1, "with ELMo")):
                means = [statistics.fmean(both[place]) for both in curve.values()]
                spread = [
                    statistics.stdev(both[place]) if len(both[place]) > 1 else 0 for both in curve.values()
                ]
                axes.errorbar(
                    shares, means, yerr=spread, label=label, color=COLOURS[place], marker="o", capsize=3
                )
            axes.set(xscale="log", xlabel="share of the training data, %", title=name)
            axes.set(ylabel=f"dev {ROWS[name].score}, %")
            axes.set_xticks(shares, [f"{share:g}" for share in shares])
            axes.legend(loc="lower right")


def mixes_of(kept: Kept) -> list[tuple[str, str, float, list[float]]]:
    """Row, place, γ and the shares of the layers, means of the runs with ELMo."""
    found = []
    for name, (_, entry) in complete(kept).items():
        runs = [run["mixes"] for run in entry["runs"] if run.get("mixes")]
        for mixes in zip(*runs, strict=True):
            gamma = statistics.fmean(mix["gamma"] for mix in mixes)
            layers = [
                statistics.fmean(layer) for layer in zip(*(mix["shares"] for mix in mixes), strict=True)
            ]
            found.append((name, mixes[0]["place"], gamma, layers))
    return found


def mixes_table(kept: Kept) -> str:
    """The learnt weights of the layers."""
    cells = [
        [name, place, f"{g:.2f}", *(f"{w:.2f}" for w in layers)] for name, place, g, layers in mixes_of(kept)
    ]
    return markdown_table(["data", "place", "γ", "layer 0", "layer 1", "layer 2"], cells)


def draw_mixes(kept: Kept, path: Path) -> None:
    """The same as shades, a panel for each place (Peters et al. 2018, figure 2)."""
    mixes = mixes_of(kept)
    places = {place: [one for one in mixes if one[1] == place] for place in ("input", "output")}
    with drawing(path, width=9, height=1.5 + 0.3 * len(places["input"])) as figure:
        for axes, (place, found) in zip(figure.subplots(1, 2), places.items(), strict=True):
            image = axes.imshow([layers for *_, layers in found], vmin=0, vmax=1, cmap="Blues", aspect="auto")
            axes.set_yticks(range(len(found)), [name for name, *_ in found])
            axes.set_xticks(range(3), ["0", "1", "2"])
            axes.set(xlabel="layer", title=f"at the {place} of the task's LSTM")
        figure.colorbar(image, label="weight")


def times_table(kept: Kept) -> str:
    """What a training with ELMo took, and how fast the model is."""
    cells = []
    for name, (_, entry) in complete(kept).items():
        runs = [run for run in entry["runs"] if run.get("seconds")]
        if runs:
            minutes = statistics.fmean(run["seconds"] for run in runs) / 60
            memory, use = (statistics.fmean(run[key] for run in runs) for key in ("memory", "use"))
            cells.append([name, f"{minutes:.0f}", f"{memory / 1024:.1f}", f"{1e6 / use:,.0f}"])
    return markdown_table(["data", "minutes", "peak memory, GB", "use, tokens/s"], cells)


def write_section(section: str, text: str) -> None:
    """Put a text between the section's marks in the page, whose other words are written by hand."""
    begin, end = f"<!-- {section}: written by benchmarks/tasks.py -->", f"<!-- end of {section} -->"
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"{PAGE} has no section {section}")
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page), encoding="utf-8")


def write_page(adapted: tuple[str, ...]) -> None:
    """Write every table and picture that needs no further measurement."""
    kept = read_kept()
    write_section("tasks", tasks_table(kept))
    write_section("paper", paper_table(kept))
    write_section("adapted", adapted_table(kept, adapted))
    write_section("shares", shares_table(kept))
    write_section("mixes", mixes_table(kept))
    write_section("times", times_table(kept))
    draw_shares(kept, RESULTS / "tasks-shares.png")
    if mixes_of(kept):
        draw_mixes(kept, RESULTS / "tasks-mixes.png")
