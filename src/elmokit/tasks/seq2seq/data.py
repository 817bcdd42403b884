"""Texts with the text that is to be written for them, and the formats of parallel texts.

lines      a file for each language, line by line: train.en and train.de; the names of the two languages are
           `text_column` and `label_column`, or the one file is given and there is one other beside it
tsv, csv   the columns that the caller names, or "source" and "target"; without a header, the first column is
           the source and the second the target
jsonl      one object per line with the same keys
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

from elmokit.base import shown, text_ending
from elmokit.errors import DataError
from elmokit.tasks.core import (
    Columns,
    Formats,
    Headings,
    LabelledRow,
    Tokenize,
    json_objects,
    numbered_lines,
    read_csv,
    read_tsv,
)
from elmokit.text import csv_rows, tsv_rows

HEADINGS = Headings(texts=(("source",), ("text",)), labels=("target",))


@dataclass(frozen=True)
class TextPair:
    """Source texts, and the text that is to be written for them.

    Attributes:
        texts: the tokens of each source text: one to translate, or the turns of a dialogue in order.
        target: the text to write, with single blanks.
        where: for messages.
    """

    texts: tuple[tuple[str, ...], ...]
    target: str
    where: str = field(default="", repr=False, compare=False)

    def last(self, count: int) -> "TextPair":
        """Return the pair with the last texts of the source alone."""
        return replace(self, texts=self.texts[-count:])


def read_pair(where: str, source: str, target: str, tokenize: Tokenize) -> TextPair:
    """Make a pair of two strings.

    Raises:
        DataError: one of them is empty.
    """
    for name, text in (("source", source), ("target", target)):
        if not text.strip():
            raise DataError(f"{where}: the {name} is empty, expected a text; remove the line, or complete it")
    return TextPair((tuple(tokenize(source)),), " ".join(target.split()), where)


def _read_lines(path: Path, tokenize: Tokenize, columns: Columns) -> Iterator[TextPair]:
    source, target = _two_files(path, columns)
    for first, second in zip_longest(numbered_lines(source), numbered_lines(target)):
        if first is None or second is None:
            where, longer, shorter = (
                (second[0], target, source) if first is None else (first[0], source, target)
            )
            raise DataError(
                f"{where}: {shorter.name} has no such line; {longer.name} and {shorter.name} must have the "
                "same number of lines, each the translation of the other"
            )
        try:
            yield read_pair(first[0], first[1], second[1], tokenize)
        except DataError as error:
            raise DataError(f"{error} (in both {source.name} and {target.name})") from None


def _two_files(path: Path, columns: Columns) -> tuple[Path, Path]:
    """Return the files of the two languages, of which `path` is one.

    Raises:
        DataError: the other cannot be told, or is not there.
    """
    stem = _without_language(path)
    files = (one for one in sorted(path.parent.iterdir()) if _without_language(one) == stem)
    beside = {language_of(one): one for one in files}
    source = columns.text or (language_of(path) if columns.label != language_of(path) else None)
    others = [language for language in beside if language != (source or columns.label)]
    target = columns.label or (others[0] if len(others) == 1 else None)
    source = source or (others[0] if len(others) == 1 else None)
    if source is None or target is None or source == target or not {source, target} <= beside.keys():
        raise DataError(
            f"{path}: which files are source and target? Found {stem} in {', '.join(beside)}; pass their "
            "endings as text_column and label_column, such as en and de"
        )
    return beside[source], beside[target]


def language_of(path: Path) -> str:
    """Return the ending of a file's name, without that of its packing.

    >>> language_of(Path("train.en.xz"))
    'en'
    """
    return text_ending(path).removeprefix(".")


def _without_language(path: Path) -> str:
    name = path.name.lower()
    return name[: name.rfind(text_ending(path) or ".")]


def _read_table(
    cells: Callable[..., Iterable[tuple[str, list[str]]]],
    rows: Callable[[Path, Columns, Headings], Iterator[LabelledRow]],
    path: Path,
    tokenize: Tokenize,
    columns: Columns,
) -> Iterator[TextPair]:
    if columns == Columns():
        first = next(iter(cells(path, whole=True)), ("", []))[1]
        if not {"source", "text"} & {cell.strip().lower() for cell in first}:
            columns = Columns("1", "2")  # and no header
    for where, (source,), target in rows(path, columns, HEADINGS):
        yield read_pair(where, source, target, tokenize)


def _read_jsonl(path: Path, tokenize: Tokenize, columns: Columns) -> Iterator[TextPair]:
    keys = columns.text or "source", columns.label or "target"
    for where, data in json_objects(path):
        source, target = (data.get(key) for key in keys)
        if not isinstance(source, str) or not isinstance(target, str):
            raise DataError(
                f'{where}: expected an object with texts under "{keys[0]}" and "{keys[1]}", found '
                f"{shown(data)}; name other keys with text_column and label_column"
            )
        yield read_pair(where, source, target, tokenize)


FORMATS = Formats[TextPair](
    {
        "lines": _read_lines,
        "tsv": partial(_read_table, tsv_rows, read_tsv),
        "csv": partial(_read_table, csv_rows, read_csv),
        "jsonl": _read_jsonl,
    },
    {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl"},
    with_columns=frozenset(("lines", "tsv", "csv", "jsonl")),
    otherwise="lines",
)
