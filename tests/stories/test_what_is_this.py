"""A colleague finds a folder full of files that elmokit wrote, and asks what each of them is."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import elmokit
from elmokit.cli import main
from tests.small_runs import prepare, sentences
from tests.task_data import WRITERS
from tests.tiny import WORDS, write_folder

TABLES = ("v.csv", "v.tsv")
VECTORS = ("v.h5", "v.npz", "v.npy", "v.parquet", "v.arrow", *TABLES)
UNFINISHED = ("half.part", "w.npz.part", "run", "half-index", "half-tagger")
KINDS = {
    "old": "an ELMo model",
    "en": "an ELMo model",
    "mine": "an ELMo model",
    "tagger": "a task model",
    "half-tagger": "an interrupted training of a task",
    "compared": "a comparison of encoders",
    "corpus": "a prepared corpus",
    "index": "a search index",
    "half-index": "a search index",
    "half.part": "an interrupted preparation of a corpus",
    "w.npz.part": "an interrupted embedding run",
    "run": "an interrupted pretraining run without a model",
    **dict.fromkeys(VECTORS, "a file of vectors"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One of everything."""
    folder = tmp_path_factory.mktemp("found")
    old = write_folder(folder / "old", vocabulary=WORDS, softmax=True)
    elmo = elmokit.load(old, tokenizer="rules:en")
    elmo.save(folder / "mine")
    (folder / "text.txt").write_text("the cat sat\na mat\n", encoding="utf-8")
    for name in VECTORS:
        elmokit.embed_file(elmo, folder / "text.txt", folder / name)
    data = folder / "data"
    data.mkdir()
    for part in ("train", "dev"):
        WRITERS["tagger"](data, part)
    quick = ["head.rnn=4", "training.epochs=1", "training.least_steps=1"]
    settings = elmokit.task_settings("tagger", quick)
    elmokit.train("tagger", data, encoder=str(old), out=folder / "tagger", settings=settings)
    elmokit.compare("tagger", data, ["words"], out=folder / "compared", settings=settings, seeds=1)
    prepare(folder, sentences(20))
    for name in ("index", "half-index"):
        elmokit.Index.build(["the cat", "a mat"], folder / name, model=folder / "mine")
    leave_unfinished(folder, elmo)
    return folder


def leave_unfinished(folder, elmo):
    """Interrupt what can be interrupted."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elmokit.corpus.preparation.write_chunk", interrupted)
        with pytest.raises(KeyboardInterrupt):
            elmokit.pretrain(folder / "text.txt", out=folder / "run", language="en", workers=1)
    (folder / "run" / "training" / "corpus.part").rename(folder / "half.part")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elmokit.vectors.spool.Spool.pack", interrupted)
        with pytest.raises(KeyboardInterrupt):
            elmokit.embed_file(elmo, folder / "text.txt", folder / "w.npz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elmokit.search.index.entry_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            elmokit.Index.build(["one more"], folder / "half-index", model=folder / "mine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elmokit.tasks.core.task_model.TaskModel.save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            elmokit.train("tagger", folder / "data", encoder="words", out=folder / "half-tagger", epochs=1)


@pytest.fixture
def run(place, monkeypatch):
    monkeypatch.chdir(place)
    return lambda *arguments: CliRunner().invoke(main, arguments)


@pytest.mark.parametrize("name", KINDS)
def test_everything_says_what_it_is(run, name):
    shown = run("info", name)
    assert shown.exit_code == 0, shown.stderr
    print(shown.stdout)
    assert shown.stdout.splitlines()[0].split(maxsplit=1) == ["kind", KINDS[name]]
    assert json.loads(run("info", name, "--json").stdout)["kind"] == KINDS[name]
    found = run("doctor", name)
    assert found.exit_code == 0, found.stdout
    assert "ok  " in found.stdout
    if name in UNFINISHED:
        assert "interrupted run" in found.stdout


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("w.npz.part", "half.part")])
def test_a_wrong_kind_is_refused_by_its_name(run, name):
    kind = KINDS[name]
    if kind != "an ELMo model" and name not in TABLES:
        refused = run("score", "text.txt", "-m", name)
        assert (refused.exit_code, f"{name} is {kind}, not an ELMo model" in refused.stderr) == (1, True)
    if kind != "a task model":
        refused = run("predict", "text.txt", "-m", name)
        known = kind if name not in ("old", "v.h5", *TABLES) else "holds no task model"
        assert (refused.exit_code, known in refused.stderr) == (1, True), refused.stderr
    if kind != "a file of vectors":
        with pytest.raises(elmokit.DataError):
            elmokit.read_vectors(name)
    if name not in ("old", "en", "v.h5", *TABLES):
        refused = run("score", name, "-m", "old")
        assert f"{name} is {kind}, not text" in refused.stderr
    if name not in ("old", "en", "corpus", "v.h5", "v.parquet", *TABLES):
        refused = run("pretrain", name, "--language", "en", "-o", "new")
        assert f"{name} is {kind}, not text" in refused.stderr
        assert not Path("new", "config.json").exists()


def test_a_task_model_tells_its_scores(run):
    facts = json.loads(run("info", "tagger", "--json").stdout)
    assert facts["dev scores"]["main"] in facts["dev scores"]["values"]
    assert "confusion" not in run("info", "tagger").stdout


def test_other_files_are_named_too(run, place, tmp_path, monkeypatch):
    assert "v.h5 is an HDF5 file, not text; pass a text file" in run("score", "v.h5", "-m", "old").stderr
    assert "text.txt: is a text file; expected a model folder" in run("info", "text.txt").stderr
    monkeypatch.chdir(tmp_path)
    Path("en").mkdir()
    Path("en", "text.txt").write_text("The bank opened.")
    assert "It hides the bundled model en: rename it" in run("info", "en").stderr


def test_a_damaged_one_is_an_error(run, place):
    weights = place / "tagger" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-50])
    found = run("doctor", "tagger")
    weights.write_bytes(whole)
    assert found.exit_code == 1
    assert "error    " in found.stdout
