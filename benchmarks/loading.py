"""Seconds from a model's files to a usable model, for the original shape (93.6 M parameters, 374 MB).

    python benchmarks/loading.py

Each load happens in a process of its own, whose imports are done before the clock starts. "Warm" files are in
the system's page cache, as on the second start of a program; before a "cold" load the system is asked to drop
them (it may keep some, and a disk may have a cache of its own).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import elmokit
from common import SHAPES, markdown_table, random_model
from elmokit.formats import save_model
from elmokit.formats.save import ModelFormat

SENTENCE = ["The", "bank", "raised", "its", "rates", "after", "a", "long", "meeting", "."]
TARGETS: dict[ModelFormat, float] = {"hdf5": 3.0, "native": 0.5}


def load_once(folder: str) -> None:
    """What a process of its own does: load, embed one sentence, print the seconds of both."""
    _ = elmokit.load  # imports torch
    start = time.perf_counter()
    elmo = elmokit.load(folder)
    loaded = time.perf_counter()
    elmo.embed([SENTENCE])
    print(json.dumps([loaded - start, time.perf_counter() - start]))


def seconds(folder: Path, *, cold: bool) -> tuple[float, float]:
    """Seconds to a loaded model, and to its first embedded sentence."""
    for path in folder.iterdir() if cold else ():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    command = [sys.executable, __file__, "--load", folder]
    loaded, embedded = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return loaded, embedded


def measure(repeats: int) -> list[list[object]]:
    """A row for each format and state of the files; the rounds go over all of them in turn."""
    found: dict[tuple[ModelFormat, bool], list[tuple[float, float]]] = {}
    with TemporaryDirectory() as temporary:
        bundle = random_model(SHAPES["original"])
        for name in TARGETS:
            save_model(bundle, Path(temporary, name), format=name)
        os.sync()  # only what is on the disk can be dropped from memory
        for _ in range(repeats):
            for name in TARGETS:
                for cold in (True, False):  # the cold load warms the files for the next
                    pair = seconds(Path(temporary, name), cold=cold)
                    found.setdefault((name, cold), []).append(pair)
    return [
        [
            name,
            "cold" if cold else "warm",
            median(loaded for loaded, _ in pairs),
            median(embedded for _, embedded in pairs),
            "" if cold else f"< {TARGETS[name]:g}",
        ]
        for (name, cold), pairs in found.items()
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5, help="loads of each kind (default 5)")
    parser.add_argument("--load", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load:
        load_once(arguments.load)
        return
    print(f"Medians of {arguments.repeats} loads of the original shape, in seconds\n")
    header = ["format", "files", "to a loaded model", "… and its first sentence", "aim"]
    print(markdown_table(header, measure(arguments.repeats)))


if __name__ == "__main__":
    main()
