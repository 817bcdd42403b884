"""The report on a prepared corpus: counts, and a plot of its sentence lengths."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from elmokit.base import COLOURS, drawing
from elmokit.corpus.chunks import CHARACTERS, EMPTY, MARKS, TOO_LONG, TOO_SHORT, Chunk
from elmokit.corpus.prepared_corpus import PreparedCorpus
from elmokit.corpus.selection import Selection
from elmokit.corpus.type_table import TypeTable
from elmokit.errors import MissingExtra
from elmokit.text import SPECIAL_TOKENS, UNKNOWN_TOKEN

Row: TypeAlias = tuple[str, ...]


@dataclass
class PartCounts:
    """Counts of the training or the held-out part; tokens do not include sentence boundaries."""

    tokens: int = 0
    oov_tokens: int = 0
    lengths: Counter[int] = field(default_factory=Counter)  # how many sentences have how many tokens

    def add(self, words: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32], vocabulary_size: int) -> None:
        """Count sentences, given the ids of all their words and the number of words of each."""
        self.tokens += len(words)
        unknown = (words >= vocabulary_size) | (words == SPECIAL_TOKENS.index(UNKNOWN_TOKEN))
        self.oov_tokens += int(np.count_nonzero(unknown))
        self.lengths.update(lengths.tolist())

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for the report."""
        return {
            "sentences": self.lengths.total(),
            "tokens": self.tokens,
            "oov_tokens": self.oov_tokens,
            "oov_rate": self.oov_tokens / self.tokens if self.tokens else None,
        }


def make_report(
    chunks: Sequence[Chunk], selection: Selection, table: TypeTable, parts: Sequence[PartCounts]
) -> dict[str, Any]:
    """Collect all counts of a corpus; `parts` are those of the training and the held-out part."""
    left_out: Counter[str] = Counter()
    for chunk in chunks:
        left_out.update(chunk.facts["left_out"])
    train, heldout = (part.to_dict() for part in parts)
    lengths = parts[0].lengths + parts[1].lengths
    return {
        "documents": sum(chunk.facts["documents"] for chunk in chunks),
        "sentences": train["sentences"] + heldout["sentences"],
        "tokens": train["tokens"] + heldout["tokens"],
        "characters": sum(chunk.facts["characters"] for chunk in chunks),
        "types": table.num_seen,
        "vocabulary_size": len(table.tokens),
        "coverage": None if train["oov_rate"] is None else 1 - train["oov_rate"],
        "train": train,
        "heldout": heldout,
        "dropped": {
            TOO_SHORT: left_out[TOO_SHORT],
            TOO_LONG: left_out[TOO_LONG],
            "duplicates": selection.num_duplicates,
            EMPTY: left_out[EMPTY],
            MARKS: left_out[MARKS],
        },
        "dropped_characters": left_out[CHARACTERS],
        "length_histogram": [lengths[length] for length in range(max(lengths, default=-1) + 1)],
    }


def report_rows(report: Mapping[str, Any]) -> list[list[Row]]:
    """Return a report as rows of text in three groups; each row is a name and one or two values."""
    parts = (report["train"], report["heldout"])
    rates = [part["oov_rate"] for part in parts]
    counts: list[Row] = [
        ("sentences", *(f"{part['sentences']:,}" for part in parts)),
        ("tokens", *(f"{part['tokens']:,}" for part in parts)),
        ("out of vocabulary", *("–" if rate is None else f"{rate:.2%}" for rate in rates)),
    ]
    text: list[Row] = [
        ("vocabulary, rows", f"{report['vocabulary_size']:,}"),
        ("tokens it covers", f"{report['coverage']:.2%}"),
        ("distinct spellings", f"{report['types']:,}"),
        ("documents", f"{report['documents']:,}"),
        ("characters", f"{report['characters']:,}"),
    ]
    dropped: list[Row] = [
        (f"dropped: {name.replace('_', ' ')}", f"{count:,}")
        for name, count in report["dropped"].items()
        if count
    ]
    if report["dropped_characters"]:
        share = report["dropped_characters"] / report["characters"]
        dropped.append(("too short or long, of the text", f"{share:.2%}"))
    return [counts, text, dropped]


def draw_lengths(corpus: PreparedCorpus) -> str:
    """Plot into a corpus (lengths.png) how many sentences have how many tokens; say where, or why not."""
    report, path = corpus.report, corpus.path / "lengths.png"
    histogram = np.array(report["length_histogram"])
    mean = (histogram * np.arange(len(histogram))).sum() / histogram.sum()
    shown = 1 + int(np.searchsorted(np.cumsum(histogram), 0.995 * histogram.sum()))
    beyond = int(histogram[shown:].sum())
    title = f"{report['sentences']:,} sentences, {report['tokens']:,} tokens"
    try:
        with drawing(path, width=7, height=3.5) as figure:
            axes = figure.subplots()
            axes.bar(np.arange(shown), histogram[:shown], width=1.0, color=COLOURS[0])
            axes.axvline(mean, color=COLOURS[1])
            axes.set_title(
                title + (f" ({beyond:,} longer sentences not shown)" if beyond else ""), fontsize=10
            )
            axes.set(xlabel="tokens in a sentence", ylabel="sentences")
            axes.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
            height = axes.get_ylim()[1]
            axes.text(mean, height, f" mean {mean:.1f}", color=COLOURS[1], va="top")
    except MissingExtra as missing:
        return f"no picture: {missing}"
    return f"sentence lengths: {path}"
