"""What is measured during training: a JSON object per line, and TensorBoard where it is installed."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from elmokit.base import flush_to_disk, parse_json, write_errors, write_text
from elmokit.errors import DataError

METRICS = "metrics.jsonl"


class Metrics:
    """Writer of `metrics.jsonl` in the folder of a run.

    Args:
        folder: Of the run.
        step: Where training continues; records of later steps are deleted, as they will be measured again.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self._folder, self._path = folder, folder / METRICS
        self._open(step)

    def _open(self, step: int) -> None:
        kept = [record for record in read_metrics(self._folder) if record["step"] <= step]
        with self._write_errors():
            write_text(self._path, "".join(json.dumps(record) + "\n" for record in kept))
            self._file = self._path.open("a", encoding="utf-8")
        self._board = _tensorboard(self._folder / "tensorboard", step)

    def rewind(self, step: int) -> None:
        """Delete the records after a step, because training continues from there."""
        self.close()
        self._open(step)

    def write(self, record: dict[str, Any], *, flush: bool = False) -> None:
        """Append a record, which has a `step`; `flush` waits until it is on the disk."""
        with self._write_errors():
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
            if flush:
                flush_to_disk(self._path)
        if self._board is not None:
            for name, value in _numbers(record):
                self._board.add_scalar(name, value, record["step"])

    def _write_errors(self) -> AbstractContextManager[None]:
        return write_errors(self._path, "continue with resume=True: the last checkpoint is whole")

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a run; a last line that a crash left unfinished is ignored."""
    path = folder / METRICS
    if not path.exists():
        return []
    whole_lines = path.read_bytes().split(b"\n")[:-1]
    try:
        records = [parse_json(line) for line in whole_lines]
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}); delete the damaged line") from error
    return [record for record in records if isinstance(record, dict) and isinstance(record.get("step"), int)]


def _tensorboard(folder: Path, step: int) -> Any:  # noqa: ANN401  (its writer, or None)
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step + 1)


def _numbers(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and name != "step":
            yield f"{prefix}{name}", value
