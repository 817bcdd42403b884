"""Open changed files of every kind, each in a process with limits; print and keep what goes wrong.

    python -m tests.faults.fuzz --minutes 10 --seed 1

A case passes if the file loads, or is refused with an ElmoError; takes no more than four times its size and
64 MB of memory; and no more than three seconds and ten microseconds a byte of processor time. Cases are
numbered: `--seed 1 --case 4711` repeats one.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from tests.faults.limited import Outcome, run_all_limited
from tests.faults.subjects import make_subjects, pick

_SECONDS, _PER_BYTE = 3.0, 1e-5
_TOGETHER = 50  # cases that share a process


class Fuzzer:
    """Examples of all files in a folder, and what changes them."""

    def __init__(self, folder: Path, only: str = "") -> None:
        subjects = make_subjects(folder / "examples")
        self.subjects = {name: found for name, found in subjects.items() if only in name}
        self.contents = {path: path.read_bytes() for found in self.subjects.values() for path in found.files}
        for found in self.subjects.values():  # imports what it needs, and shows that whole files open
            found.open(found.path)

    def run(self, seed: int, cases: range) -> Iterator[tuple["Case", Outcome]]:
        """Run cases, and say how each went; they share a process unless one ends it."""
        chosen = [self.case(seed, number) for number in cases]
        calls = [(partial(self._prepare, case), partial(self._open, case)) for case in chosen]
        for case, outcome in zip(chosen, run_all_limited(calls), strict=True):
            if outcome.message.startswith("killed"):
                self._restore(case)  # which the process could not
            if outcome.kind in ("ok", "refused") and outcome.seconds > _SECONDS + _PER_BYTE * len(
                case.content
            ):
                outcome.kind = "too slow"
            yield case, outcome

    def case(self, seed: int, number: int) -> "Case":
        """Choose a file and change it."""
        rng = random.Random(f"{seed}/{number}")
        name, path = pick(rng, self.subjects)
        return Case(number, name, path, self.subjects[name].files[path](rng, self.contents[path]))

    def _prepare(self, case: "Case") -> int:
        case.path.write_bytes(case.content)
        return sum(file.stat().st_size for file in self.subjects[case.name].files)

    def _open(self, case: "Case") -> None:
        found = self.subjects[case.name]
        try:
            found.open(found.path)
        finally:
            self._restore(case)

    def _restore(self, case: "Case") -> None:
        case.path.write_bytes(self.contents[case.path])
        for file in self.subjects[case.name].path.rglob(".*"):  # what opening has written
            file.unlink()


@dataclass(frozen=True)
class Case:
    """One changed file: the name of its subject, where it is, and what is in it."""

    number: int
    name: str
    path: Path
    content: bytes


def main() -> None:
    """Run cases until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        fuzzer = Fuzzer(Path(folder), options.only)
        print(
            f"seed {options.seed}, {len(fuzzer.subjects)} kinds of files, {len(fuzzer.contents)} files",
            flush=True,
        )
        kinds: Counter[str] = Counter()
        end = time.monotonic() + 60 * options.minutes
        number, together = (options.start, _TOGETHER) if options.case is None else (options.case, 1)
        while time.monotonic() < end:
            for case, outcome in fuzzer.run(options.seed, range(number, number + together)):
                kinds[outcome.kind] += 1
                if outcome.kind not in ("ok", "refused") or options.case is not None:
                    _keep(options, case, outcome)
            if options.case is not None:
                break
            number += together
            if number % 1000 == 0:
                print(f"up to {number:,}: {dict(kinds)}", flush=True)
    print(f"{kinds.total():,} cases: {dict(kinds)}")
    sys.exit(any(kind not in ("ok", "refused") for kind in kinds))


def _keep(options: argparse.Namespace, case: Case, outcome: Outcome) -> None:
    folder = options.out / f"{options.seed}-{case.number}-{case.name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / case.path.name).write_bytes(case.content)
    (folder / "outcome.txt").write_text(f"{outcome}\n{outcome.message}\n")
    what = f"{case.name}, {case.path.name}: {outcome.kind}; {folder}"
    print(f"case {case.number} of seed {options.seed}: {what}", flush=True)


if __name__ == "__main__":
    main()
