"""What all workers share: they read a command a line, call the function of its name, and write its answer."""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Command = Callable[..., dict[str, Any] | None]


def serve(*commands: Command) -> None:
    """Answer the commands of standard input until it ends. What libraries print goes to standard error."""
    by_name = {command.__name__: command for command in commands}
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = by_name[name](**arguments) or {}
        except Exception:  # noqa: BLE001 (whatever it is, the one who asked has to know)
            answer = {"error": traceback.format_exc(limit=-3)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def timed(call: Callable[[Any], object], items: Iterable[object]) -> dict[str, Any]:
    """Seconds of `call` on each item, and the processor time of all threads over all items."""
    seconds = []
    cpu_start = time.process_time()
    for item in items:
        start = time.perf_counter()
        call(item)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "cpu_seconds": time.process_time() - cpu_start}


def peak_megabytes() -> dict[str, float]:
    """The most memory that this process has held so far."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return {"megabytes": int(line.split()[1]) / 1024}
