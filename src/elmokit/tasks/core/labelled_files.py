"""Labelled files: which format a file has, and helpers for the readers of the tasks."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Generic, TypeVar

from elmokit.errors import ConfigError, DataError
from elmokit.text import read_lines

ExampleT = TypeVar("ExampleT")
Tokenize = Callable[[str], Sequence[str]]  # a string to its tokens

_PACKED = (".xz", ".gz", ".zst")


@dataclass(frozen=True)
class Formats(Generic[ExampleT]):
    """The formats in which a task's data may be.

    Attributes:
        readers: for each format a function from a path and a tokenizer to examples.
        endings: the format of a file name's ending; "/NAME" stands for a folder with a file NAME in it.
    """

    readers: Mapping[str, Callable[[Path, Tokenize], Iterator[ExampleT]]]
    endings: Mapping[str, str]

    def read(self, path: Path, *, tokenize: Tokenize, format: str | None = None) -> list[ExampleT]:
        """Read a labelled file (plain or compressed) or folder.

        Raises:
            ConfigError: the ending does not tell the format, or there is no such format.
            DataError: the file cannot be read, is empty, or a line is not labelled as it should be.
        """
        name = format or self.format_of(path)
        if name not in self.readers:
            raise ConfigError(f"format {name!r} is not known; expected one of {', '.join(self.readers)}")
        examples = list(self.readers[name](path, tokenize))
        if not examples:
            raise DataError(f"{path}: found no example, expected labelled lines; is it the right file?")
        return examples

    def format_of(self, path: Path) -> str:
        """Return the format that the name of a file, or the files in a folder, stand for."""
        ending = next((ending for ending in reversed(path.suffixes) if ending not in _PACKED), "")
        found = self.format_of_folder(path) if path.is_dir() else self.endings.get(ending)
        if found is None:
            raise ConfigError(
                f"{path}: the ending {ending!r} does not tell the format; pass format='NAME' with one of "
                f"{', '.join(self.readers)}"
            )
        return found

    def format_of_folder(self, path: Path) -> str | None:
        """Return the format of a folder that is an example set itself, or None."""
        marks = (ending for ending in self.endings if ending.startswith("/"))
        return next((self.endings[mark] for mark in marks if any(path.glob(f"{mark[1:]}*"))), None)


def numbered_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each line of a text file after its place, "FILE, line N"."""
    for number, line in enumerate(read_lines(path), start=1):
        yield f"{path}, line {number}", line


def json_lines(path: Path, tokenize: Tokenize) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    """Yield place, object and tokens of each line; an object has "tokens", or "text" to tokenise."""
    for where, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: is no JSON ({error}); expected one object per line") from error
        if not isinstance(data, dict) or not ("tokens" in data or isinstance(data.get("text"), str)):
            raise DataError(f'{where}: expected an object with "text" or "tokens", found {line!r:.60}')
        tokens = string_list(data, "tokens", where) if "tokens" in data else tuple(tokenize(data["text"]))
        yield where, data, tokens


def string_list(data: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Return the strings under `key`; a DataError if they are no list of strings."""
    found = data[key]
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise DataError(f'{where}: expected a list of strings as "{key}", found {found!r:.60}')
    return tuple(found)


def parallel_lines(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield place and lines of files in one folder, side by side; the files may be compressed."""
    known = f"{', '.join(names[:-1])} and {names[-1]}"
    paths = []
    for name in names:
        found = [folder / f"{name}{end}" for end in ("", *_PACKED) if (folder / f"{name}{end}").exists()]
        if not found:
            raise DataError(f"{folder}: has no {name}, expected {known}")
        paths.append(found[0])
    for number, lines in enumerate(zip_longest(*map(read_lines, paths)), start=1):
        where = f"{paths[0]}, line {number}"
        if None in lines:
            raise DataError(f"{where}: {known} do not have the same number of lines; get them again")
        yield where, lines
