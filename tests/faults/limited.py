"""Run a function in a process of its own, with limits of memory and time.

The process is forked, so it costs some milliseconds and not the seconds that importing torch takes.
"""

import contextlib
import json
import os
import resource
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from elmokit import ElmoError

Kind = Literal["ok", "refused", "uncaught", "crashed", "too slow", "too much memory"]

TIMES, SLACK = 4, 64 << 20  # memory that a file of n bytes may take: 4 n + 64 MB
_HARD = 3 << 30  # beyond this the system refuses, so that nothing can exhaust the machine


@dataclass
class Outcome:
    """How a call ended.

    Attributes:
        kind: returned, refused with an ElmoError, raised something else, died by a signal, or broke a limit.
        message: of the error.
        memory: what it took at most, in bytes.
        seconds: processor time.
    """

    kind: Kind
    message: str = ""
    memory: int = 0
    seconds: float = 0.0


def run_limited(call: Callable[[], object], *, size: int, seconds: int = 20) -> Outcome:
    """Call a function in a process of its own.

    Args:
        call: what to do; a file of `size` bytes is read.
        size: decides how much memory may be taken.
        seconds: after which the process is killed.
    """
    (outcome,) = run_all_limited([(lambda: size, call)], seconds=seconds)
    return outcome


def run_all_limited(
    cases: Sequence[tuple[Callable[[], int], Callable[[], object]]], *, seconds: int = 20
) -> Iterator[Outcome]:
    """Call functions one after another in one process, and in another one after each that dies.

    Args:
        cases: for each what prepares it and returns the size of its files, and what reads them.
        seconds: after which a call is killed.
    """
    done = 0
    while done < len(cases):
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receive)
            _serve(cases[done:], send, seconds)
        os.close(send)
        with os.fdopen(receive, "rb") as pipe:
            for answer in pipe:
                size, outcome = json.loads(answer)
                outcome = Outcome(**outcome)
                if outcome.memory > TIMES * size + SLACK:
                    outcome.kind = "too much memory"
                done += 1
                yield outcome
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            slow = number in (signal.SIGALRM, signal.SIGXCPU)
            done += 1
            yield Outcome("too slow" if slow else "crashed", f"killed by {signal.Signals(number).name}")


def _serve(cases: Sequence[tuple[Callable[[], int], Callable[[], object]]], send: int, seconds: int) -> None:
    with contextlib.suppress(BaseException):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (1024 * _status()["VmSize"] + _HARD,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        silence = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):  # libraries in C print there
            os.dup2(silence, stream)
        for prepare, call in cases:
            size = prepare()
            os.write(send, json.dumps([size, asdict(_call(call, seconds))]).encode() + b"\n")
    os._exit(0)


def _call(call: Callable[[], object], seconds: int) -> Outcome:
    signal.alarm(seconds)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak
    before = _status()["VmRSS"]
    began = resource.getrusage(resource.RUSAGE_SELF)
    try:
        call()
        outcome = Outcome("ok")
    except ElmoError as error:
        outcome = Outcome("refused", f"{type(error).__name__}: {error}"[:500])
    except MemoryError:
        outcome = Outcome("too much memory", traceback.format_exc()[-2000:])
    except BaseException:  # noqa: BLE001 (whatever it is, it is what this looks for)
        outcome = Outcome("uncaught", traceback.format_exc()[-2000:])
    signal.alarm(0)
    ended = resource.getrusage(resource.RUSAGE_SELF)
    outcome.memory = 1024 * (_status()["VmHWM"] - before)
    outcome.seconds = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    return outcome


def _status() -> dict[str, int]:
    """Return sizes of this process in KB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    pairs = (line.split(":", 1) for line in lines if line.startswith("Vm"))
    return {name: int(value.split()[0]) for name, value in pairs}
