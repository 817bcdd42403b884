"""Scores worked by hand, with conlleval's rules."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from elmokit.base import drawing
from elmokit.tasks import scores_text, task_settings
from elmokit.tasks.classifier import ClassifierTask, LabelledText, PredictedLabels
from elmokit.tasks.core import pictures
from elmokit.tasks.core.counting import bootstrap, count_items, score_interval, wilson
from elmokit.tasks.core.evaluation import write_errors
from elmokit.tasks.intent import IntentTask
from elmokit.tasks.intent.data import IntentText
from elmokit.tasks.intent.head import PredictedIntent
from elmokit.tasks.tagger import PredictedTags, TaggedText, TaggerTask


def tagger(scheme="BIO"):
    return TaggerTask(task_settings("tagger", ["head.scheme=BIO"]), scheme=scheme)


def labelled(*rows):
    return [LabelledText((), tuple(row)) for row in rows]


def tagged(*rows):
    examples, outputs = [], []
    for number, (gold, predicted) in enumerate(rows, start=1):
        tags = tuple(gold.split())
        examples.append(TaggedText(tuple(f"w{i}" for i in range(len(tags))), tags, f"f, line {number}"))
        outputs.append(PredictedTags(predicted.split()))
    return examples, outputs


def test_entities():
    """One right; one of the wrong kind; one cut short; one missed; one made up."""
    examples, outputs = tagged(
        ("B-PER I-PER O B-LOC", "B-PER I-PER O B-ORG"),
        ("B-LOC I-LOC O B-PER", "B-LOC O O O"),
        ("O O", "O B-PER"),
        ("O", "O"),
    )
    found = tagger().score(examples, outputs)
    assert found.main == "f1"
    assert found.values["precision"] == pytest.approx(1 / 4)
    assert found.values["recall"] == pytest.approx(1 / 4)
    assert found.value == pytest.approx(1 / 4)
    assert found.values["token_accuracy"] == pytest.approx(7 / 11)
    assert {one.label: (one.precision, one.recall, one.support) for one in found.classes} == {
        "PER": (0.5, 0.5, 2),
        "LOC": (0.0, 0.0, 2),
        "ORG": (0.0, 0.0, 0),
    }
    assert found.values["macro_f1"] == pytest.approx(0.5 / 3)
    low, high = found.interval
    assert 0 <= low <= found.value <= high <= 1
    row = dict(zip(found.labels, found.confusion[found.labels.index("LOC")], strict=True))
    assert row == {"LOC": 1, "O": 1, "ORG": 1, "PER": 0}


def test_illegal_tags_count_by_conllevals_rules_unless_strict():
    """I-LOC without B is a span for conlleval; strictly it is none."""
    examples, outputs = tagged(("O B-LOC I-LOC", "O I-LOC I-LOC"), ("B-PER B-PER", "B-PER B-PER"))
    lenient = tagger().score(examples, outputs)
    strict = tagger().score(examples, outputs, strict=True)
    assert lenient.value == 1.0
    assert strict.values["precision"] == 1.0
    assert strict.values["recall"] == pytest.approx(2 / 3)


def test_agrees_with_nervaluate():
    nervaluate = pytest.importorskip("nervaluate", reason="pip install nervaluate to compare with it")
    random = np.random.default_rng(0)
    tags = ["O", "O", "B-A", "I-A", "B-B", "I-B"]
    rows = []
    for _ in range(200):
        legal = []
        for tag in random.choice(tags, size=8):
            ok = tag[0] != "I" or (legal and legal[-1][1:] == tag[1:])
            legal.append(str(tag) if ok else "O")
        other = [tag if random.random() < 0.8 or tag[0] != "O" else "B-A" for tag in legal]
        rows.append((" ".join(legal), " ".join(other)))
    examples, outputs = tagged(*rows)
    found = tagger().score(examples, outputs)
    judge = nervaluate.Evaluator(
        [list(e.tags) for e in examples], [o.tags for o in outputs], tags=["A", "B"], loader="list"
    )
    strict = judge.evaluate()["overall"]["strict"]
    assert found.values["precision"] == pytest.approx(strict.precision)
    assert found.values["recall"] == pytest.approx(strict.recall)
    assert found.value == pytest.approx(strict.f1)


def test_parts_of_speech_have_an_accuracy():
    examples, outputs = tagged(("NOUN VERB", "NOUN NOUN"), ("NOUN", "NOUN"))
    found = tagger("plain").score(examples, outputs)
    assert (found.main, found.value) == ("accuracy", pytest.approx(2 / 3))


def test_classes():
    outputs = [PredictedLabels([label]) for label in "abbb"]
    found = ClassifierTask(task_settings("classifier")).score(labelled(*"aabb"), outputs)
    assert (found.main, found.value) == ("accuracy", 0.75)
    assert found.values["macro_f1"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert (found.labels, found.confusion) == (["a", "b"], [[1, 1], [0, 2]])


def test_several_labels():
    outputs = [PredictedLabels(labels) for labels in (["a"], [], ["a", "c"])]
    task = ClassifierTask(task_settings("classifier", ["head.multi_label=true"]))
    found = task.score(labelled("ab", "c", "a"), outputs)
    assert (found.main, found.value) == ("micro_f1", pytest.approx(2 * 2 / (3 + 4)))
    assert found.confusion == []


def test_intents():
    slots, tags = tagged(("B-X", "B-X"), ("O", "O"))
    examples = list(map(IntentText, slots, labelled(["play"], ["stop"])))
    outputs = [PredictedIntent(one, PredictedLabels(["play"])) for one in tags]
    task = IntentTask(task_settings("intent", ["head.scheme=BIO"]), scheme="BIO")
    found = task.score(examples, outputs)
    assert (found.values["slot_f1"], found.values["intent_accuracy"]) == (1.0, 0.5)
    assert (found.main, found.value) == ("score", 0.75)


def test_bootstrap_of_a_coin():
    """For 400 throws the 95 % interval of a share of one half is about 1.96 · √(0.25 / 400) = 0.049 wide."""
    throws = np.array([[k % 2, 1, 1] for k in range(400)])
    low, high = bootstrap([throws])
    assert low == pytest.approx(0.451, abs=0.008)
    assert high == pytest.approx(0.549, abs=0.008)
    assert bootstrap([throws]) == (low, high)
    assert bootstrap([throws[:0]]) == (0.0, 0.0)


def test_intervals_of_few_examples_are_wide():
    """Newcombe 1998, table I: 81 of 263 and 15 of 148 by Wilson's method."""
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15 / 148, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    right = np.ones((30, 3), np.int64)
    assert score_interval([right]) == pytest.approx((0.8865, 1.0), abs=5e-5)  # all right, but only 30
    assert score_interval([2 * right]) == score_interval([right])  # entities, two in each
    assert score_interval([right * [0, 1, 1]])[1] == pytest.approx(1 - 0.8865, abs=5e-5)  # all wrong
    assert score_interval([right[:0]]) == (0.0, 0.0)


def test_nothing_there_and_nothing_found():
    assert count_items([set()], [set()]).total() == (0.0, 0.0, 0.0)
    assert "label" in scores_text(tagger().score(*tagged(("O", "O"))))


def test_errors_are_listed(tmp_path):
    examples, outputs = tagged(("B-PER O", "B-PER O"), ("B-PER I-PER O", "B-PER O B-LOC"))
    write_errors(tmp_path / "errors.tsv", SimpleNamespace(task=tagger()), examples, outputs)
    assert (tmp_path / "errors.tsv").read_text().splitlines() == [
        "where\ttext\tgold\tpredicted",
        "f, line 2\tw0 w1 w2\tPER:w0 w1@0\tPER:w0@0 | LOC:w2@2",
    ]


def test_a_comparison_is_drawn_where_its_differences_can_be_seen(tmp_path, monkeypatch):
    figures = []

    @contextmanager
    def watched(*given, **settings):
        with drawing(*given, **settings) as figure:
            figures.append(figure)
            yield figure

    monkeypatch.setattr(pictures, "drawing", watched)
    given = {"a": (0.912, 0.004), "中文": (0.917, None), "all": (1.0, 0.0)}
    found = [
        SimpleNamespace(name=name, score=score, deviation=spread, metric="accuracy")
        for name, (score, spread) in given.items()
    ]
    pictures.draw_comparison(found, tmp_path / "c.png")
    (axes,) = figures[0].axes
    low, high = axes.get_xlim()
    assert 85 < low < 91
    assert 100 <= high <= 101
    assert [text.get_text() for text in axes.texts] == ["91.2 ± 0.4", "91.7", "100.0 ± 0.0"]

    history = [{"epoch": 1, "dev": 0.5, "loss": 1.0}]
    pictures.draw_learning_curve(history, "accuracy", tmp_path / "l.png")
    below = figures[1].axes[1]
    assert all(tick == round(tick) for tick in below.get_xticks() if 0.5 <= tick <= 1.5)
