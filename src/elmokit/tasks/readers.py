"""Labelled files: one function for each format, from numbered lines to examples.

columns    token, …, tag in columns (tabs or blanks); an empty line, or -DOCSTART-, ends a sentence
conllu     CoNLL-U; the tag is UPOS
tsv, csv   with a header that names "label" and "text", or without: label first, text last
fasttext   __label__a __label__b text
at         text@label
trec       COARSE:fine text (the coarse class; trec-fine: both)
jsonl      an object a line: "text" or "tokens"; "label", "labels" or "intent"; "tags", or "slots" by value
seq        a folder of seq.in, seq.out and label, as intents with slots are published
"""

import csv
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.examples import Cut, Example, Task
from elmokit.tasks.schemes import OUTSIDE
from elmokit.text import read_lines

logger = logging.getLogger(__name__)

Numbered = Iterable[tuple[int, str]]
Reader = Callable[[Numbered, str, Cut], Iterator[Example]]

_PACKED = (".xz", ".gz", ".zst")
_FASTTEXT = "__label__"
_SEVERAL = "|"  # between the labels of one text in a table


def read_examples(path: str | Path, task: Task, *, cut: Cut, format: str | None = None) -> list[Example]:
    """Read a labelled file, plain or compressed.

    Args:
        path: the file; the folder with seq.in, seq.out and label.
        task: what the labels are for.
        cut: cuts running text into tokens.
        format: one of `FORMATS`; by the file's ending when not given.

    Raises:
        ConfigError: the ending does not tell the format, or there is no such format.
        DataError: the file cannot be read, is empty, or a line is not labelled as it should be.
    """
    path = Path(path)
    name = format or format_of(path, task)
    if name == "seq":
        examples = list(_read_seq(path))
    elif name in FORMATS:
        numbered = enumerate(read_lines(path), start=1)
        examples = list(FORMATS[name](numbered, str(path), cut))
    else:
        raise ConfigError(f"format {name!r} is not known; expected one of {', '.join((*FORMATS, 'seq'))}")
    if not examples:
        raise DataError(f"{path}: found no example, expected labelled lines; is it the right file?")
    for example in examples:
        _check_kind(example, task)
    return examples


def format_of(path: Path, task: Task) -> str:
    """The format that a file's ending stands for.

    Raises:
        ConfigError: it stands for none.
    """
    if path.is_dir():
        return "seq"
    endings = [ending for ending in path.suffixes if ending not in _PACKED]
    ending = endings[-1] if endings else ""
    columns = ("", ".txt", ".tsv", ".conll", ".bio", ".iob", ".bmes", ".bioes")
    by_ending = {".conllu": "conllu", ".jsonl": "jsonl", ".csv": "csv"}
    if task == "tagger":
        by_ending |= dict.fromkeys(columns, "columns")
    else:
        by_ending |= {".tsv": "tsv", ".ft": "fasttext", ".fasttext": "fasttext"}
    if ending not in by_ending:
        raise ConfigError(
            f"{path}: the ending {ending!r} does not tell the format of a {task}'s data; say which: --format "
            f"{', '.join((*FORMATS, 'seq'))}"
        )
    return by_ending[ending]


def _check_kind(example: Example, task: Task) -> None:
    if task != "classifier" and len(example.tags) != len(example.tokens):
        raise DataError(
            f"{example.where}: expected a tag for each token, found {len(example.tokens)} tokens and "
            f"{len(example.tags)} tags"
        )
    if task == "intent" and len(example.labels) != 1:
        raise DataError(f"{example.where}: expected one intent, found {', '.join(example.labels) or 'none'}")


def _read_columns(lines: Numbered, name: str, cut: Cut) -> Iterator[Example]:
    yield from _sentences(lines, name, lambda fields: (fields[0], fields[-1]), least=2)


def _read_conllu(lines: Numbered, name: str, cut: Cut) -> Iterator[Example]:
    words = ((number, line) for number, line in lines if not line.startswith("#"))
    whole = (
        (number, line) for number, line in words if not line.strip() or line.partition("\t")[0].isdigit()
    )
    yield from _sentences(whole, name, lambda fields: (fields[1], fields[3]), least=10)


def _sentences(
    lines: Numbered, name: str, pick: Callable[[list[str]], tuple[str, str]], *, least: int
) -> Iterator[Example]:
    """Sentences of a token a line; `pick` takes token and tag from the line's fields."""
    tokens: list[tuple[str, str]] = []
    first = 0
    for number, line in lines:
        if not line.strip() or line.startswith("-DOCSTART-"):
            if tokens:
                yield _tagged(tokens, f"{name}, line {first}")
                tokens = []
            continue
        # At blanks alone: a token may have a no-break space in it.
        fields = line.split("\t") if "\t" in line else [field for field in line.split(" ") if field]
        if len(fields) < least or not all(pick(fields)):
            raise DataError(
                f"{name}, line {number}: expected a token and its tag in {least} columns or more, found "
                f"{line!r:.60}; label the line or remove it"
            )
        first = first if tokens else number
        tokens.append(pick(fields))
    if tokens:
        yield _tagged(tokens, f"{name}, line {first}")


def _tagged(tokens: list[tuple[str, str]], where: str) -> Example:
    return Example(tuple(token for token, _ in tokens), tuple(tag.strip() for _, tag in tokens), where=where)


def _read_tsv(lines: Numbered, name: str, cut: Cut) -> Iterator[Example]:
    yield from _table(((number, line.split("\t")) for number, line in lines if line.strip()), name, cut)


def _read_csv(lines: Numbered, name: str, cut: Cut) -> Iterator[Example]:
    yield from _table(_csv_rows((line for _, line in lines), name), name, cut)


def _csv_rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """The rows, each with the number of its first line: a field in quotes may go over several."""
    rows = csv.reader((f"{line}\n" for line in lines), strict=True)
    done = 0
    try:
        for row in rows:
            if row:
                yield done + 1, row
            done = rows.line_num
    except csv.Error as error:
        raise DataError(
            f"{name}, line {done + 1}: is no CSV ({error}); close the quotes there, and double those within"
        ) from error


def _table(rows: Iterable[tuple[int, list[str]]], name: str, cut: Cut) -> Iterator[Example]:
    label_at, text_at, width = 0, -1, 0
    for number, row in rows:
        if not width:  # the first row
            width = max(2, len(row))
            headings = [heading.strip().lower() for heading in row]
            named = [heading for heading in ("label", "text") if heading in headings]
            if len(named) == 2:
                label_at, text_at = headings.index("label"), headings.index("text")
                continue
            if named:
                raise DataError(
                    f'{name}, line {number}: a header must name "label" and "text", found {row!r:.60}; '
                    "rename its columns, or leave it out: label first, text last"
                )
        if len(row) != width:
            raise DataError(
                f"{name}, line {number}: expected a label and a text in {width} columns, found "
                f"{row!r:.60} in {len(row)}; label the line, put its text into one column, or remove it"
            )
        labels = tuple(label.strip() for label in row[label_at].split(_SEVERAL) if label.strip())
        yield Example(tuple(cut(row[text_at])), labels=labels, where=f"{name}, line {number}")


def _read_fasttext(lines: Numbered, name: str, cut: Cut) -> Iterator[Example]:
    for number, line in lines:
        words = line.split()
        count = next(
            (place for place, word in enumerate(words) if not word.startswith(_FASTTEXT)), len(words)
        )
        if not words:
            continue
        labels = tuple(word.removeprefix(_FASTTEXT) for word in words[:count])
        text = line.split(maxsplit=count)[count] if count < len(words) else ""
        yield Example(tuple(cut(text)), labels=labels, where=f"{name}, line {number}")


def _read_at(lines: Numbered, name: str, cut: Cut) -> Iterator[Example]:
    for number, line in lines:
        if line.strip():
            text, at, label = line.rpartition("@")
            if not at:
                raise DataError(f"{name}, line {number}: expected text@label, found {line!r:.60}")
            yield Example(tuple(cut(text)), labels=_given(label), where=f"{name}, line {number}")


def _read_trec(lines: Numbered, name: str, cut: Cut, *, fine: bool = False) -> Iterator[Example]:
    for number, line in lines:
        if line.strip():
            label, _, text = line.partition(" ")
            coarse, _, rest = label.partition(":")
            if not rest:
                raise DataError(
                    f"{name}, line {number}: expected COARSE:fine and a question, found {line!r:.60}"
                )
            yield Example(
                tuple(cut(text)), labels=(label if fine else coarse,), where=f"{name}, line {number}"
            )


def _read_trec_fine(lines: Numbered, name: str, cut: Cut) -> Iterator[Example]:
    return _read_trec(lines, name, cut, fine=True)


def _given(label: str) -> tuple[str, ...]:
    return (label.strip(),) if label.strip() else ()


def _read_jsonl(lines: Numbered, name: str, cut: Cut) -> Iterator[Example]:
    for number, line in lines:
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        try:
            data = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: is no JSON ({error}); expected an object a line") from error
        if not isinstance(data, dict) or not ("tokens" in data or isinstance(data.get("text"), str)):
            raise DataError(f'{where}: expected an object with "text" or "tokens", found {line!r:.60}')
        tokens = _strings(data, "tokens", where) if "tokens" in data else tuple(cut(data["text"]))
        tags = _strings(data, "tags", where) if isinstance(data.get("tags"), list) else ()
        if isinstance(data.get("slots"), dict):
            tags = tuple(_slot_tags(tokens, data["slots"], where))
        yield Example(tokens, tags, _json_labels(data, where), where)


def _strings(data: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    found = data.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise DataError(f'{where}: expected a list of strings as "{key}", found {found!r:.60}')
    return tuple(found)


def _json_labels(data: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Of "labels", "label" or "intent": one, a list, or none."""
    found: object = next(
        (data[key] for key in ("labels", "label", "intent") if data.get(key) is not None), []
    )
    labels = found if isinstance(found, list) else [found]
    if not all(isinstance(label, str | int | float) for label in labels):
        raise DataError(f"{where}: expected a label or a list of them, found {found!r:.60}")
    return tuple(str(label) for label in labels)


def _slot_tags(tokens: tuple[str, ...], slots: Mapping[str, Any], where: str) -> list[str]:
    """BIO tags of slots that are given by their values: each where its characters first stand."""
    tags = [OUTSIDE] * len(tokens)
    for slot, value in slots.items():
        wanted = "".join(str(value).split())
        for start in range(len(tokens)):
            ends = (end for end in range(start + 1, len(tokens) + 1) if "".join(tokens[start:end]) == wanted)
            end = next(ends, None)
            if end is not None and set(tags[start:end]) == {OUTSIDE}:
                tags[start:end] = [f"B-{slot}"] + [f"I-{slot}"] * (end - start - 1)
                break
        else:
            logger.warning("%s: slot %r is left out: its value %r is not in the text", where, slot, value)
    return tags


def _read_seq(folder: Path) -> Iterator[Example]:
    """The three files of an intent task side by side."""
    files = {name: _packed_file(folder, name) for name in ("seq.in", "seq.out", "label")}
    rows = zip_longest(*(read_lines(path) for path in files.values()))
    for number, (words, tags, label) in enumerate(rows, start=1):
        where = f"{files['seq.in']}, line {number}"
        if words is None or tags is None or label is None:
            raise DataError(f"{where}: seq.in, seq.out and label are not of one length; get them again")
        if words.strip():
            yield Example(tuple(words.split()), tuple(tags.split()), _given(label), where)


def _packed_file(folder: Path, name: str) -> Path:
    found = next(
        (folder / f"{name}{end}" for end in ("", *_PACKED) if (folder / f"{name}{end}").exists()), None
    )
    if found is None:
        raise DataError(f"{folder}: has no {name}, expected seq.in, seq.out and label")
    return found


FORMATS: dict[str, Reader] = {
    "columns": _read_columns,
    "conllu": _read_conllu,
    "tsv": _read_tsv,
    "csv": _read_csv,
    "fasttext": _read_fasttext,
    "at": _read_at,
    "trec": _read_trec,
    "trec-fine": _read_trec_fine,
    "jsonl": _read_jsonl,
}
