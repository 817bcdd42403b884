"""Training whole, with tiny models: it learns, goes on, saves, loads and predicts the same."""

import itertools
import json
import math
import signal

import pytest
import torch

import elmokit
from elmokit.encoders import ElmoEncoder
from elmokit.tasks import Classifier, IntentModel, Tagger, evaluate, find_task, load_task, train
from elmokit.tasks.core import read_data
from elmokit.tasks.core.counting import Scores
from elmokit.tasks.core.task_job import TaskJob
from elmokit.tasks.tagger import TaggerTask
from tests.task_data import quick_settings


def weights_of(found):
    return {name: weight.clone() for name, weight in found.model.state_dict().items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=0)


def test_started_from_a_trained_model(folders, tmp_path):
    settings = quick_settings("classifier")
    arguments = {"source": folders["classifier"], "encoder": "chars"}
    first = train("classifier", out=tmp_path / "first", settings=settings, **arguments)
    few = quick_settings("classifier", "training.epochs=1", "training.learning_rate=0")
    again = train("classifier", out=tmp_path / "again", settings=few, start=tmp_path / "first", **arguments)
    assert again.scores.value == first.scores.value == 1.0
    assert again.model.task.labels == first.model.task.labels
    assert_same(again.model.state_dict(), first.model.state_dict())
    new = tmp_path / "new.tsv"
    new.write_text("label\ttext\nfound\tAda found Rome .\nfound\tAlan found Rome .\n")
    with pytest.raises(elmokit.DataError, match="label 'found' does not occur in the training data"):
        train("classifier", new, dev=new, encoder="chars", out=tmp_path / "new", start=tmp_path / "first")
    other = quick_settings("classifier", "head.rnn=5")
    with pytest.raises(elmokit.ConfigError, match="to start from has the encoders chars and sizes"):
        train("classifier", out=tmp_path / "other", settings=other, start=tmp_path / "first", **arguments)


@pytest.mark.parametrize("task", ["tagger", "classifier", "intent"])
def test_learns_saves_and_predicts(task, folders, elmo, tmp_path):
    settings = quick_settings(task)
    found = train(task, folders[task], encoder=f"{elmo}+chars", out=tmp_path / "out", settings=settings)
    assert found.scores.value == 1.0
    assert found.tokens == len((folders["intent"] / "train" / "seq.in").read_text().split())
    text = "Grace Hopper left New York."
    model = load_task(tmp_path / "out")
    assert type(model) is find_task(task)
    prediction = model.predict(text)
    assert prediction.tokens == ["Grace", "Hopper", "left", "New", "York", "."]
    before = found.model.predict(text)
    if task != "classifier":
        assert before.tags == prediction.tags
        assert before.tag_probabilities == pytest.approx(prediction.tag_probabilities, abs=1e-5)
        assert prediction.tags == ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
        assert [(s.text, s.label, text[s.start : s.end]) for s in prediction.spans] == [
            ("Grace Hopper", "PER", "Grace Hopper"),
            ("New York", "LOC", "New York"),
        ]
        assert all(0 < span.probability <= 1 for span in prediction.spans)
    if task != "tagger":
        assert before.labels == prediction.labels
        assert prediction.label == "left"
        assert sum(prediction.scores.values()) == pytest.approx(1)
    wanted = {"config.json", "model.safetensors", "scores.json", "metrics.jsonl", "errors.tsv"}
    wanted |= {"learning-curve.png", "confusion.png", "layer-weights.png"}
    assert wanted <= {path.name for path in (tmp_path / "out").iterdir()}
    assert not (tmp_path / "out" / "cache").exists()
    assert not (tmp_path / "out" / "checkpoints").exists()
    assert (tmp_path / "out" / "errors.tsv").read_text() == "where\ttext\tgold\tpredicted\n"
    dev = folders[task] / {"tagger": "dev.txt", "classifier": "dev.tsv", "intent": "dev"}[task]
    assert evaluate(model, dev).value == 1.0


def test_the_batch_does_not_matter(folders, elmo, tmp_path):
    settings = quick_settings("intent", "training.epochs=2")
    model = train(
        "intent", folders["intent"], encoder=f"{elmo}+chars", out=tmp_path / "out", settings=settings
    ).model
    texts = ["Ada saw Rome.", "", "Alan likes New York and Paris and Rome .", ["Grace"]]
    together = model.predict(texts)
    for text, one in zip(texts, together, strict=True):
        alone = next(model.stream([text]))
        assert alone.tags == one.tags
        assert alone.tag_probabilities == pytest.approx(one.tag_probabilities, abs=1e-5)
        assert list(alone.scores.values()) == pytest.approx(list(one.scores.values()), abs=1e-5)
    assert together[1].spans == []
    assert list(model.stream([])) == []
    endless = model.stream(itertools.repeat("Ada saw Rome."))  # a few batches are read, not all
    assert next(endless).tokens == ["Ada", "saw", "Rome", "."]
    assert next(model.stream(iter(texts), latency=0)).text == texts[0]
    with pytest.raises(elmokit.ConfigError, match="expected a list of texts"):
        next(model.stream("one string"))
    with pytest.raises(elmokit.ConfigError, match=r"expected a list of texts, .* found NoneType None"):
        model.predict(None)
    with pytest.raises(elmokit.ConfigError, match="expected a string or a list of tokens, found NoneType"):
        model.predict([None])


def test_the_same_seed_gives_the_same_model_and_another_another(folders, elmo, quick, tmp_path):
    def run(name, seed):
        settings = quick.changed([f"training.seed={seed}", "training.epochs=2", "head.dropout=0.5"])
        return train(
            "tagger", folders["tagger"], encoder=f"{elmo}+chars", out=tmp_path / name, settings=settings
        )

    first, again, other = run("a", 1), run("b", 1), run("c", 2)
    assert_same(weights_of(first), weights_of(again))
    assert [entry["loss"] for entry in first.history] != [entry["loss"] for entry in other.history]


def test_resumed_with_another_encoder(folders, elmo, quick, tmp_path, monkeypatch):
    arguments = {"encoder": elmo, "out": tmp_path / "out", "settings": quick}

    compute = TaskJob.compute

    def stop(*arguments):
        signal.raise_signal(signal.SIGINT)
        return compute(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(TaskJob, "compute", stop)
        with pytest.raises(KeyboardInterrupt, match="interrupted after 0 epochs; the same call"):
            train("tagger", folders["tagger"], **arguments)
    monkeypatch.setattr(ElmoEncoder, "fingerprint", lambda _: "another")
    with pytest.raises(elmokit.ConfigError, match=r"was started with other settings: .*encoders.*another"):
        train("tagger", folders["tagger"], resume=True, **arguments)


def test_resumed_with_damaged_records_of_epochs(folders, elmo, quick, tmp_path, monkeypatch):
    out = tmp_path / "out"
    arguments = {"encoder": elmo, "out": out, "settings": quick.changed(["training.epochs=3"])}
    evaluate, epochs = TaskJob.evaluate, []

    def stop_after_two(*arguments):
        epochs.append(1)
        if len(epochs) == 2:
            signal.raise_signal(signal.SIGINT)
        return evaluate(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(TaskJob, "evaluate", stop_after_two)
        with pytest.raises(KeyboardInterrupt, match="interrupted after 2 epochs"):
            train("tagger", folders["tagger"], **arguments)
    records = (out / "metrics.jsonl").read_text()
    for changed, message in (
        (
            records.replace('"epoch": 1', '"epoch": "1"'),
            r"metrics.jsonl is damaged: expected a number as epoch",
        ),
        (records.split("\n", 1)[1], "metrics.jsonl has lost epochs; train again with overwrite"),
    ):
        (out / "metrics.jsonl").write_text(changed)
        with pytest.raises(elmokit.DataError, match=message):
            train("tagger", folders["tagger"], resume=True, **arguments)


def test_interrupted_before_the_first_step(folders, elmo, quick, tmp_path, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    arguments = {"encoder": elmo, "out": tmp_path / "out", "settings": quick.changed(["training.epochs=1"])}
    with monkeypatch.context() as patched:
        patched.setattr(ElmoEncoder, "encode", stop)
        with pytest.raises(KeyboardInterrupt, match="interrupted before training; the same call with resume"):
            train("tagger", folders["tagger"], **arguments)
    assert (tmp_path / "out" / "cache").is_dir()
    train("tagger", folders["tagger"], resume=True, **arguments)


def test_stops_when_dev_gets_no_better_and_keeps_the_best(folders, elmo, quick, tmp_path, monkeypatch):
    scores, states, job_evaluate = [0.2, 0.5, 0.4, 0.5, 0.3], [], TaskJob.evaluate

    def noted(job):
        states.append({name: weight.clone() for name, weight in job.state_dict()["model"].items()})
        return job_evaluate(job)

    monkeypatch.setattr(TaskJob, "evaluate", noted)
    scripted = lambda *_: Scores(main="f1", values={"f1": scores[len(states) - 1]})  # noqa: E731
    monkeypatch.setattr(TaggerTask, "score", scripted)
    settings = quick.changed(["training.patience=3"])
    found = train("tagger", folders["tagger"], encoder=elmo, out=tmp_path / "out", settings=settings)
    assert [entry["dev"] for entry in found.history] == scores
    assert [entry["epoch"] for entry in found.history] == [1, 2, 3, 4, 5]
    assert_same(weights_of(found), states[1])


def test_overwrite(folders, elmo, quick, tmp_path):
    arguments = {
        "encoder": "chars",
        "out": tmp_path / "out",
        "settings": quick.changed(["training.epochs=1"]),
    }
    train("tagger", folders["tagger"], **arguments)
    with pytest.raises(elmokit.DataError, match="nowhere does not exist"):
        train("tagger", "nowhere", overwrite=True, format="columns", **arguments)
    Tagger.load(tmp_path / "out")  # is still there
    wrong = arguments | {"settings": quick.changed(["encoder.tune_from=0"])}
    with pytest.raises(elmokit.ConfigError, match="tune_from is for"):
        train("tagger", folders["tagger"], overwrite=True, **wrong)
    Tagger.load(tmp_path / "out")  # so is it now
    other = arguments | {"settings": quick_settings("classifier", "training.epochs=1")}
    train("classifier", folders["classifier"], overwrite=True, **other)
    Classifier.load(tmp_path / "out")
    with pytest.raises(elmokit.ConfigError, match="holds a classifier, not a tagger"):
        Tagger.load(tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(elmokit.DataError, match="is a file, expected a folder"):
        train("tagger", folders["tagger"], **arguments | {"out": tmp_path / "file"})


def test_pos_tags_without_spans_and_without_crf(tmp_path, quick):
    row = "{}\t{}\t_\t{}" + "\t_" * 6
    words = [("Ada", "PROPN"), ("saw", "VERB"), ("it", "PRON")]
    block = "\n".join(row.format(number, *pair) for number, pair in enumerate(words, start=1))
    for part in ("train", "dev"):
        (tmp_path / f"xx-{part}.conllu").write_text(f"# text = Ada saw it\n{block}\n\n")
    settings = quick.changed(["head.crf=false", "training.class_weights=true"])
    found = train("tagger", tmp_path, encoder="chars", out=tmp_path / "out", settings=settings)
    assert found.scores.main == "accuracy"
    assert found.scores.value == 1.0
    prediction = Tagger.load(tmp_path / "out").predict([["Ada", "saw", "it"]])[0]
    assert (prediction.tags, prediction.spans) == (["PROPN", "VERB", "PRON"], [])


def test_several_labels(tmp_path):
    quick = quick_settings("classifier")
    rows = ["b\tsecond", "a|b\tfirst text", "\tnothing", "a\tthird one"]
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text("\n".join([rows[0], rows[2]]) + "\n")
    with pytest.raises(elmokit.DataError, match="line 2: found no label for the text; label the line"):
        train("classifier", tmp_path, encoder="chars", out=tmp_path / "one", settings=quick)
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    with pytest.raises(elmokit.DataError, match="line 2: found the labels a, b, expected one"):
        train("classifier", tmp_path, encoder="chars", out=tmp_path / "one", settings=quick)
    settings = quick.changed(["head.multi_label=true", "head.pooling=max", "training.class_weights=true"])
    (tmp_path / "none.tsv").write_text("\tnothing\n\tno\n")
    with pytest.raises(elmokit.DataError, match="neither this nor any other training text has a label"):
        train(
            "classifier", tmp_path / "none.tsv", dev=tmp_path / "none.tsv", encoder="chars",
            out=tmp_path / "none", settings=settings,
        )  # fmt: skip
    found = train("classifier", tmp_path, encoder="chars", out=tmp_path / "out", settings=settings)
    assert (found.scores.main, found.scores.value) == ("micro_f1", 1.0)
    model = Classifier.load(tmp_path / "out", device="auto")
    assert [found.labels for found in model.predict(["first text", "nothing"])] == [["a", "b"], []]
    assert evaluate(model, tmp_path / "dev.tsv").value == 1.0


@pytest.mark.parametrize(
    ("task", "name", "rows", "message"),
    [
        ("classifier", "a.ft", ["__label__x a"] * 3, "line 1: all examples have the label 'x', so there"),
        ("classifier", "a.ft", ["__label__x a", "__label__x b", "__label__y c", "__label__x d"],
         "line 1: 1 of 2 labels occur only once in the training data, too rarely to be learnt: y"),
        ("classifier", "a.tsv", [f"x{n}\tso very good {n}" for n in range(4)],
         "x3; if these are no labels, name the column that has them with label_column=NAME"),
        ("tagger", "a.txt", ["A B-PER", "b O", "c O", "D B-LOC"], "2 of 3 labels occur only once in the"),
        ("tagger", "a.txt", ["a O", "b O"], "all examples have the label 'O', so there is nothing"),
        ("tagger", "a.txt", ["A B-PER", "B B-PER"], "all examples have the label 'PER', so there"),
        ("classifier", "a.ft", ["__label__x a", "__label__y b"] * 2, ""),
    ],
)  # fmt: skip
def test_labels_that_teach_little_are_told_of(tmp_path, caplog, task, name, rows, message):
    (tmp_path / name).write_text("\n".join(rows))
    read = find_task(task).task_type.formats.read(tmp_path / name, tokenize=str.split)
    find_task(task).task_type.fit(quick_settings(task), read)
    assert message in caplog.text
    assert message or not caplog.text


def test_a_blank_text_has_no_label(folders, tmp_path):
    for task in ("classifier", "intent"):
        found = train(task, folders[task], encoder="chars", out=tmp_path / task, epochs=1)
        assert len(found.history) == 1
        blank, other = found.model.predict(["  ", "Ada saw Rome"])
        assert (blank.label, blank.labels, blank.scores, str(blank).strip()) == (None, [], {}, "")
        assert other.label in other.scores


def test_epochs_are_those_that_were_said(folders, tmp_path):
    settings = quick_settings("tagger", "training.epochs=3")
    found = train(
        "tagger", folders["tagger"], encoder="chars", out=tmp_path / "out", settings=settings, epochs=2
    )
    assert [entry["epoch"] for entry in found.history] == [1, 2]
    with pytest.raises(elmokit.ConfigError, match="epochs must be a whole number of at least 1, found 0"):
        train("tagger", folders["tagger"], encoder="chars", out=tmp_path / "none", epochs=0)
    assert not (tmp_path / "none").exists()


def test_slips_in_the_scheme_that_is_learnt_are_put_right(tmp_path, quick):
    rows = ["Ada S-PER\nsaw O\nNew B-LOC\nYork E-LOC"] * 40 + ["Ada I-PER\nsaw O\nRome I-LOC"] * 2
    for name in ("train.bioes", "dev.bioes"):
        (tmp_path / name).write_text("\n\n".join(rows))
    found = train("tagger", tmp_path, encoder="chars", out=tmp_path / "out", settings=quick)
    assert min(entry["loss"] for entry in found.history) > 0  # no step that the CRF forbids
    assert set(found.model.task.tags) == {"O", "S-PER", "S-LOC", "B-LOC", "E-LOC"}


def test_errors_with_half_a_surrogate_are_written(tmp_path):
    quick = quick_settings("classifier")
    for name, label in (("train.jsonl", "x"), ("dev.jsonl", "y")):
        lines = [{"text": "odd \udcff", "label": label}, {"text": "other", "label": "y"}]
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))
    train("classifier", tmp_path, encoder="chars", out=tmp_path / "out", settings=quick)
    assert "odd \\udcff" in (tmp_path / "out" / "errors.tsv").read_text()


def test_intents_are_loaded_as_such(folders, tmp_path):
    settings = quick_settings("intent", "training.epochs=1")
    train("intent", folders["intent"], encoder="chars", out=tmp_path / "out", settings=settings)
    shown = IntentModel.load(tmp_path / "out").predict("Ada saw Rome .").to_dict()
    assert json.loads(json.dumps(shown)) == shown | {"offsets": [list(pair) for pair in shown["offsets"]]}
    assert {"text", "tokens", "offsets", "tags", "spans", "labels", "scores"} <= shown.keys()


@pytest.mark.parametrize(
    ("encoder", "changes", "message"),
    [
        ("chars", ["encoder.tune_from=0"], "tune_from is for ELMo and BERT"),
        ("ELMO", ["encoder.tune_from=3"], "tune_from is 3, but the encoder's layers are 0 to 2"),
        ("chars", ["training.class_weights=true"], "a CRF scores whole sequences"),
        ("chars", ["head.multi_label=true"], "head: unknown setting 'multi_label'; known are rnn,"),
    ],
)
def test_settings_that_do_not_fit(encoder, changes, message, folders, elmo, quick, tmp_path):
    with pytest.raises(elmokit.ConfigError) as refused:
        train(
            "tagger", folders["tagger"], encoder=encoder.replace("ELMO", elmo), out=tmp_path / "out",
            settings=quick.changed(changes),
        )  # fmt: skip
    assert message in str(refused.value)


def test_few_data_are_gone_through_several_times_in_an_epoch(folders, quick, tmp_path, monkeypatch):
    steps, compute = [], TaskJob.compute

    def counted(job, step):
        steps.append(step)
        return compute(job, step)

    monkeypatch.setattr(TaskJob, "compute", counted)
    settings = quick.changed(["training.epochs=2", "training.least_steps=10"])
    found = train("tagger", folders["tagger"], encoder="chars", out=tmp_path / "out", settings=settings)
    examples = read_data(TaggerTask.formats, folders["tagger"], tokenize=str.split).train
    in_a_pass = math.ceil(len(examples) / settings.training.batch)
    passes = math.ceil(10 / in_a_pass)
    assert passes > 1
    assert steps == list(range(2 * passes * in_a_pass))
    assert found.tokens == passes * sum(len(example.tokens) for example in examples)


def test_dev_examples_that_are_held_out_are_told_of(tmp_path, caplog):
    rows = [f"{label}\tsome text {number}" for number in range(20) for label in ("a", "b")]
    (tmp_path / "train.tsv").write_text("\n".join(rows))
    settings = quick_settings("classifier", "training.epochs=1")
    train("classifier", tmp_path / "train.tsv", encoder="chars", out=tmp_path / "out", settings=settings)
    assert "no dev file: 4 training examples are held out" in caplog.text
