"""The parts of a task's data: which files they are, and a dev part if there is none."""

import random
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Literal

from elmokit.encoders import fingerprint_of
from elmokit.errors import DataError
from elmokit.tasks.core.labelled_files import Columns, Formats, Tokenize
from elmokit.tasks.core.protocol import E

Part = Literal["train", "dev", "test"]

_NAMES: dict[Part, set[str]] = {
    "train": {"train"},
    "dev": {"dev", "development", "val", "valid", "validation"},
    "test": {"test"},
}
_SPLIT_SEED = 0  # of the data, not of the training: all runs see the same parts


@dataclass(frozen=True)
class TaskData(Generic[E]):
    """The examples to learn from, and those that decide when to stop.

    Attributes:
        train: the training examples.
        dev: the held-out examples.
        held_out: whether `dev` was taken from the training file, because there was no dev file.
    """

    train: list[E]
    dev: list[E]
    held_out: bool = False

    def fingerprint(self) -> str:
        """Return a hexadecimal number that changes with any example."""
        parts = ((part, example) for part in ("train", "dev") for example in getattr(self, part))
        return fingerprint_of(repr(part).encode() for part in parts)

    def share(self, share: float) -> "TaskData[E]":
        """Return the data with a share of the training examples; smaller shares are parts of larger ones."""
        if share >= 1:
            return self
        shuffled = self.train.copy()
        random.Random(_SPLIT_SEED).shuffle(shuffled)
        return replace(self, train=shuffled[: max(1, round(share * len(shuffled)))])


def read_data(
    formats: Formats[E],
    source: str | Path,
    *,
    tokenize: Tokenize,
    dev: str | Path | None = None,
    format: str | None = None,
    columns: Columns = Columns(),  # noqa: B008 (it cannot be changed)
    dev_share: float = 0.1,
) -> TaskData[E]:
    """Read the data of a task.

    Args:
        formats: of the task.
        source: a folder with files (or folders) whose names contain train and dev; or the training file.
        tokenize: for running text.
        dev: the dev file, instead of the folder's.
        format: see `Formats`.
        columns: of tables, train and dev alike.
        dev_share: without a dev file, the share of the training examples to hold out, always the same ones.

    Raises:
        DataError: a part is missing, or cannot be read.
    """
    path = Path(source)
    is_folder = path.is_dir() and formats.format_of_folder(path) is None
    train_path = find_part(path, "train", columns.text) if is_folder else path
    if train_path is None:
        names = ", ".join(sorted(entry.name for entry in path.iterdir())) or "nothing"
        raise DataError(f"{path}: has no file named train, found {names:.100}; pass the file itself")
    train = formats.read(train_path, tokenize=tokenize, format=format, columns=columns)
    dev_path = Path(dev) if dev is not None else None
    if dev is None and is_folder:
        dev_path = find_part(path, "dev", columns.text)
    if dev_path is not None:
        return TaskData(train, formats.read(dev_path, tokenize=tokenize, format=format, columns=columns))
    random.Random(_SPLIT_SEED).shuffle(train)
    count = round(dev_share * len(train))
    if not 0 < count < len(train):
        raise DataError(
            f"{path}: expected enough examples to hold some out for dev, found {len(train)}; pass a dev file"
        )
    return TaskData(train[count:], train[:count], held_out=True)


def find_part(folder: Path, part: Part, text: str | None = None) -> Path | None:
    """Return the file (or folder) with the part's name in its name, or None; an exact name is preferred.

    Args:
        folder: where to look.
        part: which part.
        text: the name of the text's column: of several files, the one with this in its name, too.

    Raises:
        DataError: there are several.
    """
    entries = sorted(entry for entry in folder.iterdir() if _NAMES[part] & _words(entry.name))
    found = [entry for entry in entries if entry.name.partition(".")[0] in _NAMES[part]] or entries
    if len(found) > 1 and text is not None:
        found = [entry for entry in found if text.lower() in _words(entry.name)] or found
    if len(found) > 1:
        names = ", ".join(entry.name for entry in found)
        raise DataError(
            f"{folder}: {names} could all be the {part} part; pass the files themselves, or, where each has "
            "a language of its own, pass those of source and target as text_column and label_column"
        )
    return found[0] if found else None


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z]+", name.lower()))
