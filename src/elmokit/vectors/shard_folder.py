"""A folder of Parquet files that together hold the vectors of one text, written by many machines.

* `job.json`: the settings of the job;
* `000000.parquet`, `000001.parquet`, …: finished shards, each with the columns of a Parquet file of vectors;
  its metadata has the digest of its text and the counts;
* `shards.json`: the number of rows of each shard, once all are there.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.base import check_whole_number, draft_file, parse_json, setting_changes, shown, write_json
from elmokit.errors import ConfigError, DataError
from elmokit.vectors.rows import Layout, Row, StoredSentence
from elmokit.vectors.writers import require_pyarrow

if TYPE_CHECKING:
    from elmokit.vectors.arrow import TableVectors

_FORMAT_VERSION = "shards-1"
_JOB, _WHOLE = "job.json", "shards.json"
_MOST_ROWS = 1 << 40  # of a shard: what is more cannot be a number of rows
_OWN = re.compile(r"(job|shards)\.json|\d{6,}\.parquet|\..*\.draft")


def vector_table(rows: Sequence[Row | None], layout: Layout) -> Any:  # noqa: ANN401  (pyarrow has no types)
    """Return an Arrow table of tokens, offsets and vectors, which are null where a row is None.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    require_pyarrow("an Arrow table")
    from elmokit.vectors.arrow import make_table

    return make_table(rows, layout)


def write_shard(path: Path, table: Any, metadata: Mapping[str, Any]) -> None:  # noqa: ANN401
    """Write a shard completely or not at all; two processes may write the same one at once."""
    from elmokit.vectors.arrow import write_table

    with draft_file(path) as draft:
        write_table(draft, table, metadata)


class ShardFolder:
    """The folder that a job writes, whose lock the caller holds.

    Args:
        folder: Made if it does not exist.
        settings: Everything that decides the content besides the text. A job is resumed only with the same.
        resume: Continue the job that is there.
        overwrite: Delete the job that is there.

    Raises:
        ConfigError: Both `resume` and `overwrite` are set.
        DataError: The folder holds something else, or a job with other settings.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], *, resume: bool = False, overwrite: bool = False
    ) -> None:
        self.folder = folder
        if resume and overwrite:
            raise ConfigError("resume=True and overwrite=True contradict each other; choose one of the two")
        job = json.loads(json.dumps({"format_version": _FORMAT_VERSION, **settings}))
        if folder.exists() and (not folder.is_dir() or not all(map(_is_own, folder.iterdir()))):
            raise DataError(f"{folder} is in the way: it holds other files; choose another name")
        if (folder / _JOB).exists():
            if not (resume or overwrite):
                raise DataError(
                    f"{folder} holds a job already; continue it with resume=True, or replace it with "
                    "overwrite=True"
                )
            if resume:
                self._check_job(job)
                return
            self.delete()
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / _JOB, job)

    @property
    def whole(self) -> bool:
        """Whether all shards are there."""
        return (self.folder / _WHOLE).exists()

    def path(self, number: int) -> Path:
        """Return the path of a shard."""
        return self.folder / f"{number:06d}.parquet"

    def finished(self, number: int) -> dict[str, Any] | None:
        """Return what a finished shard says of itself; None if it is not there.

        Raises:
            DataError: The file is damaged.
        """
        from elmokit.vectors.arrow import table_metadata

        path = self.path(number)
        if not path.exists():
            return None
        try:
            return table_metadata(path)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} is damaged ({error}); delete it and resume") from error

    def finish(self, rows: Sequence[int]) -> None:
        """Say that the shards, with so many rows each, are the whole job.

        Raises:
            DataError: There are more shards, of a longer text.
        """
        found = sum(1 for _ in self.folder.glob("*.parquet"))
        if found != len(rows):
            raise DataError(
                f"{self.folder} has {found} shards, the text makes {len(rows)}: it was started with another "
                "text; start again with overwrite=True"
            )
        write_json(self.folder / _WHOLE, {"format_version": _FORMAT_VERSION, "rows": list(rows)})

    def delete_if_empty(self) -> None:
        """Delete a job that has no finished shard: there is nothing to resume."""
        if self.folder.is_dir() and not any(self.folder.glob("*.parquet")) and not self.whole:
            self.delete()

    def delete(self) -> None:
        """Delete the job; what it is called goes last."""
        for path in sorted(self.folder.iterdir(), key=lambda path: (path.name == _JOB, path.name != _WHOLE)):
            path.unlink()
        self.folder.rmdir()

    def _check_job(self, job: Mapping[str, Any]) -> None:
        before = parse_json((self.folder / _JOB).read_bytes())
        if not isinstance(before, dict):
            raise DataError(f"{self.folder / _JOB} is damaged; start again with overwrite=True")
        if changes := setting_changes(before, job):
            raise DataError(
                f"{self.folder} was started with other settings: {'; '.join(changes)}. Use the same "
                "settings, or start again with overwrite=True"
            )


def _is_own(path: Path) -> bool:
    return _OWN.fullmatch(path.name) is not None


def _rows_of_shards(path: Path) -> list[int]:
    """Return how many rows each shard has.

    Raises:
        DataError: The file is damaged.
    """
    try:
        found = parse_json(path.read_bytes())["rows"]
        if not isinstance(found, list):
            raise TypeError(f"rows are {shown(found)}")
        for number in found:
            check_whole_number("the number of rows", number, least=0, most=_MOST_ROWS)
    except (ValueError, TypeError, KeyError, ConfigError) as error:
        raise DataError(f"{path} is damaged ({error}); make the vectors again") from error
    return found


class ShardedVectors:
    """The rows of all shards of a folder in order; one shard is open at a time.

    Args:
        folder: With a finished job.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not (folder / _WHOLE).exists():
            state = "an interrupted run: resume it" if (folder / _JOB).exists() else "a folder without shards"
            raise DataError(f"{folder} is {state}; vectors are read from files, or from a whole job's folder")
        self._rows = _rows_of_shards(folder / _WHOLE)
        self._starts = list(accumulate(self._rows, initial=0))
        self.num_sentences = self._starts.pop()
        self.metadata: dict[str, Any] = self._of_job()
        self._number = -1
        self._shard: TableVectors | None = None

    def _of_job(self) -> dict[str, Any]:
        """Return the settings of the job, and what the first shard says of the model."""
        from elmokit.vectors.arrow import table_metadata

        job: dict[str, Any] = parse_json((self._folder / _JOB).read_bytes())
        first = self._folder / "000000.parquet"
        shard = table_metadata(first) if first.exists() else {}
        of_model = {name: shard[name] for name in ("model", "engine", "elmokit") if name in shard}
        return {name: job[name] for name in job if name != "format_version"} | of_model

    def sentence(self, number: int) -> StoredSentence:
        """Read one row, after opening its shard if that is not the open one."""
        from elmokit.vectors.arrow import TableVectors

        shard = bisect_right(self._starts, number) - 1
        if shard != self._number or self._shard is None:
            self.close()
            path = self._folder / f"{shard:06d}.parquet"
            self._shard, self._number = TableVectors(path, parquet=True), shard
            if self._shard.num_sentences != self._rows[shard]:
                raise DataError(
                    f"{path} has {self._shard.num_sentences} rows, {_WHOLE} says {self._rows[shard]}: one of "
                    "them is damaged; make the vectors again"
                )
        return self._shard.sentence(number - self._starts[shard])

    def close(self) -> None:
        """Close the open shard."""
        if self._shard is not None:
            self._shard.close()
            self._shard = None
