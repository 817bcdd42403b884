"""Draw the uses of a word: a panel for each layer, and the most typical sentences of each sense."""

import textwrap
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.base import COLOURS, bold_if_there, counted, drawing
from elmokit.search.clusters import Floats
from elmokit.search.word_uses import WordUse, WordUses

_EXAMPLES = 5  # sentences of each sense
_WIDTH = 13.33  # inches
_COLUMNS = 3
_CONTEXT = 58  # columns of text in an example: three examples fit beside each other


def draw_uses(found: WordUses, path: Path) -> None:
    """Draw the uses at each layer, coloured by sense, and the most typical sentences of each sense."""
    shown = found.senses[: len(COLOURS)]
    columns = min(_COLUMNS, len(shown))
    examples = [_examples(found, sense, _CONTEXT * _COLUMNS // columns) for sense in shown]
    rows = [examples[start : start + columns] for start in range(0, len(shown), columns)]
    heights = [0.42 + 0.27 * max(map(len, row)) for row in rows]  # inches
    panels = 4.6
    with drawing(path, width=_WIDTH, height=panels + sum(heights) + 0.25) as figure:
        top, below = figure.subfigures(2, 1, height_ratios=[panels, sum(heights) + 0.25])
        more = f" ({found.left_out:,} more in the text are not shown)" if found.left_out else ""
        title = f"{found.word}: {counted(len(found), 'use')}{more}"
        top.suptitle(title, size=17, weight=bold_if_there(title))
        grid = top.subplots(1, len(found.layers), squeeze=False)[0]
        for layer, axes in enumerate(grid):
            _draw_layer(found, layer, shown, axes)
        blocks = below.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
        for number, axes in enumerate(blocks.flat):
            axes.axis("off")
            if number < len(shown):
                axes.set(xlim=(0, 1), ylim=(-heights[number // columns], 0))
                members = sum(use.sense == shown[number] for use in found.uses)
                title = f"{shown[number]}: {counted(members, 'use')}"
                bold = bold_if_there(title)
                axes.text(0.02, -0.22, title, color=COLOURS[number], size=12.5, weight=bold, va="center")
                for line, text in enumerate(examples[number]):
                    axes.text(0.02, -0.55 - 0.27 * line, text, size=9.5, va="center")


def _draw_layer(found: WordUses, layer: int, senses: list[str], axes: Any) -> None:  # noqa: ANN401
    places = plane(found.layers[layer])  # (n, 2)
    of_use = np.array([use.sense for use in found.uses])
    size = 70 if len(found) <= 60 else 30 if len(found) <= 300 else 12
    equal = not places.any()
    for sense, colour in zip(senses, ["0.5"] * len(senses) if equal else COLOURS, strict=False):
        x, y = places[of_use == sense].T
        axes.scatter(x, y, s=size, color=colour, ec="white", lw=0.8, alpha=0.85)
    others = ~np.isin(of_use, senses)
    if others.any():
        axes.scatter(*places[others].T, s=size, color="0.8", ec="white", lw=0.8, zorder=0)
    names = {0: ": the word alone", len(found.layers) - 1: ", the top one"}
    axes.set_title(f"layer {layer}{names.get(layer, '')}", size=12)
    within, across = found.within_and_across(layer)
    caption = f"mean cosine {within:.2f} within a sense, {across:.2f} across"
    if np.isnan(across):
        caption = "" if np.isnan(within) else f"mean cosine of two uses {within:.2f}"
    axes.set_xlabel(caption, color="0.4")
    axes.set(xticks=[], yticks=[])
    lowest, highest = places.min(axis=0), places.max(axis=0)
    reach = 0.575 * max(float((highest - lowest).max()), 1e-6)
    x, y = ((lowest + highest) / 2).tolist()
    axes.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), aspect="equal")
    if equal and len(found) > 1:
        axes.text(
            x, y - 0.15 * reach, "one vector for all uses", color="0.4", size=9.5, ha="center", va="top"
        )
    for spine in axes.spines.values():
        spine.set(visible=True, color="0.85")


def plane(vectors: Floats) -> Floats:
    """Return the first two principal components of the uses, (n, 2); all zero if the uses are equal."""
    centred = vectors - vectors.mean(axis=0)
    if np.abs(centred).max() < 1e-5:
        return np.zeros((len(vectors), 2), np.float32)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2]  # (at most 2, D)
    places = centred @ axes.T
    return np.pad(places, ((0, 0), (0, 2 - places.shape[1])))


def _examples(found: WordUses, sense: str, columns: int) -> list[str]:
    """Return the sentences of a sense that are most like the others of it."""
    members = [number for number, use in enumerate(found.uses) if use.sense == sense]
    typical = found.cosines(-1)[np.ix_(members, members)].mean(axis=1)
    texts = [context(found.uses[members[place]], columns) for place in np.argsort(-typical, kind="stable")]
    return list(dict.fromkeys(texts))[:_EXAMPLES]


def context(use: WordUse, columns: int = _CONTEXT) -> str:
    """Return the part of the sentence around a use that fits into `columns`.

    >>> context(WordUse(line=1, sense="", word="bank", start=4, end=8, text="the bank of a river"), 12)
    'the bank…'
    """
    text, start, end = use.text, use.start, use.end
    left, right = start, len(text) - end
    while _columns(text[start - left : end + right]) + (left < start) + (right < len(text) - end) > columns:
        if right >= left and right > 0:
            right -= 1
        elif left > 0:
            left -= 1
        else:
            break
    before, after = text[start - left : start], text[end : end + right]
    if left < start and " " in before:  # no part of a word
        before = before.partition(" ")[2]
    if right < len(text) - end and " " in after:
        after = after.rpartition(" ")[0]
    dots = ("…" if left < start else "", "…" if right < len(text) - end else "")
    return textwrap.shorten(f"{dots[0]}{before}{text[start:end]}{after}{dots[1]}", 10_000)


def _columns(text: str) -> int:
    """Return how wide a text is: Chinese characters take two columns."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
