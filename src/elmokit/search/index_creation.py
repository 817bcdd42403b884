"""Make an empty index, and report what was added."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from elmokit.base import counted, draft_folder
from elmokit.embed import Embedder
from elmokit.errors import ConfigError, DataError
from elmokit.search.manifest import FILE, Manifest
from elmokit.search.passage_vectors import PassageVectors
from elmokit.search.passages import PassageSettings

# Settings of an index that cannot change, and what they are called in messages.
_SETTINGS = {
    "fingerprint": "model",
    "language": "language",
    "words": "choice of word vectors",
    "passages": "size of passages",
    "precision": "precision",
}


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
        added = counted(self.added, "document")
        return f"{added} added, {self.replaced:,} replaced, {self.unchanged:,} unchanged"


def interruption(done: int, folder: Path) -> KeyboardInterrupt:
    """Return the exception of an interrupted run, which says what is kept."""
    kept = f"{counted(done, 'document')} kept in {folder}"
    return KeyboardInterrupt(f"interrupted; {kept}: index the same ones again to go on")


def index_settings(
    embedder: Embedder, language: str, *, words: bool, passages: PassageSettings
) -> dict[str, Any]:
    """Return what an index records of itself."""
    return {
        "model": embedder.path,
        "elmokit": version("elmokit"),
        "engine": embedder.engine,
        "precision": embedder.precision,
        "language": language,
        "words": words,
        "passages": asdict(passages),
        **PassageVectors(embedder).settings(),
    }


def may_replace(folder: Path) -> bool:
    """Return whether there is an index to be replaced.

    Raises:
        DataError: Something else is there.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / FILE).is_file():
        raise DataError(f"{folder} is no index, and is not replaced; choose another folder")
    return True


def create_index(folder: Path, settings: Mapping[str, Any]) -> None:
    """Make an empty index, unless there is one with these settings.

    Raises:
        ConfigError: The index there has other settings, or was built by another engine.
        DataError: Something else is there.
    """
    if not (folder / FILE).is_file():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise DataError(f"{folder} exists and is no index; choose another folder")
        with nullcontext(folder) if folder.exists() else draft_folder(folder) as place:
            Manifest(dict(settings), (), 1).write(place)
        return
    found = Manifest.read(folder).settings
    before = {
        "precision": settings["precision"],
        "engine": settings["engine"],
        **found,
    }  # older ones have neither
    different = [known for name, known in _SETTINGS.items() if before.get(name) != settings[name]]
    if different:
        raise ConfigError(
            f"{folder} is an index with another {' and '.join(different)}; choose another folder, or "
            "replace it with overwrite=True"
        )
    if before["engine"] != settings["engine"]:
        raise ConfigError(
            f"{folder} was built by the engine {before['engine']}, this is {settings['engine']}, which "
            f"rounds differently; set the environment variable ELMOKIT_KERNEL={before['engine']}, or, if "
            "that does not matter, open the index and add to it"
        )
