"""The parts of a task's data: which files they are, and a dev part where there is none."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from elmokit.encoders import fingerprint_of
from elmokit.errors import DataError
from elmokit.tasks.examples import Cut, Example, Task
from elmokit.tasks.readers import read_examples

Part = Literal["train", "dev", "test"]

_NAMES: dict[Part, set[str]] = {
    "train": {"train"},
    "dev": {"dev", "development", "val", "valid", "validation"},
    "test": {"test"},
}
_SPLIT_SEED = 0  # of the data, not of the training: all runs see the same parts


@dataclass(frozen=True)
class TaskData:
    """What is learnt from, and what decides when to stop.

    Attributes:
        train: the training examples.
        dev: the others.
        set_apart: whether these were training examples, for want of a dev file.
    """

    train: list[Example]
    dev: list[Example]
    set_apart: bool = False

    def fingerprint(self) -> str:
        """A hexadecimal number that is another one when an example is."""
        parts = ((part, e.tokens, e.tags, e.labels) for part in ("train", "dev") for e in getattr(self, part))
        return fingerprint_of(repr(part).encode() for part in parts)

    def share(self, share: float) -> "TaskData":
        """The same with a part of the training examples, from an order that is drawn once for all."""
        if share >= 1:
            return self
        shuffled = self.train.copy()
        random.Random(_SPLIT_SEED).shuffle(shuffled)
        return replace(self, train=shuffled[: max(1, round(share * len(shuffled)))])


def read_data(
    source: str | Path,
    task: Task,
    *,
    cut: Cut,
    dev: str | Path | None = None,
    format: str | None = None,
    dev_share: float = 0.1,
) -> TaskData:
    """Read the data of a task.

    Args:
        source: a folder with files (or folders) named train and dev, whatever else their names say; or the
            training file.
        task: what the labels are for.
        cut: cuts running text into tokens.
        dev: the dev file, instead of the folder's.
        format: see `readers`.
        dev_share: where there is no dev file, this share of the training examples, drawn once for all.

    Raises:
        DataError: a part is missing, or cannot be read.
    """
    path = Path(source)
    is_folder = path.is_dir() and not any(path.glob("seq.in*"))
    train_path = find_part(path, "train") if is_folder else path
    if train_path is None:
        names = ", ".join(sorted(entry.name for entry in path.iterdir())) or "nothing"
        raise DataError(f"{path}: has no file named train, found {names:.100}; pass the file itself")
    train = read_examples(train_path, task, cut=cut, format=format)
    dev_path = Path(dev) if dev is not None else find_part(path, "dev") if is_folder else None
    if dev_path is not None:
        return TaskData(train, read_examples(dev_path, task, cut=cut, format=format))
    random.Random(_SPLIT_SEED).shuffle(train)
    count = round(dev_share * len(train))
    if not 0 < count < len(train):
        raise DataError(
            f"{path}: {len(train)} examples are too few to set some apart for dev; pass a dev file"
        )
    return TaskData(train[count:], train[:count], set_apart=True)


def find_part(folder: Path, part: Part) -> Path | None:
    """The file (or folder) with the part's name in its name, best if that is all of it; or None.

    Raises:
        DataError: there are several.
    """
    entries = sorted(entry for entry in folder.iterdir() if _NAMES[part] & _words(entry.name))
    exact = [entry for entry in entries if entry.name.partition(".")[0] in _NAMES[part]]
    found: Sequence[Path] = exact or entries
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(entry.name for entry in found)
        raise DataError(f"{folder}: {names} could all be the {part} part; pass the files themselves")
    return None


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z]+", name.lower()))
