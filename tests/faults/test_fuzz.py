"""Some hundred changed files of every kind; `make fuzz` runs as many as there is time for."""

import gzip
import json
import os
import random
import signal
import struct
import sys

import pytest

from tests.faults import mutation
from tests.faults.fuzz import Fuzzer
from tests.faults.limited import run_limited

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.filterwarnings("ignore"),
]


def test_changed_files_are_read_or_refused(tmp_path):
    wrong = [
        (case.number, case.name, case.path.name, outcome)
        for case, outcome in Fuzzer(tmp_path).run(seed=1, cases=range(200))
        if outcome.kind not in ("ok", "refused")
    ]
    assert wrong == []


def test_the_limits_are_noticed():
    assert run_limited(lambda: None, size=0).kind == "ok"
    assert run_limited(lambda: [1][2], size=0).kind == "uncaught"
    assert run_limited(lambda: bytearray(80 << 20), size=0).kind == "too much memory"
    assert run_limited(lambda: bytearray(80 << 20), size=16 << 20).kind == "ok"
    assert run_limited(lambda: bytearray(8 << 30), size=0).kind == "too much memory"
    assert run_limited(lambda: any(iter(int, 1)), size=0, seconds=1).kind == "too slow"
    assert run_limited(lambda: os.kill(os.getpid(), signal.SIGKILL), size=0).kind == "crashed"


@pytest.mark.parametrize(
    ("mutate", "content"),
    [
        (mutation.any_bytes, b"some bytes of a file"),
        (mutation.text, b"a\tb\nc\td\n"),
        (mutation.json_text, b'{"a": [1, {"b": null}]}'),
        (mutation.json_lines, b'{"a": 1}\n{"b": 2}\n'),
        (
            mutation.safetensors,
            struct.pack("<Q", 40) + b'{"a": {"dtype": "F32", "shape": [1]}}   ' + bytes(4),
        ),
        (mutation.packed(mutation.text), gzip.compress(b"a\nb\n", mtime=0)),
    ],
)
def test_mutators_repeat_themselves(mutate, content):
    """A case is known by its number: the same random numbers make the same change."""
    made = [[mutate(random.Random(number), content) for number in range(200)] for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 50


def test_a_changed_header_of_safetensors_keeps_its_length():
    header = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(4)
    lengths = []
    for number in range(200):
        changed = mutation.safetensors(random.Random(number), content)
        size = struct.unpack("<Q", changed[:8])[0] if len(changed) >= 8 else -1
        lengths.append(size == len(changed) - 12)
    assert sum(lengths) > 140
