"""Make an empty index, and report what was added."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.base import draft_folder
from elmokit.errors import ConfigError, DataError
from elmokit.search.manifest import FILE, Manifest


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """What adding to an index did.

    Attributes:
        added: Documents that are new.
        replaced: Documents whose content has changed.
        unchanged: Documents that were there already.
    """

    added: int
    replaced: int
    unchanged: int

    def __str__(self) -> str:
        return f"{self.added:,} documents added, {self.replaced:,} replaced, {self.unchanged:,} unchanged"


def create_index(folder: Path, settings: Mapping[str, Any], *, overwrite: bool) -> None:
    """Make an empty index, unless there is one with these settings.

    Raises:
        ConfigError: The index there has other settings.
        DataError: Something else is there.
    """
    if (folder / FILE).is_file() and not overwrite:
        found = Manifest.read(folder).settings
        names = ("fingerprint", "language", "words", "passages")
        different = [name for name in names if found.get(name) != settings[name]]
        if different:
            raise ConfigError(
                f"{folder} is an index with another {' and '.join(different)}; choose another folder, or "
                "replace it with overwrite=True"
            )
        return
    if folder.exists() and not overwrite and any(folder.iterdir()):
        raise DataError(f"{folder} exists and is no index; choose another folder")
    if overwrite and folder.exists() and any(folder.iterdir()) and not (folder / FILE).is_file():
        raise DataError(f"{folder} is no index, and is not replaced; choose another folder")
    with draft_folder(folder, overwrite=overwrite) as draft:
        Manifest(dict(settings), (), 1).write(draft)
