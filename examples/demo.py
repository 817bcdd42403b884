"""What `make demo` shows: a word has another vector in another sentence, and these tell its senses apart.

    python examples/demo.py [--en MODEL] [--zh MODEL]      # the bundled models when not given

For the words of demo_words.toml it prints how alike their uses are at each layer and the nearest use of each,
and it draws demo.png: where the uses of a word go from the one vector that they share at layer 0.
"""

import argparse
import math
import textwrap
import tomllib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Column, Table

import elmokit
from elmokit.base import COLOURS, drawing


@dataclass(frozen=True)
class Uses:
    """The uses of a word in two senses: n sentences, their senses (n,), the word's vectors (L+1, n, 2P)."""

    word: str
    names: list[str]
    sentences: list[str]
    senses: np.ndarray
    vectors: np.ndarray

    @classmethod
    def embed(cls, elmo: elmokit.Embedder, word: str, by_sense: dict[str, list[str]]) -> "Uses":
        """Embed the sentences; a word of several tokens, as Chinese ones are, is the mean of theirs."""
        sentences = [sentence for several in by_sense.values() for sentence in several]
        senses = [number for number, several in enumerate(by_sense.values()) for _ in several]
        vectors = []
        for found in elmo.stream(sentences):
            places = found.find(word)
            if not places:
                raise SystemExit(f"{found.text!r} was read as {found.tokens}, which has no {word!r}")
            vectors.append(found.merged(places[:1]).layers[:, 0])  # (L+1, 2P)
        return cls(word, list(by_sense), sentences, np.array(senses), np.stack(vectors, axis=1))

    def cosines(self, layer: int) -> np.ndarray:
        """Of each use with each, (n, n)."""
        unit = self.vectors[layer] / np.linalg.norm(self.vectors[layer], axis=1, keepdims=True)
        return unit @ unit.T

    def within_and_across(self, layer: int) -> tuple[float, float]:
        """The mean cosine of two uses of one sense, and of two uses of different senses."""
        same, two = self.senses[:, None] == self.senses, ~np.eye(len(self.senses), dtype=bool)
        cosines = self.cosines(layer)
        return float(cosines[same & two].mean()), float(cosines[~same].mean())

    def paths(self) -> np.ndarray:
        """Where each use stands at each layer, (L+1, n, 2), seen from the mean of the layer's uses.

        The plane is that of the top layer's first two principal components; the second sense is to the right.
        """
        centred = self.vectors - self.vectors.mean(axis=1, keepdims=True)
        plane = np.linalg.svd(centred[-1], full_matrices=False)[2][:2]  # (2, 2P)
        places = centred @ plane.T
        if places[-1, self.senses == 1, 0].mean() < 0:
            places[..., 0] *= -1
        return places / np.abs(places).max()


def show(uses: Uses, console: Console) -> None:
    """Print a word's two tables."""
    console.print(f"\n[bold]{uses.word}[/bold]: {' or '.join(uses.names)}?")
    table = Table("mean cosine of two uses", "same sense", "other sense", "difference")
    for layer in range(len(uses.vectors)):
        within, across = uses.within_and_across(layer)
        name = f"layer {layer}{': the word alone' if layer == 0 else ''}"
        table.add_row(name, f"{within:.3f}", f"{across:.3f}", f"{round(within - across, 3) + 0.0:+.3f}")
    console.print(table)
    whole = partial(Column, overflow="fold")  # Chinese has no blanks to break lines at
    table = Table("sense", whole("sentence"), whole("nearest at the top layer"), "cosine", "")
    cosines = uses.cosines(-1) - 2 * np.eye(len(uses.senses))  # no use is its own neighbour
    for row, (sense, near) in enumerate(zip(uses.senses, cosines.argmax(axis=1), strict=True)):
        mark = "[green]✓[/green]" if sense == uses.senses[near] else "[red]✗[/red]"
        shown = f"{cosines[row, near]:.3f}"
        table.add_row(uses.names[sense], uses.sentences[row], uses.sentences[near], shown, mark)
    console.print(table)


def wrap(text: str) -> str:
    """Break a sentence into lines; Chinese ones of equal length, so that no full stop stands alone."""
    if text.isascii():
        return textwrap.fill(text, 20)
    lines = math.ceil(len(text) / 11)
    return textwrap.fill(text, math.ceil(len(text) / lines))


def draw(uses: Uses, axes: Axes) -> None:
    """Draw the way of each use from layer 0 to the top, and its sentence at the side."""
    places = uses.paths()
    for sense, (colour, side, align) in enumerate(zip(COLOURS, (-1, 1), ("right", "left"), strict=False)):
        rows = np.flatnonzero(uses.senses == sense)
        rows = rows[np.argsort(places[-1, rows, 1])]  # lowest first, so that lines to the texts cross least
        for row, height in zip(rows, np.linspace(-0.8, 0.8, len(rows)), strict=True):
            x, y = places[-1, row]
            axes.plot([x, 1.2 * side], [y, height], color="0.8", lw=0.8, zorder=0)
            axes.plot(*places[:, row].T, color=colour, lw=2.2, alpha=0.35, solid_capstyle="round")
            axes.scatter(*places[1:-1, row].T, s=20, color=colour, lw=0)
            axes.scatter(x, y, s=95, color=colour, ec="white", lw=1.2, zorder=3)
            axes.text(1.25 * side, height, wrap(uses.sentences[row]), ha=align, va="center", linespacing=1.2)
        axes.text(1.25 * side, 1.2, uses.names[sense], color=colour, size=15, weight="bold", ha=align)
    axes.scatter(0, 0, s=95, color="white", ec="0.25", lw=1.6, zorder=4)
    axes.text(0, 1.2, uses.word, size=24, weight="bold", ha="center")
    caption = "top layer: cosine {:.2f} within a sense, {:.2f} across".format(*uses.within_and_across(-1))
    axes.text(0, -1.28, caption, color="0.45", size=9.5, ha="center")
    axes.set(xlim=(-2.9, 2.9), ylim=(-1.45, 1.5), aspect="equal")


def picture(words: list[Uses], path: Path) -> None:
    """Draw two words a row."""
    lines = -(-len(words) // 2)
    height = 1.0 + 3.4 * lines  # inches
    with drawing(path, width=13.33, height=height) as figure:
        figure.set_layout_engine("none")
        figure.suptitle("A word's vector moves with its sentence", y=1 - 0.2 / height, size=19)
        key = "○ layer 0: one vector for all uses    • between    ● top layer, its two principal components"
        figure.text(0.5, 1 - 0.75 / height, key, ha="center", color="0.35")
        edges = {"left": 0, "right": 1, "bottom": 0, "top": 1 - 0.9 / height, "wspace": 0, "hspace": 0}
        grid = list(figure.subplots(lines, 2, squeeze=False, gridspec_kw=edges).flat)
        for axes in grid:
            axes.axis("off")
        for uses, axes in zip(words, grid, strict=False):
            draw(uses, axes)
    print(f"\npicture: {path.resolve()}")


def main() -> None:
    """Embed, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--en", help="a model instead of the bundled 'en'")
    parser.add_argument("--zh", help="a model instead of the bundled 'zh'")
    given = vars(parser.parse_args())
    data = tomllib.loads(Path(__file__).with_name("demo_words.toml").read_text(encoding="utf-8"))
    words = []
    for language, wanted in data.items():
        if given[language] or language in elmokit.bundled_names():
            elmo = elmokit.load(given[language] or language)
            words += [Uses.embed(elmo, word, by_sense) for word, by_sense in wanted.items()]
        else:
            print(f"No model {language!r} came with this elmokit: {', '.join(wanted)} are left out.")
    for uses in words:
        show(uses, Console())
    if words:
        picture(words, Path("demo.png"))


if __name__ == "__main__":
    main()
