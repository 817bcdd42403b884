"""Labelled files: which format a file has, and helpers for the readers of the tasks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Generic, TypeVar

from elmokit.base import packed_or_plain, shown, text_ending
from elmokit.errors import ConfigError, DataError
from elmokit.text import TokenizerSpec, make_tokenizer, make_word_tokenizer, read_json_lines, read_lines

ExampleT = TypeVar("ExampleT")
Tokenize = Callable[[str], Sequence[Any]]  # a string to its tokens: strings, or `Token`s with their places


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table, or keys of JSON lines, that hold the text and the label.

    A number counts the columns of a table without a header, from 1. None leaves it to the format. Where an
    example has several texts, their names have commas between them.
    """

    text: str | None = None
    label: str | None = None

    def texts(self, count: int) -> list[str]:
        """Return the names of the columns of so many texts, or none if they were not named.

        Raises:
            ConfigError: there are more or fewer names.
        """
        if self.text is None:
            return []
        names = [name.strip() for name in self.text.split(",")] if count > 1 else [self.text]
        if len(names) != count:
            raise ConfigError(
                f"text_column={self.text!r} names {len(names)} of {count} columns; put commas between them, "
                f"such as {','.join(f'text{number + 1}' for number in range(count))}"
            )
        return names


@dataclass(frozen=True)
class Formats(Generic[ExampleT]):
    """The formats in which a task's data may be.

    Attributes:
        readers: for each format a function from a path and a tokenizer to examples.
        endings: the format of a file name's ending; "/NAME" stands for a folder with a file NAME in it.
        with_columns: formats whose reader takes `Columns` as a third argument.
        with_offsets: whether the readers want tokens with their places in the text, or only strings.
        otherwise: the format of files with other endings; None if there is none.
    """

    readers: Mapping[str, Callable[..., Iterator[ExampleT]]]
    endings: Mapping[str, str]
    with_columns: frozenset[str] = frozenset()
    with_offsets: bool = False
    otherwise: str | None = None

    def tokenizer(self, spec: TokenizerSpec) -> Tokenize:
        """Return the tokenizer that the readers want."""
        return make_tokenizer(spec) if self.with_offsets else make_word_tokenizer(spec)

    def read(
        self,
        path: Path,
        *,
        tokenize: Tokenize,
        format: str | None = None,
        columns: Columns = Columns(),  # noqa: B008 (it cannot be changed)
    ) -> list[ExampleT]:
        """Read a labelled file (plain or compressed) or folder.

        Raises:
            ConfigError: the ending does not tell the format, there is no such format, or it has no columns
                of which some could be named.
            DataError: the file cannot be read, is empty, or a line is not labelled as it should be.
        """
        if not path.exists():
            raise DataError(f"{path} does not exist, expected labelled data; check the path")
        name = format or self.format_of(path)
        if name not in self.readers:
            raise ConfigError(f"format {name!r} is not known; expected one of {', '.join(self.readers)}")
        if columns != Columns() and name not in self.with_columns:
            raise ConfigError(
                f"{path} is read as {name}, which has no columns; leave out text_column and label_column"
            )
        more = (columns,) if name in self.with_columns else ()
        examples = list(self.readers[name](path, tokenize, *more))
        if not examples:
            raise DataError(f"{path}: found no example, expected labelled lines; is it the right file?")
        return examples

    def format_of(self, path: Path) -> str:
        """Return the format that the name of a file, or the files in a folder, stand for."""
        ending = text_ending(path)
        folder = path.is_dir()
        found = self.format_of_folder(path) if folder else self.endings.get(ending, self.otherwise)
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
    for number, line in enumerate(read_lines(path, whole=True), start=1):
        yield f"{path}, line {number}", line


def json_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place and object of each line."""
    for number, data in read_json_lines(path, whole=True):
        yield f"{path}, line {number}", data


def json_lines(
    path: Path, tokenize: Tokenize, *, text: str = "text"
) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    """Yield place, object and tokens of each line; an object has "tokens", or a `text` to tokenise."""
    for where, data in json_objects(path):
        if not ("tokens" in data or isinstance(data.get(text), str)):
            raise DataError(f'{where}: expected an object with "{text}" or "tokens", found {shown(data)}')
        tokens = string_list(data, "tokens", where) if "tokens" in data else tuple(tokenize(data[text]))
        yield where, data, tokens


def string_list(data: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Return the strings under `key`; a DataError if they are no list of strings."""
    found = data[key]
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise DataError(f'{where}: expected a list of strings as "{key}", found {shown(found)}')
    return tuple(found)


def parallel_lines(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield place and lines of files in one folder, side by side; the files may be compressed."""
    known = f"{', '.join(names[:-1])} and {names[-1]}"
    paths = []
    for name in names:
        path = packed_or_plain(folder / name)
        if path is None:
            raise DataError(f"{folder}: has no {name}, expected {known}")
        paths.append(path)
    for number, lines in enumerate(zip_longest(*(read_lines(path, whole=True) for path in paths)), start=1):
        where = f"{paths[0]}, line {number}"
        if None in lines:
            raise DataError(f"{where}: {known} do not have the same number of lines; get them again")
        yield where, lines
