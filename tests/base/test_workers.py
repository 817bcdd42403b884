import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import closing
from itertools import count

import pytest

from elmokit.base import ordered_map, workers
from elmokit.errors import ElmoError


def test_results_come_in_order():
    events = [multiprocessing.get_context("fork").Event() for _ in range(10)]

    def after_the_next_if_even(number):
        if number % 2 == 0:
            events[number].wait()
        else:
            events[number - 1].set()
        return number, os.getpid()

    results = list(ordered_map(after_the_next_if_even, range(10), workers=2))
    assert [number for number, _ in results] == list(range(10))
    assert os.getpid() not in {process for _, process in results}


def test_each_process_begins_by_itself():
    begun = []
    results = set(
        ordered_map(lambda _: tuple(begun), range(6), workers=2, begin=lambda: begun.append("here"))
    )
    assert results == {("here",)}
    assert not begun


def test_errors_arrive_and_endless_items_are_taken_few_at_a_time():
    taken = []

    def items():
        for number in count():
            taken.append(number)
            yield number

    def refuse_three(number):
        if number == 3:
            raise ElmoError("three")
        return number

    with pytest.raises(ElmoError, match="three"):
        list(ordered_map(refuse_three, items(), workers=2))
    assert len(taken) <= 8


def test_what_is_given_up_is_not_done(tmp_path):
    def touch(number):
        if number:
            workers._given_up.wait()
        (tmp_path / str(number)).touch()

    with closing(ordered_map(touch, range(100), workers=1)) as results:
        next(results)
    done = sorted(path.name for path in tmp_path.iterdir())
    assert done in (["0"], ["0", "1"])  # the second one may have been under way


def test_a_process_that_dies_is_told():
    with pytest.raises(ElmoError, match="a worker process died"):
        list(ordered_map(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(3), workers=1))


_ORPHANS = """
import os, sys
from elmokit.base import ordered_map
for process in ordered_map(lambda _: os.getpid(), range(100), workers=2):
    print(process, flush=True)
    if input():
        os.kill(os.getpid(), 9)
"""


def test_processes_end_with_their_parent():
    with subprocess.Popen(
        [sys.executable, "-c", _ORPHANS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        parent.stdin.write("\nkill\n")
        parent.stdin.close()
        assert len(parent.stdout.readlines()) == 2  # returns when the last process has closed its output
