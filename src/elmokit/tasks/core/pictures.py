"""Pictures of a training: learning curve, confusion matrix, weights of the layers. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.base import COLOURS, drawing

if TYPE_CHECKING:
    from elmokit.tasks.core.comparison import Compared
    from elmokit.tasks.core.counting import Scores
    from elmokit.tasks.core.inputs import LearntMix

_MOST_INCHES = 40.0
_WRITTEN_OUT = 12  # labels up to which a confusion matrix shows its counts
_LEAST_WRITTEN = 0.06  # share of a layer below which its number would not fit into the bar


def draw_learning_curve(history: Sequence[dict[str, Any]], main: str, path: Path) -> None:
    """Draw the training loss and, below it, the dev score of each epoch."""
    epochs = [entry["epoch"] for entry in history]
    scores = [100 * entry["dev"] for entry in history]
    with drawing(path, width=6, height=4.5) as figure:
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(epochs, [entry["loss"] for entry in history], color=COLOURS[0], marker=".")
        above.set_ylabel("training loss")
        below.plot(epochs, scores, color=COLOURS[1], marker=".")
        best = max(range(len(scores)), key=scores.__getitem__)
        # Beside the point where there is room, so that the number is not on the line.
        side = "right" if best > len(scores) / 2 else "left"
        below.annotate(
            f"best {scores[best]:.1f}",
            (epochs[best], scores[best]),
            xytext=(0, -16),
            textcoords="offset points",
            ha=side,
            color=COLOURS[1],
        )
        below.set(xlabel="epoch", ylabel=f"dev {main}, %")
        low, high = below.get_ylim()
        below.set_ylim(max(0, low - 0.15 * (high - low)), min(100, high))
        below.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        below.set_xlim(epochs[0] - 0.5, epochs[-1] + 0.5)
        for axes in (above, below):
            axes.grid(alpha=0.3)


def draw_confusion(scores: "Scores", path: Path) -> None:
    """Draw true (rows) against predicted labels (columns), as shares of each row."""
    labels, counts = scores.labels, scores.confusion
    size = min(2.5 + 0.35 * len(labels), _MOST_INCHES)
    shares = [[count / max(1, sum(row)) for count in row] for row in counts]
    places = range(len(labels))
    with drawing(path, width=size + 1, height=size) as figure:
        axes = figure.subplots()
        image = axes.imshow(shares, vmin=0, vmax=1, cmap="Blues")
        axes.set_xticks(places, labels, rotation=90 if max(map(len, labels)) * len(labels) > 24 else 0)
        axes.set_yticks(places, labels)
        axes.set(xlabel="predicted", ylabel="true")
        written = {"ha": "center", "va": "center", "fontsize": 11 if len(labels) <= 4 else 7}
        if len(labels) <= _WRITTEN_OUT:
            for row in places:
                for column in places:
                    colour = "white" if shares[row][column] > 0.5 else "black"
                    axes.text(column, row, counts[row][column], color=colour, **written)
        figure.colorbar(image, label="share of the row")


def draw_mixes(mixes: Sequence["LearntMix"], path: Path) -> None:
    """Draw the share of each layer in each learnt mix."""
    names = [f"{Path(mix.encoder).name}, {mix.place} (γ {mix.gamma:.2f})" for mix in mixes]
    with drawing(path, width=6.5, height=1.4 + 0.55 * len(mixes)) as figure:
        axes = figure.subplots()
        for layer in range(max(len(mix.shares) for mix in mixes)):
            shares = [mix.shares[layer] if layer < len(mix.shares) else 0.0 for mix in mixes]
            before = [sum(mix.shares[:layer]) for mix in mixes]
            colour = COLOURS[layer % len(COLOURS)]
            bars = axes.barh(names, shares, left=before, label=f"layer {layer}", color=colour, height=0.6)
            written = [f"{share:.2f}" if share >= _LEAST_WRITTEN else "" for share in shares]
            axes.bar_label(bars, written, label_type="center", color="white", fontsize=8)
        axes.invert_yaxis()
        axes.set(xlabel="share of each layer", xlim=(0, 1))
        figure.legend(ncols=4, fontsize=8, loc="outside upper right")


def draw_comparison(results: Sequence["Compared"], path: Path) -> None:
    """Draw the scores as points with their numbers, and their deviations where there are several runs.

    Points and not bars, since the axis does not begin at zero: small differences are what it is about.
    """
    scores, deviations = [100 * one.score for one in results], [100 * (one.deviation or 0) for one in results]
    low = min(score - spread for score, spread in zip(scores, deviations, strict=True))
    high = max(score + spread for score, spread in zip(scores, deviations, strict=True))
    room = max(0.25 * (high - low), 1.0)
    with drawing(path, width=7, height=1.0 + 0.45 * len(results)) as figure:
        axes = figure.subplots()
        for place, (score, spread, one) in enumerate(zip(scores, deviations, results, strict=True)):
            line = 2 if one.deviation is not None else 0
            axes.errorbar(score, place, xerr=spread, fmt="o", ms=8, color=COLOURS[0], elinewidth=line)
            text = f"{score:.1f}" + ("" if one.deviation is None else f" ± {spread:.1f}")
            axes.annotate(
                text, (score, place), xytext=(0, 8), textcoords="offset points", ha="center", size=9
            )
        axes.set_yticks(range(len(results)), [one.name for one in results])
        axes.set_ylim(len(results) - 0.5, -0.7)
        axes.set(xlabel=f"dev {results[0].metric}, %", xlim=(max(0, low - room), min(100.5, high + room)))
        axes.grid(axis="y", alpha=0.3)
