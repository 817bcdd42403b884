"""The spool: a folder that keeps rows safe from a killed process until the whole file can be written.

The folder `OUT.part/` beside the target `OUT` holds:

* `job.json`: the settings of the job;
* `000000.jsonl` and `000000.vectors`, `000001.…`: finished parts. The `.jsonl` has a line with text, tokens
  and offsets for each row, the `.vectors` the numbers of all rows in the file's dtype. A part exists once
  its `.jsonl` does;
* `open.jsonl`, `open.vectors`, `open.packed`: the drafts of a part and of `OUT`;
* `packed.json`: once `OUT` is complete and the folder is being deleted.
"""

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from elmokit.base import (
    draft_file,
    draft_folder,
    parse_json,
    remove_remains,
    setting_changes,
    write_errors,
    write_json,
)
from elmokit.errors import ConfigError, DataError
from elmokit.vectors.rows import Layout, Row
from elmokit.vectors.writers import check_ending, write_vectors

PART_BYTES = 32 << 20
PART_SECONDS = 10.0
_FORMAT_VERSION = 1
TEXT_DIGEST = "text_sha256"  # what a finished file says of the text of its rows
_JOB, _PACKED = "job.json", "packed.json"
_OWN = re.compile(
    r"(job|packed)\.json|\d{6,}\.(jsonl|vectors)|open\.(jsonl|vectors|packed)|\.(job|packed)\.json\..*\.draft"
)


def texts_digest(texts: Iterable[str]) -> str:
    """Return the sha256 of texts, one a line."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


class Spool:
    """Rows on their way into `target`, whose lock the caller holds.

    Use it as a context manager: leaving it, also by an error or Ctrl-C, finishes the open part. `kill -9`
    loses no more than the open part, which is in memory (32 MB or 10 seconds of work).

    Args:
        target: The file to write; its ending decides the format.
        layout: Shape and type of the rows' vectors.
        settings: Everything that decides the content besides the text. A job is resumed only with the same
            settings.
        metadata: What else the target is to say of itself.
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
        metadata: Mapping[str, Any] | None = None,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self._metadata = {**settings, **(metadata or {}), "dtype": layout.dtype}
        self.target = target
        self.folder = self.folder_of(target)
        self._ending = check_ending(target)
        self._layout = layout
        self._open: list[tuple[bytes, bytes]] = []  # a JSON line and the numbers of each row
        self._open_bytes = 0
        self._began = 0.0
        check_target(target)
        _check_way(target, self.folder, resume=resume, overwrite=overwrite)
        job = {
            "format_version": _FORMAT_VERSION,
            "shape": list(layout.shape),
            "dtype": layout.dtype,
            **settings,
        }
        with self._write_errors():
            remove_remains(self.folder)
            if resume and (self.folder / _JOB).exists():
                self._check_job(job)
            else:
                _delete_spool(self.folder)
                with draft_folder(self.folder) as draft:
                    write_json(draft / _JOB, job)
            self._num_parts = len(self._parts())
        self.num_rows = sum(1 for _ in self.texts())

    @staticmethod
    def folder_of(target: Path) -> Path:
        """Return the folder of the spool for `target`."""
        return target.with_name(f"{target.name}.part")

    @classmethod
    def is_finished(cls, target: Path) -> bool:
        """Return whether a run has written `target` completely; delete what it left if it was killed then."""
        folder = cls.folder_of(target)
        remains = folder.is_dir() and ((folder / _PACKED).exists() or not any(folder.iterdir()))
        if target.exists() and remains:
            with write_errors(folder):
                _delete_spool(folder)
        return target.exists() and not folder.exists()

    def texts(self) -> Iterator[str]:
        """Return the text of each row of the finished parts, in order."""
        return (row["text"] for row in self._lines())

    def num_uses(self) -> int:
        """Return how many tokens, or uses, the rows of the finished parts have together."""
        return sum(len(row["tokens"]) for row in self._lines())

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the finished parts, in order."""
        for part in self._parts():
            with part.open("rb") as lines, part.with_suffix(".vectors").open("rb") as vectors:
                for line in lines:
                    row = self._read_row(line)
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
                    f"line {self.num_rows + 1} ({row.text[:40]!r}) has a number of size "
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
                write_vectors(
                    packed,
                    self.rows(),
                    self._layout,
                    ending=self._ending,
                    count=self.num_uses() if self._layout.uses else self.num_rows,
                    metadata={**self._metadata, TEXT_DIGEST: texts_digest(self.texts())},
                )
            write_json(self.folder / _PACKED, {})
            _delete_spool(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # On a full disk the open part cannot be written; the finished ones stay.
        with contextlib.suppress(OSError):
            self._finish_part()
            if self.num_rows == 0:  # there is nothing to resume
                _delete_spool(self.folder)

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Yield what is known of each row of the finished parts, without its vectors."""
        for part in self._parts():
            with part.open("rb") as lines:
                yield from map(self._read_row, lines)

    def _parts(self) -> list[Path]:
        parts = sorted(self.folder.glob("[0-9]*.jsonl"))
        in_order = [part.name for part in parts] == [f"{number:06d}.jsonl" for number in range(len(parts))]
        if not in_order or not all(part.with_suffix(".vectors").is_file() for part in parts):
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
        before = self._read((self.folder / _JOB).read_bytes())
        if changes := setting_changes(before, json.loads(json.dumps(job))):
            todo = "Use the same settings"
            if len(changes) == 1 and changes[0].startswith("engine "):
                todo = (
                    "Engines round differently: set the environment variable "
                    f"ELMOKIT_KERNEL={before['engine']}, accept it with any_engine=True"
                )
            raise DataError(
                f"{self.folder} was started with other settings: {'; '.join(changes)}. "
                f"{todo}, or start again with overwrite=True"
            )

    def _read(self, content: bytes) -> dict[str, Any]:
        """Parse a JSON object of the spool."""
        try:
            found = parse_json(content)
        except ValueError as error:
            raise _damaged(f"{self.folder} has a file that is not JSON ({error})") from error
        if not isinstance(found, dict):
            raise _damaged(f"{self.folder} has a file that is not a JSON object")
        return found

    def _read_row(self, line: bytes) -> dict[str, Any]:
        """Parse the line of a row."""
        row = self._read(line)
        text, tokens, offsets = row.get("text"), row.get("tokens"), row.get("offsets")
        lists = isinstance(tokens, list) and isinstance(offsets, list)
        pairs = lists and all(isinstance(pair, list) and len(pair) == 2 for pair in row["offsets"])
        if not (isinstance(text, str) and pairs and len(row) == 3):
            raise _damaged(f"{self.folder} has a line without text, tokens and offsets")
        return row

    @property
    def advice(self) -> str:
        """What a user can do after an error or Ctrl-C."""
        if (self.folder / _JOB).exists():
            return f"what is done so far is kept in {self.folder}: run again with resume=True to continue"
        return "nothing is kept yet: start again"

    def _write_errors(self) -> contextlib.AbstractContextManager[None]:
        return write_errors(self.target, lambda: self.advice)


def check_target(target: Path) -> None:
    """Raise a DataError if no file can have this name."""
    if target.is_dir():
        raise DataError(f"{target} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise DataError(f"the folder {target.parent} does not exist; make it first")


def _check_way(target: Path, folder: Path, *, resume: bool, overwrite: bool) -> None:
    if resume and overwrite:
        raise ConfigError("resume=True and overwrite=True contradict each other; choose one of the two")
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is in the way and is not a folder; move it, or choose another name")
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
    # These two last: as long as there is a part, they say what the folder is.
    for path in sorted(folder.iterdir(), key=lambda path: (path.name in (_JOB, _PACKED), path.name)):
        if _OWN.fullmatch(path.name):
            path.unlink()
    folder.rmdir()


def _damaged(what: str) -> DataError:
    return DataError(f"{what}; the spool is damaged: start again with overwrite=True")
