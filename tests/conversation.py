"""Talk to a command through its pipes, line by line."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager


@contextmanager
def conversation(*arguments, interrupt=False):
    """Run `elmokit ARGUMENTS` and yield `ask(line)`, which writes a line and waits for that of the answer.

    At the end the input is closed, or the command is interrupted while it waits for a line.
    """
    command = [sys.executable, "-c", "from elmokit.cli import main; main()", *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Without this, Python's own buffer would hide whether the command flushes its answers.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, text=True, encoding="utf-8", env=environment, **pipes) as process:
        watchdog = threading.Timer(120, process.kill)  # else an answer that never comes is waited for
        watchdog.start()

        def ask(line):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            return process.stdout.readline().removesuffix("\n")

        try:
            yield ask
            if interrupt:
                process.send_signal(signal.SIGINT)
                assert process.wait() == 130
                assert process.stderr.read().splitlines()[-1] == "elmokit: interrupted"
            else:
                process.stdin.close()
                assert process.wait() == 0
        finally:
            watchdog.cancel()
            process.kill()
