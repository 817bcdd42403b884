"""Reading comprehension: the format of SQuAD, the head against brute force, scores, answers."""

import json
import math
from itertools import pairwise

import pytest
import torch

import elmokit
from elmokit.model import Packing
from elmokit.tasks import evaluate, load_task, train
from elmokit.tasks.core import Hidden
from elmokit.tasks.reading import (
    AskedPassage,
    FoundAnswers,
    Passage,
    ReadingHead,
    ReadingHeadSettings,
    ReadingTask,
)
from elmokit.tasks.reading.data import FORMATS, windows_of
from elmokit.tasks.reading.scores import cmrc_exact, cmrc_f1, score_answers, squad_exact, squad_f1
from elmokit.text import TokenizerSpec, tokens_from_list
from tests.task_data import quick_settings

DIM = 5
LONGER = ("training.epochs=8", "training.learning_rate=0.01", "training.least_steps=30", "head.modelling=8")


def squad(*questions, context="Ada saw New York . Ada left ."):
    return {"data": [{"paragraphs": [{"context": context, "qas": list(questions)}]}]}


def asked(*answers, question="Who ?", **more):
    return {
        "id": "q1",
        "question": question,
        "answers": [{"text": t, "answer_start": s} for t, s in answers],
        **more,
    }


def read(tmp_path, data):
    (tmp_path / "a.json").write_text(data if isinstance(data, str) else json.dumps(data))
    tokenize = FORMATS.tokenizer(TokenizerSpec(name="whitespace"))
    return FORMATS.read(tmp_path / "a.json", tokenize=tokenize)


def test_answers_and_their_tokens(tmp_path, caplog):
    one, none = read(
        tmp_path,
        squad(
            asked(("New York", 8), ("Ada", 18), ("Ada", 16), ("ew Yor", 9), ("Rome", -1)),
            asked(("Ada", 0), is_impossible=True),
        ),
    )
    assert one.question == ("Who", "?")
    assert one.spans == ((2, 3), (5, 5))  # nearest to where it should be; a part of a word is the word
    assert one.answers == ("New York", "Ada", "Ada", "ew Yor", "Rome")
    assert (none.answers, none.spans) == ((), ())
    assert "2 answers are not where the file says" in caplog.text
    assert one.passage is none.passage


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", "a.json: is no JSON"),
        ({"data": 3}, 'a.json: expected a list of objects as "data", as SQuAD has, found 3'),
        (
            {"data": [{"paragraphs": [{}]}]},
            'article 1, paragraph 1: expected a string as "context", found None',
        ),
        (squad(asked(), context=" "), "article 1, paragraph 1: the passage is empty"),
        (squad(asked(("Ada", "0"))), "question q1, answer 1: expected a text and its answer_start"),
        (squad({"id": "q1"}), 'question q1: expected a string as "question", found None'),
        (squad({"id": "q1", "question": "Who ?"}), 'question q1: expected a list of objects as "answers"'),
        (squad(asked(("Rome", 3))), "question q1: the answer 'Rome' is not in the passage"),
        (squad(asked()), "question q1: neither this nor any other question has an answer"),
    ],
)
def test_bad_data(tmp_path, data, message):
    known = read(tmp_path, squad(asked(("Ada", 0)))) if "Rome" in message else []

    def fit():
        ReadingTask.fit(quick_settings("reading"), known + read(tmp_path, data))

    with pytest.raises(elmokit.DataError) as refused:
        fit()
    assert message in str(refused.value)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 28, 29, 100])
def test_windows_cover_the_passage(count):
    windows = windows_of(count, 16)
    assert {place for start, end in windows for place in range(start, end)} == set(range(count))
    assert all(end - start == min(16, count) for start, end in windows)
    assert all(after[0] < before[1] for before, after in pairwise(windows))
    assert windows[-1][1] == count


def example_of(count, *, spans=(), answers=("x",), size=1000):
    passage = Passage(" ".join("abcdefghij"[:count]), tuple(tokens_from_list(list("abcdefghij"[:count]))))
    return AskedPassage(("who",) * 2, passage, answers, spans, windows_of(count, size))


def hidden_of(examples, vectors):
    """The vectors of a passage are the same in each of its windows."""
    texts = []
    for example, (question, passage) in zip(examples, vectors, strict=True):
        texts += [question, *(passage[start:end] for start, end in example.windows)]
    lengths = torch.tensor([len(text) for text in texts])
    return Hidden(torch.cat(texts), lengths, Packing.of(lengths))


def make_head(*, no_answer=False, longest=3):
    settings = ReadingHeadSettings(modelling=2, dropout=0.0)
    return ReadingHead(DIM, settings=settings, longest=longest, no_answer=no_answer).eval()


def vectors_of(count):
    return torch.randn(2, DIM), torch.randn(count, DIM)


@torch.no_grad()
def brute_force(head, example, vectors):
    """The probability of each span, and of no answer, by the definition."""
    starts, ends, none = head._scores(hidden_of([example], [vectors]), [example])
    spans = {}
    for row, (begin, end) in enumerate(example.windows):
        for i in range(end - begin):
            for j in range(i, end - begin):
                weight = math.exp(starts[row, i] + ends[row, j])
                spans[begin + i, begin + j] = spans.get((begin + i, begin + j), 0.0) + weight
    extra = 0.0 if none is None else math.exp(none[0])
    total = sum(spans.values()) + extra
    return {span: weight / total for span, weight in spans.items()}, extra / total


@pytest.mark.parametrize("no_answer", [False, True])
@pytest.mark.parametrize("size", [4, 1000])  # windows, or the passage as a whole
def test_loss_and_answers_against_brute_force(no_answer, size):
    head = make_head(no_answer=no_answer)
    examples = [
        example_of(7, spans=((1, 2), (4, 4)), size=size),
        example_of(10, spans=((9, 9),), size=size),
        example_of(2, spans=((0, 1),), size=size),
    ]
    if no_answer:
        examples.append(example_of(5, answers=(), size=size))
    vectors = [vectors_of(len(example.passage.tokens)) for example in examples]
    hidden = hidden_of(examples, vectors)
    with torch.no_grad():
        loss, outputs = head.loss(hidden, examples).item(), head.decode(hidden, examples)
    expected = []
    for example, own, output in zip(examples, vectors, outputs, strict=True):
        spans, none = brute_force(head, example, own)
        gold = sum(spans[span] for span in example.spans) if example.answers else none
        expected.append(-math.log(gold))
        assert output.none == (pytest.approx(none, abs=1e-6) if no_answer else None)
        if size == 1000:
            allowed = {span: share for span, share in spans.items() if span[1] - span[0] < 3}
            ranked = sorted(allowed, key=allowed.__getitem__, reverse=True)[:5]
            assert [span for span, _ in output.spans] == ranked
        assert all(share <= spans[span] + 1e-6 and span[1] - span[0] < 3 for span, share in output.spans)
    assert loss == pytest.approx(sum(expected) / len(expected), abs=1e-5)


@torch.no_grad()
def by_hand(head, question, passage):
    """s and e of one passage, by the equations of the module."""

    def scores(match, x, y):
        return (x * match.both) @ y.T + match.first(x) + match.second(y).T

    match = scores(head.match, passage, question)
    near = match.softmax(dim=1) @ question
    about = match.amax(dim=1).softmax(dim=0) @ passage
    x = torch.relu(head.merge(torch.cat([passage, near, passage * near, passage * about], dim=1)))
    x = head.modelling.lstm(x[:, None])[0][:, 0]
    own = scores(head.match_self, x, x).fill_diagonal_(-math.inf).softmax(dim=1) @ x
    x = x + torch.relu(head.merge_self(torch.cat([x, own, x * own], dim=1)))
    start = head.starts.lstm(x[:, None])[0][:, 0]
    end = head.ends.lstm(torch.cat([x, start], dim=1)[:, None])[0][:, 0]
    return head.start(start)[:, 0], head.end(end)[:, 0]


def test_the_scores_against_the_equations_and_without_leaks():
    head = make_head()
    examples = [example_of(3), example_of(9)]
    vectors = [vectors_of(3), (torch.randn(6, DIM), torch.randn(9, DIM))]
    with torch.no_grad():
        starts, ends, _ = head._scores(hidden_of(examples, vectors), examples)
    for row, (question, passage) in enumerate(vectors):
        start, end = by_hand(head, question, passage)
        torch.testing.assert_close(starts[row, : len(passage)], start)
        torch.testing.assert_close(ends[row, : len(passage)], end)


def test_a_question_without_words_and_a_passage_without():
    for no_answer in (False, True):
        head = make_head(no_answer=no_answer)
        example = example_of(0, answers=())
        (output,) = head.decode(hidden_of([example], [(torch.zeros(0, DIM), torch.zeros(0, DIM))]), [example])
        assert output.spans == []
        assert output.best is None
    example = example_of(3)
    (output,) = make_head().decode(
        hidden_of([example], [(torch.zeros(0, DIM), torch.randn(3, DIM))]), [example]
    )
    assert 0 < output.spans[0][1] <= 1


@pytest.mark.parametrize(
    ("truth", "found", "f1", "exact"),
    [
        ("the Denver Broncos", "Denver Broncos!", 1, 1),
        ("Denver Broncos", "Broncos", 2 / 3, 0),
        ("The a", "an", 1, 1),  # nothing is left of either
        ("a b", "the", 0, 0),
        ("1990s", "Rome", 0, 0),
    ],
)
def test_scores_of_squad(truth, found, f1, exact):
    assert squad_f1(truth, found) == pytest.approx(f1)
    assert squad_exact(truth, found) == exact


@pytest.mark.parametrize(
    ("truth", "found", "f1", "exact"),
    [
        ("《战国无双3》", "战国无双3", 1, 1),
        ("光荣和ω-force", "光荣", 2 * 2 / (4 + 2), 0),
        ("1963年", "1963年2月", 2 * 2 / (2 + 4), 0),
        ("上海市", "上北海", 2 / 6, 0),  # the longest run counts
        ("上海", "北京", 0, 0),
        ("3.5米", "5米", 2 / 4, 0),  # 3.5 is one word
    ],
)
def test_scores_of_cmrc(truth, found, f1, exact):
    assert cmrc_f1(truth, found) == pytest.approx(f1)
    assert cmrc_exact(truth, found) == exact


def test_the_best_answer_counts_and_no_answer_can_be_right():
    examples = [example_of(3, answers=("z", "a b")), example_of(3, answers=()), example_of(3, answers=())]
    outputs = [
        FoundAnswers([((0, 1), 0.9)], 0.1),
        FoundAnswers([((0, 0), 0.2)], 0.8),
        FoundAnswers([((1, 1), 0.9)], 0.1),
    ]
    found = score_answers(examples, outputs, chinese=False)
    assert found.values == pytest.approx(
        {"f1": 2 / 3, "exact_match": 2 / 3, "f1_answerable": 1.0, "f1_unanswerable": 0.5}
    )
    assert found.main == "f1"


@pytest.fixture(scope="module")
def model(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("reading") / "out"
    settings = quick_settings("reading", *LONGER)
    found = train("reading", folders["reading"], encoder="words", out=out, settings=settings)
    assert found.scores.value == 1.0
    return load_task(out)


def test_predictions(model, folders):
    passage = "Grace Hopper left New York ."
    prediction = model.predict({"question": "Where ?", "context": passage})
    assert prediction.answer.text == "New York" == passage[prediction.answer.start : prediction.answer.end]
    assert 0.5 < prediction.answer.probability <= 1
    assert prediction.no_answer is None
    assert prediction.candidates[0] == prediction.answer
    assert str(prediction) == f"New York ({prediction.answer.probability:.2f})\tWhere ?"
    assert model.predict("Who ?\tAda saw Rome .").to_dict()["answer"]["text"] == "Ada"
    assert evaluate(model, folders["reading"] / "dev.json").values == {"f1": 1.0, "exact_match": 1.0}
    assert model.predict("").answer is None


def test_a_passage_is_read_once_for_all_its_questions(model, monkeypatch):
    read = []
    forward = type(model.inputs).forward
    monkeypatch.setattr(
        type(model.inputs), "forward", lambda self, texts: (read.extend(texts), forward(self, texts))[1]
    )
    asked = [(question, "Grace Hopper left New York .") for question in ("Who ?", "Where ?", "Who ?")]
    together = [one.to_dict() for one in model.predict(asked)]
    assert sorted(map(len, read)) == [2, 2, 6]
    assert together == [model.predict([one])[0].to_dict() for one in asked]


@pytest.mark.parametrize("given", ["one text", "a\tb\tc", ("a",), {"question": "a"}, 3])
def test_what_is_no_question(model, given):
    with pytest.raises(elmokit.ElmoError, match=r"expected a question and (a|its) passage"):
        model.predict([given])


def test_questions_without_answer_are_learnt(tmp_path):
    people, passages = ("Ada", "Alan", "Grace"), []
    for person in people:
        for known in (True, False):
            text = f"{person} left ." if known else "Rome fell ."
            answers = [{"text": person, "answer_start": 0}] if known else []
            question = {"id": person, "question": "Who ?", "answers": answers, "is_impossible": not known}
            passages.append({"context": text, "qas": [question]})
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"data": [{"paragraphs": passages}]}))
    settings = quick_settings("reading", *LONGER)
    found = train("reading", path, dev=path, encoder="words", out=tmp_path / "out", settings=settings)
    assert found.scores.values["f1_unanswerable"] == found.scores.values["f1_answerable"] == 1.0
    known, unknown = load_task(tmp_path / "out").predict([("Who ?", "Ada left ."), ("Who ?", "Rome fell .")])
    assert known.answer.text == "Ada"
    assert unknown.answer is None
    assert str(unknown).startswith(f"no answer ({unknown.no_answer:.2f})")
    assert known.no_answer < 0.5 < unknown.no_answer
