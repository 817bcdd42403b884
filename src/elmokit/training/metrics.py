"""What is measured during training: a line of JSON each, and TensorBoard where it is installed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elmokit.errors import DataError


class Metrics:
    """`metrics.jsonl` of a run.

    Args:
        folder: of the run.
        resume_at: forget what was measured after this step, because it will be measured again.
    """

    def __init__(self, folder: Path, resume_at: int) -> None:
        self._folder = folder
        self._open(resume_at)

    def _open(self, resume_at: int) -> None:
        path = self._folder / "metrics.jsonl"
        kept = [record for record in read_metrics(self._folder) if record["step"] <= resume_at]
        aside = path.with_suffix(".part")
        with self._write_errors():
            aside.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")
            aside.replace(path)
            self._file = path.open("a", encoding="utf-8")
        self._board = _tensorboard(self._folder / "tensorboard", resume_at)

    def rewind(self, step: int) -> None:
        """Forget what was measured after this step, because training goes on from there."""
        self.close()
        self._open(step)

    def write(self, record: dict[str, Any]) -> None:
        """Add a record, which has its `step`."""
        with self._write_errors():
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
        if self._board is not None:
            for name, value in _numbers(record):
                self._board.add_scalar(name, value, record["step"])

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(
                f"{self._folder}/metrics.jsonl cannot be written ({error}); make room and go on with "
                "--resume: the last checkpoint is whole"
            ) from error

    def close(self) -> None:
        """Finish writing."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The records of a run; a last line that was cut short by a crash is left out."""
    path = folder / "metrics.jsonl"
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[
        :-1
    ]  # what stands after the last line end is cut short
    return [json.loads(line) for line in lines]


def _tensorboard(folder: Path, resume_at: int) -> Any:  # noqa: ANN401  (its writer, where there is one)
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=resume_at + 1)


def _numbers(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and name != "step":
            yield f"{prefix}{name}", value
