import importlib.metadata
import logging
import math
import subprocess
import sys

import pytest

from elmokit.cli.printing import print_json
from elmokit.errors import ElmoError


def test_version(run):
    assert importlib.metadata.version("elmokit") in run("--version").stdout


def test_help_names_the_commands(run):
    shown = run("--help")
    assert shown.exit_code == 0
    for command in (
        "embed",
        "info",
        "convert",
        "neighbours",
        "doctor",
        "perplexity",
        "score",
        "fill",
        "generate",
    ):
        assert f"\n  {command} " in shown.stdout
        assert run(command, "--help").exit_code == 0


def test_help_needs_no_heavy_library():
    check = (
        "import sys; from elmokit.cli import main; main(['embed', '--help'], standalone_mode=False); "
        "assert not {'torch', 'numpy', 'h5py', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True, capture_output=True)


def test_errors_are_one_message(run):
    failed = run("info", "no-such-model")
    assert failed.exit_code == 1
    assert failed.stdout == ""
    assert failed.stderr.startswith("elmokit: no-such-model: no such file or folder")
    assert len(failed.stderr.splitlines()) == 1


def test_verbose_lets_the_error_through(run):
    with pytest.raises(ElmoError, match="no such file"):
        run("-v", "info", "no-such-model", catch_exceptions=False)


def test_a_warning_names_options_and_is_said_once(run, monkeypatch):
    def describe(*_, **__):
        logger = logging.getLogger("elmokit.somewhere")
        for word in ("one", "two"):
            logger.warning("token %r is odd; pass weights='w.hdf5'. (Said once.)", word)
            logger.warning("%s has no softmax", "it")
            logger.info("not for everybody")
        raise ElmoError("enough")

    monkeypatch.setattr("elmokit.doctor.describe", describe)
    for _ in range(2):  # no printer is left behind
        assert run("info", "x").stderr.splitlines() == [
            "elmokit: token 'one' is odd; pass --weights w.hdf5. (Said once.)",
            "elmokit: it has no softmax",
            "elmokit: enough",
        ]


def test_json_has_no_infinity(capsys):
    print_json({"perplexity": math.inf, "words": ["né"]})
    assert capsys.readouterr().out == '{"perplexity": null, "words": ["né"]}\n'


@pytest.mark.parametrize(
    "arguments", [["embed", "in.txt"], ["nonsense"], ["info"], ["info", "x", "--nonsense"]]
)
def test_misuse_is_exit_2(run, arguments):
    misused = run(*arguments)
    assert misused.exit_code == 2
    assert "Usage: " in misused.stderr
