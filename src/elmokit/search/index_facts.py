"""What an index is, as plain data."""

from pathlib import Path
from typing import Any

from elmokit.search.manifest import Manifest


def describe_index(folder: Path) -> dict[str, Any]:
    """Return the documents, size and settings of an index; `unfinished` if a writer was stopped.

    Raises:
        DataError: There is no index, or it is damaged.
    """
    manifest = Manifest.read(folder)
    segments = [manifest.open(folder, entry) for entry in manifest.entries]
    documents = sum(segment.num_live for segment in segments)
    named = {entry.name for entry in manifest.entries}
    return {
        "documents": documents,
        "deleted": sum(len(segment.ids) for segment in segments) - documents,
        "segments": len(segments),
        "megabytes": round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1),
        "unfinished": any(path.name not in named for path in folder.glob("segment-*")),
        "settings": manifest.settings,
    }
