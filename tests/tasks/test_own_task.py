"""The example of the guide "Add a task of your own"."""

from pathlib import Path

from elmokit.tasks import evaluate, train
from elmokit.tasks.core import TaskSettings

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_task.py"
SETTINGS = TaskSettings().changed(
    ["head.rnn=8", "head.dropout=0", "training.epochs=6", "training.least_steps=20", "training.batch=8"]
)


def write_pairs(folder):
    subjects, verbs = ("Ada", "Alan", "Grace", "Rome"), ("fell", "rose")
    rows = [
        f"{int(one == other)}\t{subject} {one} .\t{subject} {other} ."
        for subject in subjects
        for one in verbs
        for other in verbs
    ]
    for part in ("train", "dev"):
        (folder / f"{part}.tsv").write_text("\n".join(rows) + "\n")


def test_own_task(tmp_path, monkeypatch):
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 100
    monkeypatch.syspath_prepend(EXAMPLE.parent)
    import own_task

    write_pairs(tmp_path)
    found = train(own_task.PairModel, tmp_path, encoder="chars", out=tmp_path / "out", settings=SETTINGS)
    assert found.scores.main == "accuracy"
    assert found.scores.value == 1.0
    model = own_task.PairModel.load(tmp_path / "out")
    same, other = model.predict([("Ada rose .", "Ada rose ."), ("Ada rose .", "Ada fell .")])
    assert same > 0.5 > other
    assert evaluate(model, tmp_path / "dev.tsv").value == 1.0
