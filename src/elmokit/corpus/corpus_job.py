"""The record of settings and files, so that a preparation is resumed only with the same ones."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from elmokit.base import parse_json, setting_changes
from elmokit.corpus.corpus_settings import PrepareSettings
from elmokit.corpus.sources import describe_file, find_files
from elmokit.errors import DataError

JOB = "job.json"


def describe_job(files: Sequence[Path], heldout: Sequence[Path], settings: PrepareSettings) -> dict[str, Any]:
    """Return everything that determines the result.

    Raises:
        DataError: A file is both training and held-out text, or cannot be read.
    """
    both = {file.resolve() for file in files} & {file.resolve() for file in heldout}
    if both:
        raise DataError(
            f"{min(both)} is both training and held-out text, which would make perplexities too good; "
            "leave it out of one of them"
        )
    given = [] if settings.vocabulary is None else find_files([settings.vocabulary])
    return {
        "settings": asdict(settings),
        "sources": [describe_file(file) for file in files],
        "heldout": [describe_file(file) for file in heldout],
        "vocabulary": [describe_file(file) for file in given],
    }


def comparable(job: dict[str, Any]) -> dict[str, Any]:
    """Return the settings and files of a job; files are compared by content, not by path."""
    values = {key: value for key, value in job["settings"].items() if key not in ("heldout", "vocabulary")}
    for key in ("sources", "heldout", "vocabulary"):
        values[key] = [f"{file['bytes']} bytes, digest {file['digest']}" for file in job[key]]
    return values


def check_job(before: dict[str, Any], now: dict[str, Any], folder: Path, done: str) -> None:
    """Raise a DataError that names the differences between two jobs, if there are any."""
    changes = setting_changes(comparable(before), comparable(now))
    if changes:
        raise DataError(
            f"{folder} was {done} with other settings or files: {'; '.join(changes)}. "
            f"Use the same, choose another folder, or delete {folder}"
        )


def is_begun(out: Path, part: Path, job: dict[str, Any]) -> bool:
    """Return whether `part` holds the beginning of this job.

    Raises:
        DataError: `out` or `part` holds something else.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out} exists and is not a prepared corpus; choose another folder")
    if (part / JOB).exists():
        try:
            before = parse_json((part / JOB).read_bytes())
            comparable(before)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{part / JOB} is damaged ({error}); delete {part} and start again") from error
        check_job(before, job, part, "begun")
        return True
    if part.exists() and (not part.is_dir() or any(part.iterdir())):
        raise DataError(f"{part} exists and was not made by elmokit; move it, or choose another folder")
    return False
