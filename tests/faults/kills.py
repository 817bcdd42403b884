"""kill -9 at random moments, for the commands as users run them, each in a process of its own.

    python -m tests.faults.kills --each 20 [--only embed]

Each command is killed and continued again and again until one attempt gets through. Its result must be that
of an uninterrupted run, to the bit (embeddings in int8), and no attempt may be refused.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elmokit.formats import save_model
from elmokit.tasks import load_task
from elmokit.vectors import read_vectors
from tests.small_runs import sentences
from tests.task_data import write_labelled
from tests.tiny import tiny_bundle, wide_bundle

RECIPE = """
batch = 4
unroll = 5
negatives = 8
learning_rate = 0.01
[model]
cell_dim = 32
projection_dim = 16
[model.encoder]
filters = [[1, 8], [2, 8]]
embedding_dim = 4
max_characters = 12
"""


class Commands:
    """The commands, their arguments and how their results are read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "text.txt").write_text("\n".join(sentences(3000)) + "\n")
        (folder / "little.txt").write_text("\n".join(sentences(300)) + "\n")
        (folder / "recipe.toml").write_text(RECIPE)
        save_model(wide_bundle(), folder / "wide")
        save_model(tiny_bundle(vocabulary=True, softmax=True), folder / "tiny")
        (folder / "data").mkdir()
        for part in ("train", "dev"):
            write_labelled(folder / "data", part)

    def all(self) -> dict[str, tuple[list[str], list[str], Callable[[Path], Any]]]:
        """Return the arguments, those added to continue, and the reader of the result, by command."""
        at = self._folder
        text, tiny = str(at / "text.txt"), str(at / "tiny")
        prepared = ["--language", "en", "--lines", "--min-count", "1", "--workers", "2"]
        little, recipe = str(at / "little.txt"), str(at / "recipe.toml")
        training = ["--set", "training.epochs=10", "--set", "training.patience=10", "--set", "head.rnn=8"]
        data = str(at / "data")
        return {
            "embed": (
                ["embed", text, "-m", str(at / "wide"), "--precision", "int8", "--tokens", "--workers", "2"],
                ["--resume"],
                self._vectors,
            ),
            "prepare": (["prepare", text, *prepared], [], _bytes),
            "pretrain": (
                ["pretrain", little, *prepared, "--recipe", recipe, "--train-tokens", "4000"],
                ["--resume"],
                lambda out: [path.read_bytes() for path in sorted(out.glob("*.safetensors"))],
            ),
            "train": (
                ["train", "classifier", data, "--encoder", tiny, *training],
                ["--resume"],
                lambda out: [tensor.numpy().tobytes() for tensor in load_task(out).state_dict().values()],
            ),
            "compare": (
                ["compare", "classifier", data, "--encoders", f"chars,{tiny}", "--seeds", "1", *training],
                ["--resume"],
                _scores,
            ),
            "convert": (["convert", str(at / "wide"), "--precision", "int8"], [], _bytes),
        }

    @staticmethod
    def _vectors(out: Path) -> list[bytes]:
        with read_vectors(out) as found:
            return [one.layers.tobytes() for one in found if one.layers is not None]


def _scores(out: Path) -> list[Any]:
    return [json.loads(path.read_text())["run"]["values"] for path in sorted(out.glob("*/measured.json"))]


def _bytes(out: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()]


def attempt(arguments: list[str], seconds: float | None) -> int:
    """Run a command, and kill it after that time; return its exit code."""
    command = [sys.executable, "-m", "elmokit.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, said = process.communicate(timeout=seconds)
        if process.returncode:
            print(said.decode()[-2000:])
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    return process.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=20, help="kills of each command")
    parser.add_argument("--only", help="one command")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance, failed = random.Random(options.seed), 0
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        commands = Commands(Path(folder)).all()
        for name, (arguments, continued, read) in commands.items():
            if options.only in (None, name):
                failed += not _try(name, arguments, continued, read, Path(folder), options.each, chance)
    return min(1, failed)


def _try(
    name: str,
    arguments: list[str],
    continued: list[str],
    read: Callable[[Path], Any],
    folder: Path,
    kills: int,
    chance: random.Random,
) -> bool:
    ending = ".h5" if name == "embed" else ""
    whole = folder / f"{name}-whole{ending}"
    began = time.monotonic()
    assert attempt([*arguments, "-o", str(whole)], None) == 0
    duration, expected = time.monotonic() - began, read(whole)
    killed = wrong = refused = finished = 0
    while killed < kills:
        out = folder / f"{name}-{finished}{ending}"
        more: list[str] = []
        status = -signal.SIGKILL
        while status == -signal.SIGKILL and not (name == "convert" and out.exists()):
            # Half of the time is imports; when enough were killed, one may get through.
            seconds = chance.uniform(0.5, 1) * duration if killed < kills else None
            status = attempt([*arguments, "-o", str(out), *more], seconds)
            killed += status == -signal.SIGKILL
            more = continued if out.exists() or out.with_name(f"{out.name}.part").exists() else []
        same = read(out) == expected
        refused += status not in (0, -signal.SIGKILL) and not same  # a finished training is not resumed
        wrong += status in (0, -signal.SIGKILL) and not same
        hidden = [path.name for path in folder.rglob(".*")]
        wrong += bool(hidden)
        finished += 1
    print(
        f"{name:<10}{killed:>4} kills, {finished} runs got through, {refused} refused, {wrong} wrong",
        flush=True,
    )
    return not (wrong or refused)


if __name__ == "__main__":
    sys.exit(main())
