"""The spool: a folder that keeps rows safe from a killed process until the whole file can be written.

The folder `OUT.part/` beside the target `OUT` holds:

* `job.json`: the settings of the job;
* `000000.jsonl` and `000000.vectors`, `000001.…`: finished parts. The `.jsonl` has a line with text, tokens
  and offsets for each row, the `.vectors` the numbers of all rows in the file's dtype. A part exists once
  its `.jsonl` does;
* `open.jsonl`, `open.vectors`, `open.packed`: the drafts of a part and of `OUT`.
"""

import contextlib
import errno
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from elmokit.base import draft_file, plain_reason, setting_changes, write_json
from elmokit.errors import ConfigError, DataError
from elmokit.vectors.rows import Layout, Row
from elmokit.vectors.writers import check_ending, write_vectors

PART_BYTES = 32 << 20
PART_SECONDS = 10.0
_FORMAT_VERSION = 1
_SUFFIXES = (".json", ".jsonl", ".vectors", ".packed", ".draft")


class Spool:
    """Rows on their way into `target`.

    Use it as a context manager: leaving it, also by an error or Ctrl-C, finishes the open part. `kill -9`
    loses no more than the open part, which is in memory (32 MB or 10 seconds of work).

    Args:
        target: The file to write; its ending decides the format.
        layout: Shape and type of the rows' vectors.
        settings: Everything that decides the content besides the text. A job is resumed only with the same
            settings.
        resume: Continue an existing spool.
        overwrite: Delete an existing spool, and replace an existing target.

    Raises:
        ConfigError: The ending names no format, or both `resume` and `overwrite` are set.
        DataError: Something is in the way of `target`, or the settings are not those of the spool.

    Attributes:
        num_rows: Rows in the spool.
    """

    def __init__(
        self,
        target: Path,
        layout: Layout,
        settings: Mapping[str, Any],
        *,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.target = target
        self.folder = self.folder_of(target)
        self._ending = check_ending(target)
        self._layout = layout
        self._open: list[tuple[bytes, bytes]] = []  # a JSON line and the numbers of each row
        self._open_bytes = 0
        self._began = 0.0
        _check_target(target, self.folder, resume=resume, overwrite=overwrite)
        job = {
            "format_version": _FORMAT_VERSION,
            "shape": list(layout.shape),
            "dtype": layout.dtype,
            **settings,
        }
        with self._write_errors():
            if resume and (self.folder / "job.json").exists():
                self._check_job(job)
            else:
                _delete_spool(self.folder)
                self.folder.mkdir()
                write_json(self.folder / "job.json", job)
            self._num_parts = len(self._parts())
        self.num_rows = sum(1 for _ in self.texts())

    @staticmethod
    def folder_of(target: Path) -> Path:
        """Return the folder of the spool for `target`."""
        return target.with_name(f"{target.name}.part")

    def texts(self) -> Iterator[str]:
        """Yield the text of each row of the finished parts, in order."""
        for part in self._parts():
            with part.open("rb") as lines:
                for line in lines:
                    yield self._read(line)["text"]

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the finished parts, in order."""
        for part in self._parts():
            with part.open("rb") as lines, part.with_suffix(".vectors").open("rb") as vectors:
                for line in lines:
                    row = self._read(line)
                    count = self._layout.num_values(len(row["tokens"]))
                    values = np.fromfile(vectors, np.dtype(self._layout.dtype), count)
                    if values.size < count:
                        raise _damaged(f"{vectors.name} is shorter than its index says")
                    row["offsets"] = [(start, end) for start, end in row["offsets"]]
                    yield Row(**row, vectors=values.reshape(self._layout.shape))

    def add(self, row: Row) -> None:
        """Add the next row.

        Raises:
            DataError: A number is too large for float16, or the disk is full.
        """
        with np.errstate(over="raise"):
            try:
                values = row.vectors.astype(self._layout.dtype).tobytes()
            except FloatingPointError:
                raise DataError(
                    f"sentence {self.num_rows} ({row.text[:40]!r}) has a number of size "
                    f"{np.abs(row.vectors).max():g}, float16 ends at 65504; "
                    "start again with dtype='float32' and overwrite=True"
                ) from None
        line = json.dumps({"text": row.text, "tokens": row.tokens, "offsets": row.offsets}).encode() + b"\n"
        if not self._open:
            self._began = time.monotonic()
        self._open.append((line, values))
        self._open_bytes += len(line) + len(values)
        self.num_rows += 1
        if self._open_bytes >= PART_BYTES or time.monotonic() - self._began >= PART_SECONDS:
            with self._write_errors():
                self._finish_part()

    def pack(self) -> None:
        """Write all rows to the target and delete the spool."""
        with self._write_errors():
            self._finish_part()
            with draft_file(self.target, draft=self.folder / "open.packed") as packed:
                write_vectors(packed, self.rows(), self._layout, ending=self._ending, count=self.num_rows)
            _delete_spool(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # On a full disk the open part cannot be written; the finished ones stay.
        with contextlib.suppress(OSError):
            self._finish_part()
            if self.num_rows == 0:  # there is nothing to resume
                _delete_spool(self.folder)

    def _parts(self) -> list[Path]:
        parts = sorted(self.folder.glob("[0-9]*.jsonl"))
        if [part.name for part in parts] != [f"{number:06d}.jsonl" for number in range(len(parts))]:
            raise _damaged(f"{self.folder} has lost some of its parts")
        return parts

    def _finish_part(self) -> None:
        if not self._open:
            return
        lines, vectors = zip(*self._open, strict=True)
        # The index comes last: with it the part is complete.
        for ending, blocks in (("vectors", vectors), ("jsonl", lines)):
            path = self.folder / f"{self._num_parts:06d}.{ending}"
            with draft_file(path, draft=self.folder / f"open.{ending}") as draft, draft.open("wb") as file:
                file.writelines(blocks)
        # If Ctrl-C came before this line, leaving the spool writes the same part again.
        self._open, self._open_bytes, self._num_parts = [], 0, self._num_parts + 1

    def _check_job(self, job: Mapping[str, Any]) -> None:
        before = self._read((self.folder / "job.json").read_bytes())
        if changes := setting_changes(before, json.loads(json.dumps(job))):
            raise DataError(
                f"{self.folder} was started with other settings: {'; '.join(changes)}. "
                "Use the same settings, or start again with overwrite=True"
            )

    def _read(self, content: bytes) -> dict[str, Any]:
        """Parse a JSON object of the spool."""
        try:
            found = json.loads(content)
        except ValueError as error:
            raise _damaged(f"{self.folder} has a file that is not JSON ({error})") from error
        if not isinstance(found, dict):
            raise _damaged(f"{self.folder} has a file that is not a JSON object")
        return found

    @contextlib.contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Turn an error of the file system into a DataError that says what to do."""
        try:
            yield
        except OSError as error:
            kept = f"what is done so far is kept in {self.folder}: run again with resume=True"
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                todo = f"free some space (packing needs as much again as the spool takes); {kept}"
            elif self.folder.exists():
                todo = kept
            else:
                todo = "choose a folder you may write to"
            raise DataError(f"cannot write {self.target}: {plain_reason(error)}; {todo}") from error


def _check_target(target: Path, folder: Path, *, resume: bool, overwrite: bool) -> None:
    if resume and overwrite:
        raise ConfigError("resume=True and overwrite=True contradict each other; choose one of the two")
    if target.is_dir():
        raise DataError(f"{target} is a folder; name a file in it")
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is in the way and is not a folder; move it, or choose another name")
    if not target.parent.is_dir():
        raise DataError(f"the folder {target.parent} does not exist; make it first")
    if resume or overwrite:
        return
    if folder.exists():
        raise DataError(
            f"{folder} holds an interrupted run; continue it with resume=True, "
            "or start again with overwrite=True"
        )
    if target.exists():
        raise DataError(f"{target} exists already; choose another name, or overwrite=True")


def _delete_spool(folder: Path) -> None:
    """Delete only the spool's own files: `rmdir` refuses a folder that holds anything else."""
    if not folder.exists():
        return
    # job.json last: as long as there is a part, it says what the folder is.
    for path in sorted(folder.iterdir(), key=lambda path: path.name == "job.json"):
        if path.suffix in _SUFFIXES:
            path.unlink()
    folder.rmdir()


def _damaged(what: str) -> DataError:
    return DataError(f"{what}; the spool is damaged: start again with overwrite=True")
