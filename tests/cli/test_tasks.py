"""`elmokit train`, `predict`, `evaluate` and `compare`."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import elmokit
from elmokit.tasks.core import comparison
from tests.task_data import WRITERS

TEXT = "Ada\tB-PER\nsaw\tO\nNew\tB-LOC\nYork\tI-LOC\n\nAlan\tB-PER\nleft\tO\n"
QUICK = ("--set", "head.rnn=8", "--set", "head.dropout=0", "--set", "training.learning_rate=0.05")


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ner")
    for part in ("train", "dev"):
        (folder / f"{part}.txt").write_text(TEXT)
    return folder


@pytest.fixture(scope="session")
def trained(data, model, tmp_path_factory):
    """A folder with a trained tagger, and what training printed."""
    from click.testing import CliRunner

    from elmokit.cli import main

    out = tmp_path_factory.mktemp("trained") / "ner"
    arguments = [
        "train",
        "tagger",
        data,
        "--encoder",
        f"chars+{model}",
        "--out",
        out,
        "--epochs",
        "15",
        *QUICK,
    ]
    return out, CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_train(trained):
    out, shown = trained
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[0].split()[:2] == ["f1", "100.00"]
    assert "input   γ" in shown.stdout
    assert "PER" in shown.stdout
    assert "the best epoch was" in shown.stderr
    assert {"config.json", "scores.json", "errors.tsv"} <= {path.name for path in out.iterdir()}


def test_train_and_predict_for_machines_and_people(run, trained, data, tmp_path):
    arguments = ("train", "tagger", data, "--encoder", "chars", "-o", tmp_path / "ner", "--epochs", "1")
    found = json.loads(run(*arguments, "--seed", "0", "--json").stdout)
    assert set(found) == {"scores", "history", "tokens", "seconds"}
    assert "f1" in found["scores"]["values"]
    shown = run("predict", "-m", trained[0], "-t", "Ada saw New York", "-t", "Alan left")
    assert shown.stdout == "[PER Ada] saw [LOC New York]\n[PER Alan] left\n"


def test_predict_streams_lines_of_json(run, trained):
    out, _ = trained
    shown = run("predict", "-m", out, "--json", input="Ada saw New York\n\nAlan left\n")
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [line["text"] for line in lines] == ["Ada saw New York", "", "Alan left"]
    assert [(span["label"], span["text"], span["start"]) for span in lines[0]["spans"]] == [
        ("PER", "Ada", 0),
        ("LOC", "New York", 8),
    ]
    assert run("predict", "-m", out, "--tokens", input="Ada saw\n").exit_code == 0


def test_pairs_and_their_picture(run, trained, tmp_path):
    rows = [f"{int(a == b)}\t{a} left\t{b} left" for a in ("Ada", "Alan") for b in ("Ada", "Alan")]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(["label\ttext1\ttext2", *rows * 3]) + "\n")
    more = ("--dev", path, "--encoder", "chars", "-o", tmp_path / "nli", "--epochs", "1")
    made = run("train", "entailment", path, *more, *QUICK)
    assert made.exit_code == 0, made.output
    pair, picture = "Ada left\tAlan left", tmp_path / "alignment.png"
    shown = run("predict", "-m", tmp_path / "nli", "-t", pair, "-t", pair, "--picture", picture)
    assert [line.split("\t")[1:] for line in shown.stdout.splitlines()] == [pair.split("\t")] * 2
    assert picture.exists()
    refused = run("predict", "-m", tmp_path / "nli", "-t", "Ada left")
    assert (refused.exit_code, "expected two texts with a tab between" in refused.stderr) == (1, True)
    refused = run("predict", "-m", trained[0], "-t", "Ada left", "--picture", picture)
    assert (refused.exit_code, "predictions of this task are not drawn" in refused.stderr) == (2, True)


def test_roles_and_clusters(run, trained, tmp_path):
    more = ("--encoder", "chars", "--epochs", "1", *QUICK)
    for task in ("roles", "coreference"):
        (tmp_path / task).mkdir()
        for part in ("train", "dev"):
            WRITERS[task](tmp_path / task, part)
        made = run("train", task, tmp_path / task, "-o", tmp_path / f"{task}-model", *more)
        assert made.exit_code == 0, made.output
    text = tmp_path / "text.txt"
    text.write_text("Ada saw Rome .\nShe left .\n\nAlan left .\n")
    shown = run("predict", text, "-m", tmp_path / "coreference-model", "--json").stdout.splitlines()
    assert [len(json.loads(line)["sentences"]) for line in shown] == [2, 1]
    shown = run("predict", text, "-m", tmp_path / "coreference-model").stdout.strip()
    assert len(shown.split("\n\n")) == 2  # documents have a blank line between them, as in the input
    shown = run("predict", text, "-m", tmp_path / "coreference-model", "--tokens", "--json").stdout
    assert json.loads(shown.splitlines()[0])["sentences"][1] == ["She", "left", "."]
    shown = run("predict", "-t", "Ada left .", "-m", tmp_path / "coreference-model", "--show", "html").stdout
    assert shown.startswith("<p>")
    for style in ("text", "table"):
        shown = run("predict", text, "-m", tmp_path / "roles-model", "--show", style)
        assert shown.exit_code == 0, shown.output
    for model, known in ((trained[0], "text"), (tmp_path / "roles-model", "text or table")):
        refused = run("predict", "-t", "Ada left", "-m", model, "--show", "html")
        assert refused.exit_code == 2
        assert refused.stderr.rstrip().endswith(f"are shown as {known}")


def test_evaluate(run, trained, data, tmp_path):
    out, _ = trained
    shown = run("evaluate", data / "dev.txt", "-m", out, "--errors", tmp_path / "errors.tsv")
    assert shown.stdout.splitlines()[0].startswith("f1               100.00   95 % within")
    assert (tmp_path / "errors.tsv").read_text().startswith("where\ttext")
    assert (
        json.loads(run("evaluate", data / "dev.txt", "-m", out, "--json", "--strict").stdout)["values"]["f1"]
        == 1.0
    )


def test_evaluate_with_a_label_that_is_new(run, trained, tmp_path):
    (tmp_path / "new.txt").write_text("Ada\tB-HERO\n")
    refused = run("evaluate", tmp_path / "new.txt", "-m", trained[0])
    assert refused.exit_code == 1
    assert "new.txt, line 1: label 'HERO' does not occur in the training data" in refused.stderr
    assert run("evaluate", tmp_path / "new.txt", "-m", trained[0], "--allow-unseen").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["train", "tagger", "DATA", "--encoder", "chars", "--out", "OUT"],
            1,
            "is not empty; choose another name",
        ),
        (["train", "tager", "DATA", "--encoder", "chars", "--out", "new"], 2, "'tager' is not one of"),
        (
            ["train", "tagger", "DATA", "--encoder", "chars", "--out", "new", "--set", "head.rn=1"],
            1,
            "'rnn'?",
        ),
        (["train", "tagger", "DATA", "--encoder", "nowhere", "--out", "new"], 1, "nowhere"),
        (["train", "classifier", "DATA", "--encoder", "chars", "--out", "new"], 1, "--format"),
        (["predict", "-m", "DATA", "-t", "Ada"], 1, "holds no task model; pass a folder that"),
    ],
)
def test_what_is_refused(run, trained, data, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    names = {"DATA": data, "OUT": trained[0]}
    refused = run(*(names.get(argument, argument) for argument in arguments))
    assert refused.exit_code == code
    assert message in refused.stderr


def test_compare(run, data, tmp_path):
    data = shutil.copytree(data, tmp_path / "data")
    vectors = tmp_path / "v.txt"
    vectors.write_text("ada 1 0\nalan 1 0\nnew 0 1\nyork 0 1\n")
    arguments = (
        "compare", "tagger", data, "--encoders", f"chars,glove:{vectors}", "--seeds", "1",
        "--out", tmp_path / "out", "--epochs", "1",
    )  # fmt: skip
    shown = run(*arguments)
    assert shown.exit_code == 0, shown.output
    header, _, first, second = shown.stdout.splitlines()
    assert "±" not in shown.stdout  # of one seed
    warnings = [line for line in shown.stderr.splitlines() if "occur only once" in line]
    assert len(warnings) == 1  # of the processes that trained, both
    assert header.startswith("| encoder | dev f1, % | parameters trained |")
    assert first.startswith("| chars | ")
    assert second.startswith("| glove:v.txt | ")
    assert (tmp_path / "out" / "comparison.md").read_text() == shown.stdout
    assert run(*arguments).exit_code == 1  # not empty
    refused = run("compare", "tagger", data, "--encoders", "chars,glove:nowhere", "--out", tmp_path / "new")
    assert (refused.exit_code, "nowhere" in refused.stderr) == (1, True)
    assert not (tmp_path / "new").exists()  # it is told before anything is trained
    again = [json.loads(line) for line in run(*arguments, "--resume", "--json").stdout.splitlines()]
    written = (tmp_path / "out" / "comparison.md").read_text()
    assert written == shown.stdout  # nothing is run again
    assert again[0]["deviation"] is None
    assert [one["encoder"] for one in again] == ["chars", f"glove:{vectors}"]
    assert all(run_["memory"] > 50 for one in again for run_ in one["runs"])
    other = tmp_path / "elsewhere" / "v.txt"  # of the same name, with a run of its own
    other.parent.mkdir()
    other.write_text("ada 1 0\nalan 1 0\n")
    more = [
        word if word != f"chars,glove:{vectors}" else f"glove:{vectors}, glove:{other}" for word in arguments
    ]
    assert run(*more, "--resume").exit_code == 0
    (data / "train.txt").write_text(TEXT + "\nAda\tB-PER\n")
    refused = run(*arguments, "--resume")
    assert refused.exit_code == 1
    assert "holds a run of other data" in refused.stderr
    (data / "train.txt").write_text(TEXT)
    vectors.write_text("ada 1 0\nalan 1 0\nnew 0 1\nyork 0 2\n")
    for changed in (arguments, (*arguments, "--set", "head.rnn=9")):
        refused = run(*changed, "--resume")
        assert refused.exit_code == 1
        assert "an encoder that has changed" in refused.stderr


def test_compare_writes_a_report_that_is_resumed(run, data, tmp_path):
    pytest.importorskip("matplotlib")
    vectors = tmp_path / "v.txt"
    vectors.write_text("ada 1 0\nalan 1 0\nnew 0 1\nyork 0 1\n")
    arguments = (
        "compare", "tagger", data, "--encoders", f"chars,glove:{vectors}", "--seeds", "1", "--epochs", "1",
        "--out", tmp_path / "out", "--report", tmp_path / "report", "--shares", "50,100",
    )  # fmt: skip
    assert run(*arguments).exit_code == 0
    found = json.loads((tmp_path / "report" / "report.json").read_text())
    assert list(found["shares"]) == ["0.5", "1"]
    runs = [one["runs"][0] for share in found["shares"].values() for one in share]
    assert all(one["cpu"] > 0 and one["size"] > 0 and "examples" not in one for one in runs)
    assert len(found["differences"]) == 1
    measured = sorted((tmp_path / "out").rglob("measured.json"))
    before = [file.stat().st_mtime_ns for file in measured]
    measured[0].unlink()  # as if it had been interrupted
    again = run(*arguments, "--resume", "--json")
    assert again.exit_code == 0, again.output
    assert [file.stat().st_mtime_ns for file in measured][1:] == before[1:]
    refused = run(*(word for word in arguments if word not in ("--report", tmp_path / "report")))
    assert "--shares has no effect without --report" in refused.stderr


def test_compare_anew_and_quietly(run, data, tmp_path, monkeypatch):
    measured = {"metric": "f1", "run": dict.fromkeys(("score", "trained", "encoder"), 0) | {"values": {}}}
    measured["run"] |= dict.fromkeys(("training", "use", "memory"), 1)
    runs = []
    monkeypatch.setattr(comparison, "_in_own_process", lambda out, _: runs.append(out.mkdir()) or measured)
    arguments = ("compare", "tagger", data, "--encoders", "chars", "--seeds", "2", "-o", tmp_path)
    (tmp_path / "comparison.md").write_text("old")
    assert "pass --resume or --overwrite" in run(*arguments).stderr
    done = run(*arguments, "--overwrite", "--quiet")
    assert (done.exit_code, done.stderr, len(runs)) == (0, "", 2)
    assert "| chars | 0.00 ± 0.00 |" in (tmp_path / "comparison.md").read_text()


def test_a_run_that_dies_is_told_of(monkeypatch):
    with pytest.raises(elmokit.ElmoError, match=r"the training of out failed: TypeError: train"):
        comparison._in_own_process(Path("out"), {})  # which lacks all else
    monkeypatch.setattr(comparison, "_run_child", _killed)
    with pytest.raises(
        elmokit.ElmoError, match=r"was killed \(exit code -9\), perhaps because memory ran out"
    ):
        comparison._in_own_process(Path("out"), {})


def _killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_compare_leaves_no_process_behind(data, tmp_path, end):
    pipe = tmp_path / "dev.txt"  # which the process that trains reads, not its parent
    os.mkfifo(pipe)
    command = [
        sys.executable, "-c", "from elmokit.cli import main; main()", "compare", "tagger", data,
        "--dev", pipe, "--encoders", "chars", "--out", tmp_path / "out",
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as parent:
        with _open_once_read(pipe, parent) as dev:
            parent.send_signal(end)
            with pytest.raises(BrokenPipeError):  # when the process that reads has ended
                _write_lines(dev)
        message = parent.stderr.read()
    assert parent.returncode == (130 if end == signal.SIGINT else -end)
    assert "Traceback" not in message


def _write_lines(pipe):
    for _ in range(1_000_000):  # more than a process that is about to end reads
        pipe.write(b"ada\tO\n")


def _open_once_read(pipe, process):
    """The pipe for writing, as soon as someone reads it."""
    while process.poll() is None:
        with suppress(OSError):  # nobody yet
            number = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(number, True)
            return os.fdopen(number, "wb", buffering=0)
    raise AssertionError(process.stderr.read())
