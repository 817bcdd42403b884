"""Semantic roles: files, arguments by CoNLL-2005's rules, loss and tags against all frames one by one."""

import pytest
import torch

import elmokit
from elmokit.model import Packing
from elmokit.tasks import find_task, train
from elmokit.tasks.core import Hidden
from elmokit.tasks.roles import (
    Frame,
    FramedSentence,
    PredictedFrame,
    RolesHead,
    RolesHeadSettings,
    RolesInput,
    arguments_of,
    score_roles,
)
from elmokit.tasks.roles.prediction import present_frames
from elmokit.tasks.tagger import PredictedTags
from elmokit.tasks.tagger.schemes import Span
from elmokit.text import TokenizerSpec, make_tokenizer
from tests.task_data import quick_settings

LEARN = ("head.frame_rnn=16", "head.frame_dropout=0", "head.frame_layers=1", "training.batch=2")
SENTENCE = """\
# sent_id = 1
1\tAda\tNNP\t_\t_\tB-ARG0\tB-ARG0
2\tgave\tVBD\tgive\tgive.01\tB-V\tO
3\ttalks\tNNS\ttalk\ttalk.01\tB-ARG1\tB-V
4\taway\tRB\t_\t_\tB-C-V\tO
"""


def read(path, text):
    path.write_text(text)
    return find_task("roles").task_type.formats.read(path, tokenize=str.split)


def test_frames_are_read(tmp_path):
    (found,) = read(tmp_path / "a.tsv", SENTENCE)
    assert found.tokens == ("Ada", "gave", "talks", "away")
    assert found.frames == (
        Frame(1, ("B-ARG0", "B-V", "B-ARG1", "B-C-V")),
        Frame(2, ("B-ARG0", "O", "B-V", "O")),
    )
    assert found.where.endswith("a.tsv, line 2")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("\tB-V\tO\n", "\tB-V\n"), r"line 3: found 6 columns, but 7 in the first line"),
        (("talk\ttalk.01", "_\t_"), r"line 2: the sentence has 1 predicates .* but 2 columns of tags"),
        (("B-V\tO\n", "O\tO\n"), r"line 3: the predicate 'gave' is tagged 'O' in its own column"),
        (("\tB-C-V\t", "\tI-ARG0\t"), r"line 5: I-ARG0 follows B-ARG1; expected B-ARG0"),
        (("\tB-C-V\t", "\tX-ARG0\t"), r"line 5: 'X-ARG0' is no tag of a role"),
        (("3\ttalks\tNNS\ttalk\ttalk.01\tB-ARG1\tB-V", "3 talks"), r"line 4: expected at least 5 columns"),
    ],
)
def test_bad_lines_are_named(tmp_path, changes, message):
    with pytest.raises(elmokit.DataError, match=message):
        read(tmp_path / "a.tsv", SENTENCE.replace(*changes))


def test_no_predicate_at_all():
    task = find_task("roles").task_type
    with pytest.raises(elmokit.DataError, match="no sentence has a predicate"):
        task.fit(task.settings_type(), [FramedSentence(("Rome",), (), "file, line 1")])


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-ARG1 I-ARG1 B-V O B-C-ARG1", [("ARG1", ((0, 2), (4, 5)))]),  # pieces are one argument
        ("B-C-ARG1 B-V B-ARG1", [("ARG1", ((0, 1),)), ("ARG1", ((2, 3),))]),  # nothing to continue yet
        ("B-ARG1 B-ARG1 B-C-ARG1 B-V", [("ARG1", ((0, 1),)), ("ARG1", ((1, 2), (2, 3)))]),  # the latest
        ("B-ARG0 B-R-ARG0 B-V B-C-V", [("ARG0", ((0, 1),)), ("R-ARG0", ((1, 2),))]),  # V does not count
        ("O B-V O", []),
    ],
)
def test_arguments(tags, expected):
    assert arguments_of(tags.split()) == expected


def predicted(place, tags, *, found=True):
    return PredictedFrame(place, found, 0.9 if found else 0.1, PredictedTags(tags.split()))


def test_scores_worked_by_hand():
    examples = [
        FramedSentence(tuple("abcde"), (Frame(1, tuple(["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O"])),)),
        FramedSentence(tuple("ab"), (Frame(0, ("B-V", "B-ARG1")),)),
    ]
    outputs = [
        # One of two arguments; a predicate that is none, with an argument.
        [predicted(1, "B-ARG0 B-V B-ARG1 O O"), predicted(4, "O O O B-ARG1 B-V")],
        [predicted(0, "B-V B-ARG1", found=False)],  # right, but the model would not have looked for it
    ]
    scores = score_roles(examples, outputs)
    assert scores.values["precision"] == pytest.approx(2 / 3)
    assert scores.values["recall"] == pytest.approx(2 / 3)
    assert scores.value == pytest.approx(2 / 3)
    assert scores.values["predicate_f1"] == pytest.approx(1 / 2)
    assert scores.values["found_f1"] == pytest.approx(2 / 6)


@pytest.fixture
def head():
    settings = RolesHeadSettings(frame_rnn=3, frame_layers=2, frame_dropout=0)
    return RolesHead(5, ["O", "B-V", "B-ARG0", "I-ARG0"], settings).eval()


def hidden_of(lengths):
    lengths = torch.tensor(lengths)
    vectors = torch.randn(int(lengths.sum()), 5, generator=torch.Generator().manual_seed(1))
    return Hidden(vectors, lengths, Packing.of(lengths))


def alone(hidden, row):
    starts = [0, *hidden.lengths.cumsum(0).tolist()]
    lengths = hidden.lengths[row : row + 1]
    return Hidden(hidden.vectors[starts[row] : starts[row + 1]], lengths, Packing.of(lengths))


def test_loss_is_that_of_each_frame(head):
    """The sum over frames of the tags' loss, and over tokens of that of being a predicate."""
    frames = [
        (Frame(0, ("B-V", "B-ARG0", "I-ARG0")), Frame(2, ("B-ARG0", "I-ARG0", "B-V"))),
        (),
        (Frame(1, ("B-ARG0", "B-V")),),
    ]
    examples = [FramedSentence(tuple("abc"[:n]), f) for n, f in zip((3, 1, 2), frames, strict=True)]
    hidden = hidden_of([3, 1, 2])
    total, tokens = 0.0, 0
    for row, example in enumerate(examples):
        own = alone(hidden, row)
        shares = torch.sigmoid(head.finder(own.vectors)[:, 0])
        gold = torch.tensor([place in example.predicates for place in range(len(example.tokens))])
        found = -torch.where(gold, shares, 1 - shares).log().sum() / 6
        total += found.item()
        for frame in example.frames:
            one = FramedSentence(example.tokens, (frame,))
            alone_loss = head.loss(own, [one]) - torch.nn.functional.binary_cross_entropy(
                shares, (torch.arange(len(shares)) == frame.predicate).float()
            )
            total += alone_loss.item() * len(example.tokens) / 8
            tokens += len(example.tokens)
    assert tokens == 8
    assert head.loss(hidden, examples).item() == pytest.approx(total, rel=1e-4)


def test_the_predicate_matters_and_the_batch_does_not(head):
    hidden = hidden_of([4, 2, 3])
    items = [RolesInput("", [], predicates) for predicates in ((0, 2), (1,), ())]
    together = head.decode(hidden, items)
    assert {frame.predicate for frame in together[0]} >= {0, 2}
    for row, item in enumerate(items):
        (own,) = head.decode(alone(hidden, row), [item])
        assert [(f.predicate, f.tags.tags) for f in own] == [
            (f.predicate, f.tags.tags) for f in together[row]
        ]
        for one, other in zip(own, together[row], strict=True):
            assert one.tags.probabilities == pytest.approx(other.tags.probabilities, abs=1e-5)
    first, second = (f.tags.probabilities for f in together[0] if f.predicate in (0, 2))
    assert first != pytest.approx(second, abs=1e-3)


def test_no_predicates_no_frames(head):
    torch.nn.init.constant_(head.finder.bias, -100.0)
    assert head.decode(hidden_of([2, 0]), [RolesInput("", []), RolesInput("", [])]) == [[], []]
    loss = head.loss(hidden_of([2]), [FramedSentence(("a", "b"), ())])
    assert loss.item() == pytest.approx(0, abs=1e-3)


@pytest.fixture(scope="module")
def model(folders, elmo, tmp_path_factory):
    settings = quick_settings("roles", *LEARN)
    out = tmp_path_factory.mktemp("roles") / "out"
    found = train("roles", folders["roles"], encoder=f"{elmo}+chars", out=out, settings=settings)
    assert found.scores.value > 0.95
    assert found.scores.values["found_f1"] > 0.95
    return found.model


def test_a_text_with_its_frames(model):
    found = model.predict("Grace Hopper left New York .")
    assert str(found) == "[ARG0 Grace Hopper] [V left] [ARG1 New York] ."
    (frame,) = found.frames
    assert (frame.predicate, frame.position, frame.start, frame.end) == ("left", 2, 13, 17)
    assert [(span.label, span.text) for span in frame.roles] == [
        ("ARG0", "Grace Hopper"),
        ("V", "left"),
        ("ARG1", "New York"),
    ]
    table = found.table().splitlines()
    assert table[0].startswith("left  (")
    assert [line.split()[0] for line in table[1:]] == ["ARG0", "ARG1"]


def test_given_predicates(model):
    text = "Ada saw Rome ."
    (found,) = model.predict([{"text": text, "predicates": [2]}])
    assert [frame.predicate for frame in found.frames] == ["Rome"]
    (none,) = model.predict([{"tokens": text.split(), "predicates": []}])
    assert none.frames == []
    assert str(none) == text
    with pytest.raises(elmokit.ConfigError, match="expected positions from 0 to 3 in the 4 tokens"):
        model.predict([{"text": text, "predicates": [4]}])
    with pytest.raises(elmokit.ConfigError, match=r'expected "text" or "tokens".*found text, verbs'):
        model.predict([{"text": text, "verbs": [1]}])


def test_pieces_of_an_argument_are_shown_where_they_are():
    item = RolesInput.read("Run on , they said .", make_tokenizer(TokenizerSpec(name="whitespace")))
    tags = ["B-ARG1", "I-ARG1", "O", "B-ARG0", "B-V", "O"]
    spans = [((0, 2, "ARG1"), 0.5), ((3, 4, "ARG0"), 0.5), ((4, 5, "V"), 1.0)]
    output = PredictedTags(tags, [1.0] * 6, [(Span(*span), share) for span, share in spans])
    shown = present_frames(item, [PredictedFrame(4, True, 0.8, output)])
    assert str(shown) == "[ARG1 Run on] , [ARG0 they] [V said] ."
    assert shown.to_dict()["frames"][0]["roles"][0]["probability"] == 0.5
