"""Explanations of decisions: complete, of the decision that was made, and the same for every task."""

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import elmokit
from elmokit.model import CRF, Packing
from elmokit.tasks import TASKS, core, find_task, load_task, train
from elmokit.tasks.core.attribution import attribute, log_odds
from elmokit.tasks.reading.data import AskedPassage, Passage, windows_of
from elmokit.tasks.reading.head import ReadingHead, ReadingHeadSettings
from elmokit.text import Token
from tests.task_data import quick_settings

EXPLAINED = [task for task in TASKS if hasattr(find_task(task).task_type, "decisions")]
INPUT = dict.fromkeys(EXPLAINED, "Grace Hopper left New York .") | {
    "entailment": ("Ada saw Rome .", "Ada saw it ."),
    "reading": ("Where ?", "Grace Hopper left New York ."),
    "roles": {"text": "Grace Hopper left New York .", "predicates": [2]},
    "coreference": "Ada saw Rome . She saw Rome",
}


@pytest.fixture(scope="module")
def trained(folders, elmo, tmp_path_factory):
    """A function that trains a model of a task once."""
    models = {}

    def get(task):
        if task not in models:
            out = tmp_path_factory.mktemp(task) / "out"
            settings = quick_settings(task, f"training.epochs={10 if task == 'coreference' else 4}")
            train(task, folders[task], encoder=f"{elmo}+chars", out=out, settings=settings)
            models[task] = load_task(out)
        return models[task]

    return get


def predicted(task, prediction):
    """The decisions of a prediction with their probabilities."""
    spans = [(span.label, span.probability) for span in getattr(prediction, "spans", [])]
    if task in ("classifier", "intent", "entailment"):
        spans = [(prediction.label, prediction.scores[prediction.label]), *spans]
    elif task == "reading":
        spans = [(prediction.answer.text, prediction.answer.probability)]
    elif task == "roles":
        for frame in prediction.frames:
            spans.append(("V", frame.probability))
            spans += [(role.label, role.probability) for role in frame.roles if role.label != "V"]
    return spans


@pytest.mark.parametrize("task", EXPLAINED)
def test_complete_and_about_the_decisions_that_were_made(trained, task):
    model = trained(task)
    found = elmokit.explain(model, INPUT[task])
    (prediction,) = model.predict([INPUT[task]])
    if task != "coreference":
        assert [one.label for one in found] == [label for label, _ in predicted(task, prediction)]
        assert [one.probability for one in found] == pytest.approx(
            [probability for _, probability in predicted(task, prediction)], abs=1e-4
        )
    assert found
    for one in found:
        whole = one.evidence - one.without
        allowed = max(0.01 * abs(whole), 2e-4)
        assert sum(word.contribution for word in one.words) == pytest.approx(whole, abs=allowed)
        of_layers = sum(sum(layer.contributions) for layer in one.layers)  # with their own rounding
        assert of_layers == pytest.approx(whole, abs=2 * allowed)
        assert one.error <= allowed
        assert all(one.texts[word.part][word.start : word.end] == word.text for word in one.words)
        assert len(one.words) == len({(word.part, word.start) for word in one.words})
        assert {layer.place for layer in one.layers} == {"input", "output"}
        assert str(one).startswith(one.title())
        assert one.label in one.html()
        assert one.to_dict()["words"]
    assert [one.to_dict() for one in elmokit.explain(model, INPUT[task])] == [one.to_dict() for one in found]


@pytest.mark.parametrize("task", EXPLAINED)
def test_nearest_examples(trained, task, folders):
    (data,) = (path for path in folders[task].iterdir() if path.name.startswith("train"))
    found = elmokit.explain(trained(task), INPUT[task], examples=data, k=2)
    for one in found:
        assert len(one.examples) == 2
        assert 1.0001 > one.examples[0].similarity >= one.examples[1].similarity
        assert one.examples[0].where.startswith(str(data))
        assert one.examples[0].label in str(one)
    if task == "tagger":  # the sentence itself is among them
        assert found[0].examples[0].text == "[Grace Hopper] left New York ."
        assert found[0].examples[0].similarity == pytest.approx(1.0, abs=1e-5)


def test_a_label_that_was_not_chosen(trained):
    model = trained("classifier")
    (chosen,) = elmokit.explain(model, "Ada saw Rome .")
    (other,) = elmokit.explain(model, "Ada saw Rome .", label="left")
    assert (chosen.label, other.label) == ("saw", "left")
    assert other.probability < chosen.probability
    with pytest.raises(elmokit.ConfigError, match=r"did not decide 'sold'; it decided left, likes, saw"):
        elmokit.explain(model, "Ada saw Rome .", label="sold")
    with pytest.raises(elmokit.ConfigError, match=r"that of the whole text: do not ask about a word"):
        elmokit.explain(model, "Ada saw Rome .", at="saw")


def test_at_a_word(trained):
    model = trained("tagger")
    (span,) = elmokit.explain(model, "Grace Hopper saw Rome .", at="hopper")
    assert (span.span, span.label) == ("Grace Hopper", "PER")
    (outside,) = elmokit.explain(model, "Grace Hopper saw Rome .", at="saw")
    assert (outside.span, outside.label) == ("saw", "O")
    (asked,) = elmokit.explain(model, "Grace Hopper saw Rome .", at=2, label="LOC")
    assert asked.probability < outside.probability
    for at, message in (("and", "not among the words"), (9, "from 0 to 4"), ("", "expected a word")):
        with pytest.raises(elmokit.ConfigError, match=message):
            elmokit.explain(model, "Grace Hopper saw Rome .", at=at)
    with pytest.raises(elmokit.ConfigError, match=r"stands at the positions 0, 2; .* such as at=0"):
        elmokit.explain(model, "Ada saw Ada .", at="Ada")
    with pytest.raises(elmokit.ConfigError, match=r"'ORG' is none of the model's labels, LOC, O, PER"):
        elmokit.explain(model, "Ada saw Ada .", at=0, label="ORG")


def test_roles_of_one_predicate(trained):
    given = {"tokens": ["Ada", "left", "Rome", "and", "saw", "Paris", "."], "predicates": [1, 4]}
    model = trained("roles")
    found = elmokit.explain(model, given, at="left")
    assert found[0].label == "V"
    assert all(one.of == "left" or "left" in one.span for one in found[1:])
    (predicate,) = elmokit.explain(model, given, at="saw", label="V")
    assert (predicate.span, predicate.label) == ("saw", "V")
    with pytest.raises(elmokit.ConfigError, match=r"did not decide 'ARG9'; it decided V"):
        elmokit.explain(model, given, label="ARG9")


def test_nothing_to_explain(trained):
    with pytest.raises(elmokit.DataError, match=r"no words, so there is nothing to explain"):
        elmokit.explain(trained("tagger"), "")
    with pytest.raises(elmokit.ConfigError, match=r"k must be .* at least 1"):
        elmokit.explain(trained("tagger"), "Ada", k=0)


def test_a_task_that_cannot_be_explained(trained, monkeypatch):
    model = trained("classifier")
    monkeypatch.setattr(model, "task", SimpleNamespace(name="own"))
    with pytest.raises(elmokit.ConfigError, match=r"decisions of own models cannot be explained"):
        elmokit.explain(model, "Ada saw Rome .")


def test_contributions_to_a_linear_score_are_exact(trained):
    """With mean pooling and no RNN the log-odds of two labels are linear in the vectors."""
    model = trained("classifier")
    task = model.task
    settings = quick_settings("classifier", "head.rnn=0", "head.pooling=mean")
    linear = type(model)(type(task)(settings, ("yes", "no")), model.encoders, tokenizer=model.tokenizer)
    item = linear.read("Ada saw Rome .")
    mixes = linear.inputs.weighted_layers([tuple(text) for text in item.texts])
    found = attribute(linear, item, mixes, 0)
    x, _ = linear.inputs(item.texts)
    weight = linear.head.linear.weight
    expected = x @ (weight[0] - weight[1]) / len(x)
    torch.testing.assert_close(found.tokens, expected.detach(), atol=1e-5, rtol=1e-4)
    assert found.points == 16
    bias = linear.head.linear.bias
    assert found.without == pytest.approx((bias[0] - bias[1]).item(), abs=1e-5)


def test_incomplete_contributions_are_said(trained, monkeypatch, caplog):
    monkeypatch.setattr("elmokit.tasks.core.attribution._MOST_POINTS", 1)
    monkeypatch.setattr("elmokit.tasks.core.attribution._FEWEST_POINTS", 1)
    (found,) = elmokit.explain(trained("classifier"), "Ada saw Rome .")
    assert found.error > 0.01 * abs(found.evidence - found.without)
    assert "take them as estimates" in caplog.text


def test_log_odds_of_a_label():
    logits = torch.tensor([[1.0, 2.0, 0.5], [60.0, 0.0, 0.0]])
    p = logits[0].softmax(0)[1].item()
    assert log_odds(logits, 1)[0].item() == pytest.approx(math.log(p / (1 - p)), rel=1e-5)
    assert log_odds(logits, 0)[1].item() == pytest.approx(60 - math.log(2))


def test_log_odds_of_a_run_of_tags():
    """Against the sum over all tag sequences."""
    count, length, start, size = 3, 4, 1, 2
    crf = CRF(torch.rand(count + 1, count + 1) > 0.1)
    torch.nn.init.normal_(crf.weight)
    lengths = torch.tensor([length, length])
    emissions = torch.randn(2 * length, count)
    allowed = torch.tensor([[True, False, True], [False, True, False]])
    found = crf.log_odds(emissions, Packing.of(lengths), torch.tensor([start, length + start]), allowed)
    weight = crf.weight.masked_fill(~crf.legal, -1e4).detach().double().numpy()
    for sentence, odds in enumerate(found.tolist()):
        own = emissions[sentence * length : (sentence + 1) * length].double().numpy()
        sums = {True: -np.inf, False: -np.inf}
        for path in product(range(count), repeat=length):
            steps = zip((count, *path), (*path, count), strict=True)
            score = sum(weight[a, b] for a, b in steps) + sum(own[t, tag] for t, tag in enumerate(path))
            inside = all(allowed[row, path[start + row]] for row in range(size))
            sums[inside] = np.logaddexp(sums[inside], score)
        assert odds == pytest.approx(sums[True] - sums[False], abs=1e-3)


@pytest.mark.parametrize("no_answer", [False, True])
def test_log_odds_of_an_answer_in_windows(no_answer):
    """Those of the probability that `decode` gives, also for a span in two windows."""
    settings = ReadingHeadSettings(modelling=5, dropout=0.0, rnn=0)
    head = ReadingHead(6, settings=settings, longest=12, no_answer=no_answer).eval()
    tokens = tuple(Token("w", 2 * place, 2 * place + 1) for place in range(20))
    item = AskedPassage(("Who", "?"), Passage("w " * 20, tokens), windows=windows_of(20, 8))
    lengths = torch.tensor([len(text) for text in item.texts])
    hidden = core.Hidden(torch.randn(int(lengths.sum()), 6), lengths, Packing.of(lengths))
    with torch.no_grad():
        (output,) = head.decode(hidden, [item])
        for span, probability in output.spans:
            found = head.evidence(hidden, [item], span).item()
            assert found == pytest.approx(math.log(probability / (1 - probability)), abs=1e-3)
        if no_answer:
            assert torch.sigmoid(head.evidence(hidden, [item], None)).item() == pytest.approx(output.none)
