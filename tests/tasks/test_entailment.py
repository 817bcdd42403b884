"""Pairs of texts: readers, the head by hand, scores, predictions."""

import math

import numpy as np
import pytest
import torch

import elmokit
from elmokit.model import Packing
from elmokit.tasks import evaluate, load_task, train
from elmokit.tasks.core import Columns, Hidden
from elmokit.tasks.entailment import (
    EntailmentHead,
    EntailmentHeadSettings,
    EntailmentTask,
    LabelledPair,
    pearson,
    score_numbers,
    spearman,
)
from elmokit.tasks.entailment.data import FORMATS
from elmokit.tasks.entailment.head import PairOutput
from tests.task_data import quick_settings

DIM = 6


def read(path, format=None, **columns):
    found = FORMATS.read(path, tokenize=str.split, format=format, columns=Columns(**columns))
    return [(" ".join(one.texts[0]), " ".join(one.texts[1]), one.label) for one in found]


@pytest.mark.parametrize(
    ("name", "content", "more"),
    [
        ("a.tsv", "yes\ta b\tc\nno\td\te\nyes\tf g\th i\n", {}),
        ("a.tsv", "label\tpremise\thypothesis\nyes\ta b\tc\nno\td\te\nyes\tf g\th i\n", {}),
        ("a.csv", "id,text_a,text_b,label\n1,a b,c,yes\n2,d,e,no\n3,f g,h i,yes\n", {}),
        ("a.tsv", "yes\ta b\tc\t3.5\nno\td\te\t4\nyes\tf g\th i\t5\n", {"text": "2,3", "label": "1"}),
        ("a.tsv", "A\tB\tC\na b\tc\tyes\nd\te\tno\nf g\th i\tyes\n", {"text": "a, b"}),
        (
            "a.txt",
            "gold_label\tsentence1_parse\tsentence1\tsentence2\tpairID\n"
            "yes\t(a b)\ta b\tc\t1\n-\t(x)\tx\ty\t2\nno\t(d)\td\te\t3\nyes\t(f g)\tf g\th i\t4\n",
            {},
        ),
        (
            "a.jsonl",
            '{"gold_label": "yes", "sentence1": "a b", "sentence2": ["c"]}\n'
            '{"gold_label": "-", "sentence1": "x", "sentence2": "y"}\n'
            '{"label": "no", "premise": "d", "hypothesis": "e"}\n'
            '{"label": "yes", "premise": "f g", "hypothesis": "h i"}\n',
            {},
        ),
    ],
)
def test_formats(tmp_path, caplog, name, content, more):
    (tmp_path / name).write_text(content)
    assert read(tmp_path / name, **more) == [("a b", "c", "yes"), ("d", "e", "no"), ("f g", "h i", "yes")]
    assert ("1 pairs with the label '-' are left out" in caplog.text) == (
        "-\t" in content or '"-"' in content
    )


def test_the_format_of_the_sts_benchmark(tmp_path):
    (tmp_path / "sts-train.csv").write_text('g\tf\t2012\t1\t3.8\tA "plane\tAn air plane\tsource\tsource\n')
    assert read(tmp_path / "sts-train.csv", format="sts") == [('A "plane', "An air plane", "3.8")]


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        (
            "a.tsv",
            "label\tpremise\thypothesis\nx\ta\n",
            {},
            "a.tsv, line 2: expected a label and 2 texts in 3",
        ),
        ("a.tsv", "label\tpremise\thypothesis\n\ta\tb\n", {}, "a.tsv, line 2: found no label for the pair"),
        ("a.tsv", "a\tb\tc\td\n", {}, "line 1: which columns are the texts, and which the label?"),
        ("a.tsv", "a\tb\tc\td\n", {"text": "a"}, "text_column='a' names 1 of 2 columns; put commas"),
        ("a.jsonl", '{"premise": "a", "label": "x"}', {}, "line 1: expected two texts, such as premise and"),
        ("a.jsonl", "[1]", {}, "line 1: expected one object per line, found '[1]'"),
        ("a.csv", "a\tb", {"format": "sts"}, "line 1: expected 7 columns separated by tabs"),
    ],
)
def test_bad_data(tmp_path, name, content, columns, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(elmokit.ElmoError) as refused:
        read(tmp_path / name, **columns)
    assert message in str(refused.value)


def hidden_of(texts):
    lengths = torch.tensor([len(text) for text in texts])
    return Hidden(torch.cat(texts), lengths, Packing.of(lengths))


def make_head(labels=("yes", "no"), span=(0.0, 1.0)):
    return EntailmentHead(
        DIM, labels, span=span, settings=EntailmentHeadSettings(compare=3, dropout=0.0)
    ).eval()


def by_hand(head, first, second):
    """The logits of one pair, by the equations of the module."""
    keys, other_keys = head.match(first), head.match(second)
    scores = keys @ other_keys.T
    pooled = []
    for own, other, weights in ((first, second, scores), (second, first, scores.T)):
        near = weights.softmax(dim=1) @ other
        compared = torch.relu(head.project(torch.cat([own, near, own - near, own * near], dim=1)))
        seen = head.compare.lstm(compared[:, None])[0][:, 0]
        pooled.append((seen.mean(dim=0), seen.max(dim=0).values))
    (mean_a, max_a), (mean_b, max_b) = pooled
    top = torch.tanh(head.hidden(torch.cat([mean_a, mean_b, max_a, max_b])))
    return head.linear(top), scores.T.softmax(dim=1)


def test_head_and_loss_against_the_equations():
    pairs = [(torch.randn(4, DIM), torch.randn(2, DIM)), (torch.randn(1, DIM), torch.randn(5, DIM))]
    head = make_head()
    hidden = hidden_of([text for pair in pairs for text in pair])
    with torch.no_grad():
        expected = [by_hand(head, *pair) for pair in pairs]
        outputs = head.decode(hidden, [None, None])
        loss = head.loss(hidden, [LabelledPair(((), ()), label) for label in ("no", "yes")])
    for output, (logits, alignment) in zip(outputs, expected, strict=True):
        assert list(output.scores.values()) == pytest.approx(logits.softmax(0).tolist(), abs=1e-6)
        torch.testing.assert_close(output.alignment, alignment)
    log = [logits.log_softmax(0) for logits, _ in expected]
    assert loss.item() == pytest.approx(-(log[0][1] + log[1][0]).item() / 2, abs=1e-6)


def test_padding_does_not_leak():
    short, long = [torch.randn(2, DIM), torch.randn(3, DIM)], [torch.randn(30, DIM), torch.randn(1, DIM)]
    head = make_head()
    with torch.no_grad():
        alone, together = (
            head.decode(hidden_of(short), [None]),
            head.decode(hidden_of(short + long), [None] * 2),
        )
    assert list(alone[0].scores.values()) == pytest.approx(list(together[0].scores.values()), abs=1e-6)
    torch.testing.assert_close(alone[0].alignment, together[0].alignment)
    nothing = head.decode(hidden_of([torch.zeros(0, DIM), torch.randn(2, DIM)]), [None])[0]
    assert all(math.isfinite(value) for value in nothing.scores.values())
    assert nothing.alignment.shape == (2, 0)


def test_scores_are_learnt_as_shares_of_their_range():
    head = make_head(labels=(), span=(1.0, 5.0))
    hidden = hidden_of([torch.randn(2, DIM), torch.randn(2, DIM)])
    with torch.no_grad():
        (output,) = head.decode(hidden, [None])
        loss = head.loss(hidden, [LabelledPair(((), ()), "4.0")]).item()
    share = (output.score - 1) / 4
    assert 1 < output.score < 5
    assert loss == pytest.approx(-0.75 * math.log(share) - 0.25 * math.log(1 - share), abs=1e-6)


def test_correlations():
    x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 10])
    assert pearson(x, y) == pytest.approx(
        13 / math.sqrt(5 * 50)
    )  # Σxy = 13, Σx² = 5, Σy² = 50 about the means
    assert spearman(x, y) == pytest.approx(0.8)  # 1 - 6 · 2 / (4 · 15)
    assert spearman(np.array([1.0, 1, 2]), np.array([1.0, 2, 3])) == pytest.approx(1.5 / math.sqrt(3))
    assert pearson(x, np.ones(4)) == 0.0
    outputs = [PairOutput("", {}, score, torch.zeros(0)) for score in y]
    found = score_numbers([LabelledPair(((), ()), str(score)) for score in x], outputs)
    assert (found.main, found.value) == ("pearson", pearson(x, y))


def test_similarity_is_learnt(tmp_path, elmo):
    words = ("Ada", "Alan", "Grace", "Rome", "Paris")
    rows = [
        f"{5 if a == b else 1}\t{a} fell .\t{b} fell ."
        for a in words
        for b in words
        for _ in range(1 + 4 * (a == b))
    ]
    (tmp_path / "all.tsv").write_text("\n".join(["score\ttext1\ttext2", *rows]) + "\n")
    settings = quick_settings(
        "entailment",
        *("head.regression=true", "training.epochs=10", "training.learning_rate=0.005"),
        "training.least_steps=30",
    )
    path = tmp_path / "all.tsv"
    found = train("entailment", path, dev=path, encoder="chars", out=tmp_path / "out", settings=settings)
    assert found.scores.main == "pearson"
    assert found.scores.value > 0.9
    model = load_task(tmp_path / "out")
    same, other = model.predict([("Ada fell .", "Ada fell ."), ("Ada fell .", "Rome fell .")])
    assert same.label is None
    assert 5 >= same.score > other.score >= 1
    assert evaluate(model, path).value == pytest.approx(found.scores.value)
    errors = (tmp_path / "out" / "errors.tsv").read_text().splitlines()
    assert all(
        abs(float(gold) - float(got)) > 0.4 for *_, gold, got in (row.split("\t") for row in errors[1:])
    )


def test_labels_that_are_no_scores():
    settings = quick_settings("entailment", "head.regression=true")
    with pytest.raises(elmokit.DataError, match=r"a, line 1: expected a number as the score .* found 'x'"):
        EntailmentTask.fit(settings, [LabelledPair((("a",), ("b",)), "x", "a, line 1")])
    with pytest.raises(elmokit.DataError, match=r"all scores are 2, so there is nothing to learn"):
        EntailmentTask.fit(settings, [LabelledPair((("a",), ("b",)), "2", "a, line 1")])


@pytest.fixture(scope="module")
def model(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("pairs") / "out"
    settings = quick_settings(
        "entailment", "training.epochs=8", "training.learning_rate=0.01", "training.least_steps=30"
    )
    found = train("entailment", folders["entailment"], encoder="words", out=out, settings=settings)
    assert found.scores.value == 1.0
    return load_task(out)


def test_predictions(model, tmp_path):
    prediction = model.predict({"premise": "Ada saw Paris .", "hypothesis": "Ada saw it ."})
    assert prediction.label == "yes"
    assert sum(prediction.scores.values()) == pytest.approx(1)
    assert str(prediction) == f"yes ({prediction.scores['yes']:.2f})\tAda saw Paris .\tAda saw it ."
    assert [len(row) for row in prediction.alignment] == [len(prediction.premise_tokens)] * 4
    assert [sum(row) for row in prediction.alignment] == pytest.approx([1] * 4)
    prediction.draw(tmp_path / "alignment.png")
    assert (tmp_path / "alignment.png").read_bytes().startswith(b"\x89PNG")
    assert model.predict("").label is None
    with pytest.raises(elmokit.DataError, match="no alignment to draw"):
        model.predict("").draw(tmp_path / "none.png")


@pytest.mark.parametrize("given", ["one text", "a\tb\tc", ("a",), {"premise": "a"}, 3])
def test_what_is_no_pair(model, given):
    with pytest.raises(elmokit.ElmoError, match=r"expected (two texts with a tab|a pair of texts)"):
        model.predict([given])
