"""The spool: where rows wait, safe from a killed process, until the whole file can be packed.

Beside `OUT` stands the folder `OUT.part/`:

* `job.json`: the settings of the job;
* `000000.jsonl` and `000000.vectors`, `000001.…`: finished parts, a JSON line of text, tokens and offsets
  for each row, and the rows' numbers one after another in the file's dtype;
* `open.jsonl`, `open.vectors`: the part being written. It counts only once it is renamed, the `.jsonl` last;
* `open.packed`: the file being packed at the end, which is then renamed to `OUT`.
"""

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from elmokit.errors import ConfigError, DataError
from elmokit.vectors.rows import Layout, Row
from elmokit.vectors.writers import check_ending, write_vectors

PART_BYTES = 32 << 20
PART_SECONDS = 10.0
_FORMAT_VERSION = 1


class Spool:
    """Rows on their way into `target`.

    Use it as a context: leaving it, by an error or Ctrl-C too, finishes the open part. Even a `kill -9` costs
    no more than the open part (32 MB or 10 seconds of work).

    Args:
        target: The file to be made; its ending decides the format.
        layout: Shape and type of the rows' vectors.
        settings: All that decides the content besides the text. A job goes on only under the same settings.
        resume: Go on with a spool that is there.
        overwrite: Throw a spool or target that is there away.

    Raises:
        ConfigError: The ending names no format, or both `resume` and `overwrite` are set.
        DataError: Something stands in the way of `target`, or the settings are not those of the spool.

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
        self.num_rows = 0
        self._ending = check_ending(target)
        self._layout = layout
        self._open: tuple[BinaryIO, BinaryIO] | None = None  # the JSON lines and the vectors
        self._open_bytes = [0, 0]  # of whole rows in each
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
                self._start_job(job)
            self._num_parts = len(self._parts())
        self.num_rows = sum(1 for _ in self.texts())

    @staticmethod
    def folder_of(target: Path) -> Path:
        """Return the folder of the spool for `target`."""
        return target.with_name(f"{target.name}.part")

    def texts(self) -> Iterator[str]:
        """Give the text of each row of the finished parts, in order."""
        for part in self._parts():
            with part.open("rb") as lines:
                for line in lines:
                    yield self._read(line)["text"]

    def rows(self) -> Iterator[Row]:
        """Give the rows of the finished parts, in order."""
        for part in self._parts():
            with part.open("rb") as lines, part.with_suffix(".vectors").open("rb") as vectors:
                for line in lines:
                    row = self._read(line)
                    count = self._layout.num_values(len(row["tokens"]))
                    values = np.fromfile(vectors, np.dtype(self._layout.dtype), count)
                    if values.size < count:
                        raise self._damaged(f"{vectors.name} is shorter than its index says")
                    row["offsets"] = [(start, end) for start, end in row["offsets"]]
                    yield Row(**row, vectors=values.reshape(self._layout.shape))

    def add(self, row: Row) -> None:
        """Add the next row.

        Raises:
            DataError: A number is too large for float16, or the disk takes no more.
        """
        with np.errstate(over="raise"):
            try:
                values = row.vectors.astype(self._layout.dtype)
            except FloatingPointError:
                raise DataError(
                    f"sentence {self.num_rows} ({row.text[:40]!r}) has a number of size "
                    f"{np.abs(row.vectors).max():g}, float16 ends at 65504; "
                    "begin anew with dtype float32 (--dtype float32 --overwrite)"
                ) from None
        index = {"text": row.text, "tokens": row.tokens, "offsets": row.offsets}
        data = (json.dumps(index).encode() + b"\n", values.tobytes())
        with self._write_errors():
            if self._open is None:
                self._open = (self._path("open.jsonl").open("wb"), self._path("open.vectors").open("wb"))
                self._began = time.monotonic()
            for file, block in zip(self._open, data, strict=True):
                file.write(block)
            self._open_bytes = [size + len(block) for size, block in zip(self._open_bytes, data, strict=True)]
            self.num_rows += 1
            if sum(self._open_bytes) >= PART_BYTES or time.monotonic() - self._began >= PART_SECONDS:
                self._finish_part()

    def pack(self) -> None:
        """Write all rows to the target and delete the spool."""
        packed = self._path("open.packed")
        with self._write_errors():
            self._finish_part()
            try:
                write_vectors(packed, self.rows(), self._layout, ending=self._ending, count=self.num_rows)
                _sync(packed)
                packed.replace(self.target)
            finally:
                packed.unlink(missing_ok=True)  # half a file is of no use and takes room
            _delete_spool(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a full disk the open part cannot be finished either; it is dropped, the finished ones stay.
        with contextlib.suppress(OSError):
            self._finish_part()
            if self.num_rows == 0:  # nothing to resume, so nothing to stand in the way of the next run
                _delete_spool(self.folder)

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _parts(self) -> list[Path]:
        parts = sorted(self.folder.glob("[0-9]*.jsonl"))
        expected = [f"{number:06d}.jsonl" for number in range(len(parts))]
        if [part.name for part in parts] != expected:
            raise DataError(
                f"{self.folder} has lost some of its parts; begin anew with overwrite=True (--overwrite)"
            )
        return parts

    def _finish_part(self) -> None:
        if self._open is None:
            return
        files, self._open = self._open, None
        sizes, self._open_bytes = self._open_bytes, [0, 0]
        with files[0], files[1]:
            for file, size in zip(files, sizes, strict=True):
                file.truncate(size)  # Ctrl-C may have come in the midst of a row
                file.flush()
                os.fsync(file.fileno())
        # The index comes last: a part is there once its index is.
        for ending in ("vectors", "jsonl"):
            self._path(f"open.{ending}").replace(self._path(f"{self._num_parts:06d}.{ending}"))
        self._num_parts += 1

    def _start_job(self, job: Mapping[str, Any]) -> None:
        self.folder.mkdir()
        draft = self._path("open.json")
        draft.write_text(json.dumps(job, indent=2), encoding="utf-8")
        _sync(draft)
        draft.replace(self._path("job.json"))

    def _check_job(self, job: Mapping[str, Any]) -> None:
        before = self._read(self._path("job.json").read_bytes())
        now = json.loads(json.dumps(job))
        differ = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        if differ:
            told = "; ".join(f"{key} was {before.get(key)}, is now {now.get(key)}" for key in differ)
            raise DataError(
                f"{self.folder} was begun with other settings: {told}. "
                "Use the same settings, or begin anew with overwrite=True (--overwrite)"
            )

    def _read(self, content: bytes) -> dict[str, Any]:
        """A JSON object of ours."""
        try:
            found = json.loads(content)
        except ValueError as error:
            raise self._damaged(f"{self.folder} holds what is no JSON ({error})") from error
        if not isinstance(found, dict):
            raise self._damaged(f"{self.folder} holds what is no JSON object")
        return found

    def _damaged(self, what: str) -> DataError:
        return DataError(f"{what}; the spool is damaged: begin anew with overwrite=True (--overwrite)")

    @contextlib.contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Turn what the file system refuses into one clear error."""
        try:
            yield
        except OSError as error:
            kept = f"what is done so far is kept in {self.folder}: run again with resume=True (--resume)"
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                todo = f"free some room (packing needs as much again as the spool takes); {kept}"
            elif self.folder.exists():
                todo = kept
            else:
                todo = "choose a folder you may write to"
            reason = error.strerror or error
            raise DataError(f"cannot write {self.target}: {reason}; {todo}") from error


def _check_target(target: Path, folder: Path, *, resume: bool, overwrite: bool) -> None:
    if resume and overwrite:
        raise ConfigError(
            "resume goes on with what is there, overwrite throws it away; choose one of the two"
        )
    if target.is_dir():
        raise DataError(f"{target} is a folder; name a file in it")
    if folder.exists() and not folder.is_dir():
        raise DataError(
            f"{folder} stands in the way and is no folder of elmokit; move it, or choose another name"
        )
    if not target.parent.is_dir():
        raise DataError(f"the folder {target.parent} does not exist; make it first")
    if resume or overwrite:
        return
    if folder.exists():
        raise DataError(
            f"{folder} holds an interrupted run; go on with it by resume=True (--resume), "
            "or begin anew with overwrite=True (--overwrite)"
        )
    if target.exists():
        raise DataError(f"{target} is there already; choose another name, or overwrite=True (--overwrite)")


def _delete_spool(folder: Path) -> None:
    """Delete our own files only: `rmdir` refuses a folder that holds anything else."""
    if not folder.exists():
        return
    # job.json last: as long as there is a part it tells what the folder is.
    for path in sorted(folder.iterdir(), key=lambda path: path.name == "job.json"):
        if path.suffix in (".json", ".jsonl", ".vectors", ".packed"):
            path.unlink()
    folder.rmdir()


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
