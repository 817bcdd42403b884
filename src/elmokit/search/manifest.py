"""The list of segments of an index, `index.json`: what it names belongs to the index, and nothing else.

Segments and marks of deletion are written under new names first; replacing this one file makes them count.
What a killed writer left is not named by it, and the next writer deletes it.
"""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.base import Kind, draft_file, flush_to_disk, map_array, other_kind, parse_json, write_json
from elmokit.errors import DataError
from elmokit.search.index_arrays import check_files, file_record, file_records
from elmokit.search.postings import Bools
from elmokit.search.segments import Segment

FILE = "index.json"
FORMAT, VERSION = "elmokit-index", 1
_MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class SegmentEntry:
    """A segment as the manifest names it.

    Attributes:
        name: Its folder.
        files: Size and checksum of each file in it.
        deleted: The file with the marks of deletion, and its size and checksum; empty if there is none.
    """

    name: str
    files: dict[str, Any]
    deleted: dict[str, Any]


@dataclass(frozen=True)
class Manifest:
    """Settings of the index, its segments, and the number of the next file."""

    settings: dict[str, Any]
    entries: tuple[SegmentEntry, ...]
    next_number: int

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of an index.

        Raises:
            DataError: There is no index, or the file is damaged.
        """
        path = folder / FILE
        if not path.is_file():
            found = f"has no {FILE}" if folder.exists() else "does not exist"
            reason = other_kind(folder, Kind.INDEX) or f"{folder} {found}, expected a search index"
            raise DataError(f"{reason}; check the path, or build an index first")
        try:
            if path.stat().st_size > _MOST_BYTES:
                raise ValueError("it is too large")
            data = parse_json(path.read_bytes())
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise ValueError(f"it does not say format: {FORMAT}")
            if data.get("format_version") != VERSION:
                raise DataError(
                    f"{path}: format_version is {data.get('format_version')!r:.20}, this elmokit reads "
                    f"{VERSION}; update elmokit"
                )
            entries = tuple(
                SegmentEntry(_plain_name(one["name"]), dict(one["files"]), dict(one["deleted"]))
                for one in data["segments"]
            )
            settings, number = dict(data["settings"]), int(data["next_number"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{path} is damaged ({error}); restore it from a copy, or build it again"
            ) from error
        return cls(settings, entries, number)

    def write(self, folder: Path) -> None:
        """Make this the manifest of the index, and delete what it no longer names."""
        write_json(
            folder / FILE,
            {
                "format": FORMAT,
                "format_version": VERSION,
                "settings": self.settings,
                "segments": [vars(entry) for entry in self.entries],
                "next_number": self.next_number,
            },
        )
        self.remove_others(folder)

    def remove_others(self, folder: Path) -> None:
        """Delete segments and marks of deletion that are not named: only who holds the lock may."""
        named = {name for entry in self.entries for name in (entry.name, *entry.deleted)}
        for path in folder.iterdir():
            if path.name.startswith(("segment-", "deleted-")) and path.name not in named:
                with suppress(OSError):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def open(self, folder: Path, entry: SegmentEntry) -> Segment:
        """Map a segment.

        Raises:
            DataError: One of its files is damaged.
        """
        dim, word_dim = (self.settings.get(name) for name in ("dim", "word_dim"))
        if type(dim) is not int or type(word_dim) is not int:
            raise DataError(
                f"{folder / FILE}: found dim={dim!r:.20}, word_dim={word_dim!r:.20}; build it again"
            )
        stored = word_dim if self.settings.get("words") else 0
        deleted = _read_deleted(folder, entry)
        return Segment(folder / entry.name, entry.files, deleted, dim=dim, word_dim=stored)


def _plain_name(name: object) -> str:
    if not isinstance(name, str) or Path(name).name != name or not name.startswith("segment-"):
        raise ValueError(f"{name!r:.60} is no name of a segment")
    return name


def _read_deleted(folder: Path, entry: SegmentEntry) -> Bools | None:
    if not entry.deleted:
        return None
    check_files(folder, entry.deleted, thorough=True)
    path = folder / Path(next(iter(entry.deleted))).name
    try:
        marks: Any = map_array(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); build the index again") from error
    if marks.ndim != 1 or marks.dtype != bool:
        raise DataError(f"{path} holds {marks.dtype} {marks.shape}, expected a mark for each document")
    return np.array(marks)


def write_deleted(folder: Path, number: int, marks: Bools) -> dict[str, Any]:
    """Write marks of deletion under a new name; return the record for the manifest."""
    path = folder / f"deleted-{number:06}.npy"
    with draft_file(path) as draft, draft.open("wb") as file:
        np.save(file, marks, allow_pickle=False)
    return {path.name: file_record(path)}


def entry_of(folder: Path) -> SegmentEntry:
    """Return the entry of a segment that has just been written."""
    flush_to_disk(folder)
    return SegmentEntry(folder.name, file_records(folder), {})


def mark_deleted(
    folder: Path, manifest: Manifest, segments: Sequence[Segment], names: set[str]
) -> tuple[Manifest, int]:
    """Return a manifest in which these documents are marked as deleted, and how many there were."""
    entries = list(manifest.entries)
    number, count = manifest.next_number, 0
    for position, segment in enumerate(segments):
        rows = [row for name in names if (row := segment.find(name)) is not None]
        if rows:
            marks = np.zeros(len(segment.ids), bool) if segment.deleted is None else segment.deleted.copy()
            marks[rows] = True
            record = write_deleted(folder, number, marks)
            entries[position] = SegmentEntry(entries[position].name, entries[position].files, record)
            number += 1
            count += len(rows)
    return Manifest(manifest.settings, tuple(entries), number), count
