"""The crash matrix: a fault at every system call that writes, for every operation, in forked processes.

    python -m tests.faults.crashes --points 50        # spread over all operations, as `make test` does
    python -m tests.faults.crashes --minutes 10       # as many as fit, in random order
    python -m tests.faults.crashes --only 'train*'

After each fault the result must be the old one or the new one, whole; errors must be ElmoErrors; and doing it
again must give the result of the uninterrupted run, with nothing left beside it. Of two processes that do the
same at the same time, the second must be refused, and the first must not notice.
"""

import argparse
import contextlib
import gc
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from elmokit.errors import ElmoError
from tests.faults.injection import FAULTS, PAUSE, arm, compile_library, count, preloaded, writes


class Child:
    """A forked process that does some work, whose result is plain data."""

    def __init__(self, work: Callable[[], Any]) -> None:
        receive, send = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(receive)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            _work(work, send)
        os.close(send)
        self._pipe = os.fdopen(receive, "rb")

    def result(self) -> tuple[int, Any]:
        """Wait for its end; return its exit code (1: ElmoError, 3: another error) and result or message."""
        with self._pipe:
            found = self._pipe.read()
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status), json.loads(found or b"null")


def _work(work: Callable[[], Any], send: int) -> None:
    status = 3
    try:
        result = work()
        status = 0
    except ElmoError as error:
        result, status = str(error), 1
    except BaseException:  # noqa: BLE001  (what must not happen is reported)
        result = traceback.format_exc()
    with os.fdopen(send, "wb") as pipe:
        pipe.write(json.dumps(result).encode())
    os._exit(status)


class Matrix:
    """All operations with their uninterrupted results."""

    def __init__(self, folder: Path, only: str) -> None:
        from tests.faults import operation, operations  # here, in the process whose calls can fail

        self._digest, self._copy = operation.digest, operation.copy_start
        self._folder, self._starts = folder, folder / "starts"
        self._starts.mkdir()
        (folder / "inputs").mkdir()
        self.inputs = operations.Inputs(folder / "inputs")
        found = self.inputs.operations()
        self.operations = {one.name: one for one in found if fnmatch(one.name, only)}
        self.expected: dict[str, dict[str, Any]] = {}
        for one in self.operations.values():
            self.expected[one.name] = self._uninterrupted(one)
        gc.collect()
        gc.freeze()  # or collections of garbage would copy all memory in every forked process

    def _uninterrupted(self, one: Any) -> dict[str, Any]:
        if one.old is not None:
            (self._starts / one.name).mkdir()
            status, told = Child(lambda: one.old(self._starts / one.name)).result()
            assert status == 0, told
        case = self._folder / "whole"
        self._copy(one, self._starts, case)

        def work() -> dict[str, Any]:
            old = self._digest(one.content(case))
            arm(case)
            one.run(case)
            calls, torn = count(), writes()
            arm(Path("/nowhere"))
            names = sorted(path.name for path in case.iterdir())
            new, modules = self._digest(one.content(case)), sorted(sys.modules)
            found = {"old": old, "new": new, "names": names, "calls": calls, "writes": torn}
            return found | {"modules": modules}

        status, found = Child(work).result()
        assert status == 0, found
        shutil.rmtree(case)
        assert isinstance(found, dict)
        for module in found.pop("modules"):  # here once, or every forked process would import it again
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        return found

    def try_together(self, name: str, nth: int) -> str | None:
        """Let a second process do the same while the first has stopped at a call; return what went wrong."""
        one, expected = self.operations[name], self.expected[name]
        case = self._folder / "case"
        self._copy(one, self._starts, case)

        def stopped() -> None:
            arm(case, PAUSE, nth)
            one.run(case)

        def checked() -> str | None:
            same = self._digest(one.content(case)) == expected["new"]
            names = sorted(path.name for path in case.iterdir())
            return None if same and names == expected["names"] else f"the result differs: {same}, {names}"

        try:
            first = Child(stopped)
            os.waitpid(first.pid, os.WUNTRACED)
            second = Child(lambda: one.run(case))
            held = {} if one.waits else {"second": second.result()}
            os.kill(first.pid, signal.SIGCONT)
            ended = {"first": first.result(), **held}
            ended["second"] = ended.get("second") or second.result()
            status, told = ended["second"]
            refused = status == 1 and f"is being written by process {first.pid} on" in told
            if ended["first"][0] != 0 or not (refused or (one.waits and status == 0)):
                return f"ended with {ended}"
            status, wrong = Child(checked).result()
            return wrong
        finally:
            shutil.rmtree(case)

    def points(self) -> list[tuple[str, str, int]]:
        """Every operation, mode and call; only a write can be torn."""
        return [
            (name, mode, nth)
            for name, expected in self.expected.items()
            for mode in FAULTS
            for nth in (expected["writes"] if mode == "tear" else range(1, expected["calls"] + 1))
        ]

    def try_point(self, name: str, mode: str, nth: int) -> str | None:
        """Return what went wrong, None if nothing did."""
        one, expected = self.operations[name], self.expected[name]
        case = self._folder / "case"
        self._copy(one, self._starts, case)

        def broken() -> None:
            arm(case, mode, nth)
            one.run(case)

        def checked() -> str | None:
            state = self._digest(one.content(case))
            whole = state in (expected["old"], expected["new"])
            if not whole and not (one.may_vanish and state is None):
                return "the result is neither the old nor the new one"
            one.again(case)
            if self._digest(one.content(case)) != expected["new"]:
                return "doing it again gives another result"
            names = sorted(path.name for path in case.iterdir())
            hidden = [str(path) for path in case.rglob(".*")]
            return None if names == expected["names"] and not hidden else f"left behind: {names} {hidden}"

        try:
            status, told = Child(broken).result()
            kills = mode in ("kill", "tear")
            if status not in ((-signal.SIGKILL, 0) if kills else (0, 1)):
                return f"ended with {status}: {told}"
            status, wrong = Child(checked).result()
            return wrong if status in (0, 1) else f"afterwards: {wrong}"
        finally:
            shutil.rmtree(case)


def spread(points: list[tuple[str, str, int]], number: int) -> Iterator[tuple[str, str, int]]:
    """Yield a sample that has all operations and modes, always the same."""
    chosen = random.Random(1)
    names = sorted({name for name, _, _ in points})
    for turn in range(number):
        name, mode = names[turn % len(names)], list(FAULTS)[(turn + turn // len(names)) % len(FAULTS)]
        yield chosen.choice([point for point in points if point[:2] == (name, mode)])


def run(options: argparse.Namespace) -> int:
    """Try the points; return the number of failures."""
    began, tried, failures = time.monotonic(), Counter[str](), 0
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # flushing to a disk takes long
    with tempfile.TemporaryDirectory(prefix="crashes-", dir=memory) as folder:
        matrix = Matrix(Path(folder).resolve(), options.only)
        points = matrix.points()
        sample: Any = random.Random(options.seed).sample(points, len(points))[options.start :]
        if options.points is not None:
            sample = spread(points, options.points)
        for name, mode, nth in sample:
            if options.minutes is not None and time.monotonic() - began > 60 * options.minutes:
                break
            tried[name] += 1
            wrong = matrix.try_point(name, mode, nth)
            if wrong is not None:
                failures += 1
                print(
                    f"{name}, {mode} at call {nth} of {matrix.expected[name]['calls']}: {wrong}", flush=True
                )
            if sum(tried.values()) % 500 == 0:
                print(f"{sum(tried.values()):,} points, {time.monotonic() - began:.0f} s", flush=True)
        for name, expected in matrix.expected.items():  # in the middle, where the lock is held
            wrong = matrix.try_together(name, expected["calls"] // 2)
            if wrong is not None:
                failures += 1
                print(f"{name}, two at a time: {wrong}", flush=True)
        print(f"{len(matrix.expected)} operations done by two processes at a time")
        for name, number in sorted(tried.items()):
            calls, whole = matrix.expected[name]["calls"], sum(point[0] == name for point in points)
            print(f"{name:<24}{number:>7,} of {whole:,} points ({calls} calls)")
        total = f"{sum(tried.values()):,} of {len(points):,} points, {failures} losses"
        print(f"{total}, {time.monotonic() - began:.0f} s", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--points", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="leave out so many points of the random order")
    parser.add_argument("--only", default="*", help="operations with such names, as in file names: train*")
    options = parser.parse_args()
    if "inject.so" in os.environ.get("LD_PRELOAD", ""):
        import torch

        from tests.faults import operation

        torch.set_num_threads(1)
        operation.hide_matplotlib()
        return min(1, run(options))
    with tempfile.TemporaryDirectory() as folder:
        library = compile_library(Path(folder))
        if library is None:
            print("no C compiler, or no Linux: faults cannot be injected")
            return 0
        command = [sys.executable, "-m", "tests.faults.crashes", *sys.argv[1:]]
        return subprocess.run(command, env=preloaded(library), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
