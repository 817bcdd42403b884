"""Pictures of a training: learning curve, confusion matrix, weights of the layers. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.errors import MissingExtra

if TYPE_CHECKING:
    from elmokit.tasks.core.counting import Scores
    from elmokit.tasks.core.inputs import LearntMix

_MOST_INCHES = 40.0
_WRITTEN_OUT = 12  # labels up to which a confusion matrix shows its counts


def new_figure(width: float = 6.0, height: float = 4.0) -> Any:  # noqa: ANN401 (matplotlib has no types here)
    """Return an empty figure that needs no screen.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "a picture") from error
    return Figure(figsize=(width, height), layout="constrained")


def draw_learning_curve(history: Sequence[dict[str, Any]], main: str, path: Path) -> None:
    """Draw the training loss and the dev score of each epoch."""
    figure = new_figure()
    left = figure.subplots()
    right = left.twinx()
    epochs = [entry["epoch"] for entry in history]
    lines = left.plot(epochs, [entry["loss"] for entry in history], color="tab:blue", label="training loss")
    scores = [100 * entry["dev"] for entry in history]
    lines += right.plot(epochs, scores, color="tab:red", marker=".", label=f"dev {main}")
    left.set(xlabel="epoch", ylabel="training loss")
    left.xaxis.get_major_locator().set_params(integer=True)
    right.set_ylabel(f"dev {main}, %")
    left.legend(handles=lines, loc="center right")
    figure.savefig(path, dpi=120)


def draw_confusion(scores: "Scores", path: Path) -> None:
    """Draw true (rows) against predicted labels (columns), as shares of each row."""
    labels, counts = scores.labels, scores.confusion
    size = min(2.5 + 0.35 * len(labels), _MOST_INCHES)
    figure = new_figure(size + 1, size)
    axes = figure.subplots()
    shares = [[count / max(1, sum(row)) for count in row] for row in counts]
    image = axes.imshow(shares, vmin=0, vmax=1, cmap="Blues")
    places = range(len(labels))
    axes.set_xticks(places, labels, rotation=90)
    axes.set_yticks(places, labels)
    axes.set(xlabel="predicted", ylabel="true")
    if len(labels) <= _WRITTEN_OUT:
        for row in places:
            for column in places:
                colour = "white" if shares[row][column] > 0.5 else "black"
                axes.text(
                    column, row, counts[row][column], ha="center", va="center", color=colour, fontsize=7
                )
    figure.colorbar(image, label="share of the row")
    figure.savefig(path, dpi=120)


def draw_mixes(mixes: Sequence["LearntMix"], path: Path) -> None:
    """Draw the share of each layer in each learnt mix."""
    figure = new_figure(6, 1.5 + 0.6 * len(mixes))
    axes = figure.subplots()
    names = [f"{Path(mix.encoder).name}, {mix.place} (γ {mix.gamma:.2f})" for mix in mixes]
    for layer in range(max(len(mix.shares) for mix in mixes)):
        shares = [mix.shares[layer] if layer < len(mix.shares) else 0.0 for mix in mixes]
        before = [sum(mix.shares[:layer]) for mix in mixes]
        axes.barh(names, shares, left=before, label=f"layer {layer}")
    axes.invert_yaxis()
    axes.set(xlabel="share of each layer", xlim=(0, 1))
    axes.legend(ncols=4, fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.savefig(path, dpi=120)
