"""Every command keeps to the grammar of docs/guides/command-line.md."""

import ast
import importlib
import inspect
import json
import re
from pathlib import Path

import click
import pytest

from elmokit.cli import JOBS, main
from elmokit.cli.printing import in_options

COMMANDS = main.commands
MODEL_IS_A_MEANS = (
    "embed",
    "neighbours",
    "uses",
    "perplexity",
    "score",
    "fill",
    "generate",
    "predict",
    "evaluate",
    "index",
    "fit-pooling",
    "serve",
    "explain",
)
MODEL_IS_THE_OBJECT = ("info", "convert", "doctor")
READS_TEXT = ("embed", "neighbours", "uses", "perplexity", "score", "fill", "predict", "fit-pooling")
WRITES = ("embed", "convert", "prepare", "pretrain", "train", "compare", "index", "evaluate-search", "graph")

every_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))


def spellings(command):
    """The options of a command by their spelling."""
    options = (param for param in command.params if isinstance(param, click.Option))
    return {spelling: option for option in options for spelling in option.opts}


def arguments(command):
    return [param for param in command.params if isinstance(param, click.Argument)]


def test_every_command_is_listed_under_one_job():
    listed = [command.name for commands in JOBS.values() for command in commands]
    assert sorted(listed) == sorted(COMMANDS)


def test_help_groups_commands_one_whole_line_each(run):
    lines = run("--help").stdout.splitlines()
    assert [line.removesuffix(":") for line in lines if line.removesuffix(":") in JOBS] == list(JOBS)
    for command in COMMANDS.values():
        (line,) = (line for line in lines if line.startswith(f"  {command.name} "))
        first = command.help.split("\n\n")[0]
        assert line.split(maxsplit=1)[1] == first
        assert len(line) <= 80


@every_command
def test_help(run, command):
    shown = run(command.name, "-h")
    assert shown.exit_code == 0
    assert shown.stdout == run(command.name, "--help").stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())


@every_command
def test_every_option_says_what_it_does(command):
    for spelling, option in spellings(command).items():
        assert option.help, spelling
        assert option.help[-1] in ".]…", spelling


@every_command
def test_long_options_are_spelled_alike(command):
    for spelling in spellings(command):
        assert spelling == spelling.lower()
        assert "_" not in spelling


@every_command
def test_model(command):
    options, names = spellings(command), [argument.name for argument in arguments(command)]
    assert (options.get("-m") is not None) == (command.name in MODEL_IS_A_MEANS)
    assert ("model" in names) == (command.name in MODEL_IS_THE_OBJECT)
    if command.name in MODEL_IS_A_MEANS:
        assert options["-m"] is options["--model"]
        required = command.name in ("predict", "evaluate")
        assert options["-m"].required == required
        assert required or options["-m"].default in ("en", ("en",))


@pytest.mark.parametrize("name", READS_TEXT)
def test_text(name):
    command = COMMANDS[name]
    options = spellings(command)
    assert {"-t", "--text", "--lines", "--split", "--tokens", "--language"} <= set(options)
    source = arguments(command)[-1]
    assert (source.metavar, source.required) == ("[INPUT]", False)


@every_command
def test_what_is_written_is_out(command):
    options = spellings(command)
    assert ("--out" in options) == (command.name in WRITES)
    assert "--out" not in options or options["-o"] is options["--out"]


@every_command
def test_json(command):
    assert ("--json" in spellings(command)) == (
        command.name not in ("convert", "serve")
    )  # which print nothing


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the cat [MASK]\n")
    return path


@pytest.fixture
def read(run, model, tmp_path):
    """Run a command that reads text with a tiny model."""

    def read(name, *given, **settings):
        extra = {"embed": ["-o", tmp_path / "v.npz"], "neighbours": ["cat"], "uses": ["cat"]}.get(name, [])
        return run(name, *extra, *given, "-m", model, "--tokenizer", "rules:en", **settings)

    return read


WITH_ELMO = [name for name in READS_TEXT if name not in ("predict", "fit-pooling")]


@pytest.mark.parametrize("name", WITH_ELMO)
def test_a_file_standard_input_and_text_are_the_same(read, lines, tmp_path, name):
    query = ["--query", "a cat"] if name == "neighbours" else []
    from_file = read(name, lines, *query, "--json")
    assert from_file.exit_code == 0, from_file.stderr
    json.loads(from_file.stdout.splitlines()[0])
    for source in (["-"], [], ["-t", lines.read_text().strip()]):
        (tmp_path / "v.npz").unlink(missing_ok=True)
        found = read(name, *source, *query, "--json", input=lines.read_text())
        if name == "embed":  # whose report has its seconds
            assert json.loads(found.stdout)["tokens"] == json.loads(from_file.stdout)["tokens"]
        else:
            assert found.stdout == from_file.stdout


@pytest.mark.parametrize("name", READS_TEXT)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--split", "--tokens"], "choose one of --split and --tokens"),
        (["--lines", "--split"], "choose one of --lines and --split"),
        (["--language", "en"], "--language has no effect without --split"),
        (["TEXT", "-t", "text"], "choose between INPUT and --text"),
    ],
)
def test_options_that_exclude_each_other(run, lines, name, given, message):
    needed = {"embed": ["-o", "v.npz"], "neighbours": ["cat"], "uses": ["cat"], "predict": ["-m", "ner"]}.get(
        name, []
    )
    refused = run(name, *needed, *(lines if one == "TEXT" else one for one in given))
    assert refused.exit_code == 2
    assert message in refused.stderr


def test_tokens_need_no_tokenizer(read, lines):
    refused = read("score", lines, "--tokens")
    assert refused.exit_code == 2
    assert "choose one of --tokens and --tokenizer" in refused.stderr


def test_a_terminal_is_not_waited_for(run, monkeypatch):
    monkeypatch.setattr("elmokit.cli.options.stdin_is_terminal", lambda: True)
    refused = run("score")
    assert refused.exit_code == 2
    assert "there is nothing to read; pass a file, or text with --text" in refused.stderr


def test_a_sentence_in_the_place_of_a_file(read):
    refused = read("fill", "the [MASK] " * 100)
    assert refused.exit_code == 1
    assert "does not exist, expected a text file; check the path, or pass text with --text" in refused.stderr


def test_running_text_is_split(read):
    shown = read("score", "-t", "The cat sat. The bank is closed.", "--split", "--language", "en", "--json")
    assert [json.loads(line)["text"] for line in shown.stdout.splitlines()] == [
        "The cat sat.",
        "The bank is closed.",
    ]


@pytest.mark.parametrize(
    ("command", "message", "expected"),
    [
        ("embed", "choose another name, or overwrite=True", "choose another name, or --overwrite"),
        ("embed", "run again with resume=True to go on", "run again with --resume to go on"),
        ("embed", "pass layers='top'; or dtype=\"float16\".", "pass --layers top; or --dtype float16."),
        ("embed", "say split='en', please", "say --split --language en, please"),
        ("prepare", "take more text, or min_count=1", "take more text, or --min-count 1"),
        ("prepare", "set max_vocabulary=50", "set --max-vocab 50"),
        ("prepare", "leave out min_count; see x/min_count", "leave out --min-count; see x/min_count"),
        ("prepare", "pass vocabulary='my words.txt'", "pass --vocabulary 'my words.txt'"),
        ("prepare", "or split_sentences=False", "or --lines"),
        ("convert", "pass dtype='float32'", "pass --precision float32"),
        ("neighbours", "pass it as query=TEXT.", "pass it as --query TEXT."),
        ("info", "pass overwrite=True", "pass overwrite=True"),  # which `info` does not have
        ("train", "set training.epochs=3", "set training.epochs=3"),  # a setting, no argument
        ("embed", "resume=False", "resume=False"),
    ],
)
def test_messages_name_options(command, message, expected):
    assert in_options(message, COMMANDS[command]) == expected


def test_an_error_and_an_interruption_name_options(run, monkeypatch):
    def fail(error):
        def load(*_, **__):
            raise error

        monkeypatch.setattr("elmokit.doctor.describe", load)

    from elmokit.errors import DataError

    fail(DataError("bad; pass weights='w.hdf5'"))
    failed = run("info", "x")
    assert (failed.exit_code, failed.stderr) == (1, "elmokit: bad; pass --weights w.hdf5\n")
    fail(KeyboardInterrupt("stopped; pass weights='w.hdf5'"))
    stopped = run("info", "x")
    assert (stopped.exit_code, stopped.stderr) == (130, "elmokit: stopped; pass --weights w.hdf5\n")


def test_the_docs_name_every_command():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "command-line.md").read_text(encoding="utf-8")
    shown = {
        words[0]: words[1:] for words in map(str.split, re.findall(r"^\| `([\w-]+ .*?)` \|", page, re.M))
    }
    assert set(shown) == set(COMMANDS)
    for name, words in shown.items():
        named = [word.strip("[]") for word in words if word.strip("[]…").isupper()]
        named = [word for word in named if word not in ("FILE", "FOLDER")]  # which belong to options
        names = {"source": "INPUT", "sources": "INPUT…", "documents": "DOCS…"}
        assert named == [names.get(one.name, one.name.upper()) for one in arguments(COMMANDS[name])]
        assert ("-o" in words) == (name in WRITES)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(run, shell):
    done = run(env={"_ELMOKIT_COMPLETE": f"{shell}_source"}, prog_name="elmokit")
    assert done.exit_code == 0
    assert "_ELMOKIT_COMPLETE" in done.stdout


@every_command
def test_a_command_is_short(command):
    """It parses, calls one public function and prints: logic belongs in the library."""
    name = command.name.replace("-", "_")
    module = importlib.import_module(f"elmokit.cli.{name}")
    (body,) = (
        node
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    assert body.end_lineno - body.lineno < 40
