"""Coreference: files, scores by hand and by brute force, loss and links against all antecedents."""

from itertools import permutations

import numpy as np
import pytest
import torch

import elmokit
from elmokit.model import Packing
from elmokit.tasks import find_task, train
from elmokit.tasks.core import Hidden
from elmokit.tasks.coreference import (
    CorefDocument,
    CoreferenceHead,
    CoreferenceHeadSettings,
    CoreferencePrediction,
    DocumentInput,
    FoundMention,
    LinkedMentions,
    Question,
    score_clusters,
    score_questions,
)
from elmokit.tasks.coreference.data import split_tokens
from elmokit.tasks.coreference.scores import best_alignment
from elmokit.tasks.coreference.span_features import DocumentSpans
from elmokit.text import TokenizerSpec, make_tokenizer
from tests.task_data import quick_settings

DOCUMENT = """\
# begin document one
0\tThe\t(1
1\tking\t_
2\tof\t_
3\tSpain\t(2)1)
4\tleft\t_

5\tHe\t(1)
6\tsaw\t_
7\tit\t(2)
8\t.\t_
# end document
"""
ONTONOTES = """\
#begin document (nw/x); part 000
nw/x   0   0   Ada    NNP   -   -   (1
nw/x   0   1   King   NNP   -   -   1)
nw/x   0   2   slept  VBD   -   -   -

#end document
#begin document (nw/x); part 001
nw/x\t0\t0\tRome\tNNP\t_\t_\t(0)
"""
TEXT = "Ada met Eve. She smiled."
GAP = (
    "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    f"d-1\t{TEXT}\tShe\t13\tAda\t0\tTRUE\tEve\t8\tFALSE\thttp://x\n"
)
LEARN = (
    "head.span_dropout=0",
    "head.size=32",
    "head.spans_per_word=0.6",
    "training.batch=3",
    "training.learning_rate=0.01",
)
RULES = make_tokenizer(TokenizerSpec(name="rules", language="en"))


def read(path, text):
    path.write_text(text)
    return find_task("coreference").task_type.formats.read(path, tokenize=RULES)


def test_brackets_are_read(tmp_path):
    (found,) = read(tmp_path / "a.conll", DOCUMENT)
    assert found.texts == (("The", "king", "of", "Spain", "left"), ("He", "saw", "it", "."))
    assert found.clusters == (((0, 4), (5, 6)), ((3, 4), (7, 8)))
    first, second = read(tmp_path / "b.conll", ONTONOTES)
    assert (first.texts, first.clusters) == ((("Ada", "King", "slept"),), (((0, 2),),))
    assert second.texts == (("Rome",),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("# begin document one\n", ""), r'line 1: expected a line "#begin document NAME"'),
        (("(2)1)", "(2)"), r"line 2: the mention \(1 is not closed in its sentence"),
        (("6\tsaw\t_", "6\tsaw\t3)"), r"line 9: 3\) closes a mention that was not opened"),
        (("6\tsaw\t_", "6\tsaw\t(3)x"), r"line 9: '\(3\)x' are no brackets"),
        (("6\tsaw\t_", "6\tsaw"), r"line 9: expected a number, a word and its brackets"),
        (("He\t(1)", "He\t(1)(2)"), r"line 8: a mention belongs to both entities 1 and 2; 1 of 5 mentions"),
        (("king\t_", "king\t(5"), r"line 2: the mention|line 3: the mention \(5"),
        (("it\t(2)", "\t(2)"), r"line 10: expected a number, a word"),
    ],
)
def test_bad_brackets_are_named(tmp_path, changes, message):
    with pytest.raises(elmokit.DataError, match=message):
        read(tmp_path / "a.conll", DOCUMENT.replace(*changes))


def test_crossing_mentions(tmp_path, caplog):
    crossing = "#begin document x\n0\ta\t(1\n1\tb\t(2\n2\tc\t1)\n3\td\t2)\n"
    with pytest.raises(
        elmokit.DataError, match=r"line 4: mentions of the entities 1 and 2 cross; 1 of 2 mentions"
    ):
        read(tmp_path / "a.conll", crossing)
    read(tmp_path / "b.conll", DOCUMENT * 50 + crossing)  # a slip, as in published data
    assert "line 604: mentions of the entities 1 and 2 cross (1 of 202 mentions are like that)" in caplog.text


def test_empty_documents(tmp_path, caplog):
    with pytest.raises(elmokit.DataError, match=r"line 1: the document has no words"):
        read(tmp_path / "a.conll", "#begin document x\n\n#begin document y\n0\ta\t_\n")
    (found,) = read(tmp_path / "b.conll", "#begin document y\n0\t\t_\n1\ta\t_\n")
    assert found.texts == (("a",),)
    assert "line 2: the word is empty and is left out" in caplog.text
    task = find_task("coreference").task_type
    with pytest.raises(elmokit.DataError, match="no document has a mention"):
        task.fit(task.settings_type(), [found])


def test_gap_is_read(tmp_path):
    (found,) = read(tmp_path / "a.tsv", GAP)
    assert found.texts == (("Ada", "met", "Eve", "."), ("She", "smiled", "."))
    assert found.question == Question((4, 5), ((0, 1), (2, 3)), (True, False))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("\t13\t", "\t12\t"), r"line 2: Pronoun 'She' is not at '12' in the text"),
        (("TRUE", "yes"), r"line 2: A-coref is 'yes', expected TRUE or FALSE"),
        (("B-coref\t", ""), r"line 1: the header has no B-coref"),
        (("\thttp://x", ""), r"line 2: found 10 columns, expected 11"),
    ],
)
def test_bad_tables_are_named(tmp_path, changes, message):
    with pytest.raises(elmokit.DataError, match=message):
        read(tmp_path / "a.tsv", GAP.replace(*changes))


def test_sentences_end_at_stops_and_blank_lines():
    text = 'Dr. Who left . " No ! " he said ?! A title\n\nthe end'
    tokens = make_tokenizer(TokenizerSpec(name="whitespace"))(text)
    found = [" ".join(token.text for token in sentence) for sentence in split_tokens(text, tokens)]
    assert found == ['Dr. Who left . "', 'No ! "', "he said ?!", "A title", "the end"]
    assert split_tokens("", []) == []


def mentions(*names):
    """Clusters of mentions, each a letter."""
    return [[(ord(letter), ord(letter) + 1) for letter in cluster] for cluster in names]


def test_scores_worked_by_hand():
    """The example of Luo 2005 and of the reference scorer: key abc, de, fg; response ab, cd, fghi."""
    scores = score_clusters([mentions("abc", "de", "fg")], [mentions("ab", "cd", "fghi")])
    muc, b3, ceaf = scores.classes
    # Links: ab of 2, none of cd, fg of 3.
    assert (muc.recall, muc.precision) == pytest.approx((2 / 4, 2 / 5))
    # Recall: (4 + 1) / 3 of abc, 1 / 2 of de, 4 / 2 of fg; precision 4 / 2, (1 + 1) / 2, 4 / 4.
    assert b3.recall == pytest.approx((5 / 3 + 1 / 2 + 2) / 7)
    assert b3.precision == pytest.approx((2 + 1 + 1) / 8)
    # abc-ab 4/5, de-cd 2/4, fg-fghi 4/6.
    assert ceaf.recall == ceaf.precision == pytest.approx((4 / 5 + 1 / 2 + 2 / 3) / 3)
    assert scores.value == pytest.approx((muc.f1 + b3.f1 + ceaf.f1) / 3)
    assert scores.values["mention_f1"] == pytest.approx(2 * 6 / 15)


def test_scores_are_those_of_the_reference_scorers():
    """As ns-moosavi/coval and ufal/corefud-scorer print them; see benchmarks/coreference_scores.py."""
    gold = [
        [
            [(0, 1), (5, 6), (9, 11)],
            [(2, 4), (7, 8)],
            [(3, 4), (12, 13), (15, 16), (20, 21)],
            [(17, 19)],
        ],
        [[(0, 2), (4, 5)], [(1, 2), (8, 9), (11, 12)]],
    ]
    predicted = [
        [
            [(0, 1), (5, 6)],
            [(9, 11), (2, 4), (7, 8)],
            [(12, 13), (15, 16)],
            [(20, 21), (17, 19)],
            [(22, 23)],
        ],
        [[(0, 2), (4, 5), (8, 9)], [(6, 7), (11, 12)]],
    ]
    found = [
        tuple(round(100 * share, 2) for share in (one.recall, one.precision, one.f1))
        for one in score_clusters(gold, predicted).classes
    ]
    assert found == [(44.44, 50.0, 47.06), (57.22, 58.89, 58.04), (68.89, 59.05, 63.59)]


def test_scores_of_perfect_empty_and_several_documents():
    gold = [mentions("ab", "cde"), mentions("xy")]
    assert score_clusters(gold, gold).value == 1.0
    assert score_clusters(gold, [[], []]).value == 0.0
    assert score_clusters([[]], [[]]).value == 0.0
    # Counts are added over documents before they are divided.
    half = score_clusters(gold, [mentions("ab", "cde"), []])
    assert half.classes[0].recall == pytest.approx(3 / 4)
    assert half.classes[0].precision == 1.0
    low, high = half.interval
    assert low <= half.value <= high


@pytest.mark.parametrize("shape", [(1, 1), (2, 4), (4, 3), (5, 5), (3, 6)])
def test_best_alignment_is_the_best_of_all(shape):
    for seed in range(20):
        random = np.random.default_rng(seed)
        weights = random.random(shape) * (random.random(shape) < 0.6)
        wide = weights if shape[0] <= shape[1] else weights.T
        expected = max(
            sum(wide[row, column] for row, column in enumerate(columns))
            for columns in permutations(range(wide.shape[1]), wide.shape[0])
        )
        assert best_alignment(weights) == pytest.approx(expected)


def test_gap_scores_worked_by_hand():
    he, she = ["he", "A", "B"], ["She", "A", "B"]
    question = Question((0, 1), ((1, 2), (2, 3)), (True, False))
    none = Question((0, 1), ((1, 2), (2, 3)), (False, False))
    scores = score_questions(
        [(question, he), (question, he), (question, she), (none, she)],
        [[True, False], [False, True], [True, False], [True, False]],
    )
    assert scores.values["masculine_f1"] == pytest.approx(1 / 2)
    assert scores.values["feminine_f1"] == pytest.approx(2 / 3)
    assert scores.values["bias"] == pytest.approx(4 / 3)
    assert scores.value == pytest.approx(2 * 2 / (4 + 3))


@pytest.fixture
def head():
    settings = CoreferenceHeadSettings(width=2, size=4, span_dropout=0, spans_per_word=0.8, antecedents=50)
    return CoreferenceHead(3, settings, singletons=False).eval()


def hidden_of(*documents, dim=3):
    lengths = torch.tensor([len(text) for document in documents for text in document.texts])
    vectors = torch.randn(int(lengths.sum()), dim, generator=torch.Generator().manual_seed(2))
    return Hidden(2 * vectors, lengths, Packing.of(lengths))


DOC = CorefDocument((("a", "b", "a"), ("c", "a", "b", "d")), (((0, 1), (2, 3), (3, 5)), ((5, 6), (4, 6))))
OTHER = CorefDocument((("x", "y"),), (((0, 1), (1, 2)),))


def pair_score(head, vectors, document, one, other):
    """s of two spans by themselves: the later one, and its antecedent among all kept."""
    spans = DocumentSpans.of([other, one], document.texts, vectors.device)
    m = head._mention_scores(vectors, spans)
    g = head._span_vectors(vectors, spans)
    x = head.of_anaphor(g[1]) + head.of_antecedent(g[0]) + head.of_product(g[1] * g[0])
    features = spans.pair_features(torch.tensor([1]), torch.tensor([[0]]))
    for number, (embedding, value) in enumerate(zip(head.pair_features, features, strict=True)):
        if number != 2:  # the distance in kept spans is that of the document
            x = x + embedding(value[0, 0])
    return (m.sum() + g[1] @ head.coarse(g[0])).item(), x


def test_loss_is_that_of_all_antecedents(head):
    torch.nn.init.zeros_(head.pair_features[2].weight)
    vectors = hidden_of(DOC).vectors
    spans = [
        (s, s + w)
        for first, last in ((0, 3), (3, 7))
        for s in range(first, last)
        for w in (1, 2)
        if s + w <= last
    ]
    scores = [
        head._mention_scores(vectors, DocumentSpans.of([span], DOC.texts, vectors.device)).item()
        for span in spans
    ]
    gold = {mention: number for number, cluster in enumerate(DOC.clusters) for mention in cluster}
    expected = 0.0
    for span, score in zip(spans, scores, strict=True):
        expected += np.log1p(np.exp(-score if span in gold else score))
    kept = sorted(
        sorted(zip(scores, spans, strict=True), reverse=True)[: round(0.8 * 7)], key=lambda one: one[1]
    )
    for place, (_, span) in enumerate(kept):
        every, right = [1.0], []
        for _, other in kept[:place]:
            coarse, x = pair_score(head, vectors, DOC, span, other)
            weight = np.exp(coarse + head.pair(torch.relu(x)).item())
            every.append(weight)
            if span in gold and gold.get(other) == gold[span]:
                right.append(weight)
        expected -= np.log(sum(right or [1.0]) / sum(every))
    assert head.loss(hidden_of(DOC), [DOC]).item() == pytest.approx(expected / 7, rel=1e-4)


def test_gradients_are_finite_and_reach_all_weights(head):
    head.loss(hidden_of(DOC, OTHER), [DOC, OTHER]).backward()
    for name, weight in head.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


def test_loss_of_a_question(head):
    document = CorefDocument(DOC.texts, question=Question((3, 4), ((0, 1), (4, 6)), (False, True)))
    vectors = hidden_of(document).vectors
    scores = head._answers(vectors, document, document.question)
    expected = -scores.softmax(0)[2].log()
    assert scores[0] == 0
    assert head.loss(hidden_of(document), [document]).item() == pytest.approx(expected.item(), rel=1e-5)
    (found,) = head.decode(hidden_of(document), [document])
    assert found.answers == pytest.approx(scores.softmax(0)[1:].tolist(), rel=1e-5)
    neither = CorefDocument(DOC.texts, question=Question((3, 4), ((0, 1), (4, 6)), (False, False)))
    assert head.loss(hidden_of(neither), [neither]).item() == pytest.approx(-scores.log_softmax(0)[0].item())


def test_the_likeliest_answer_is_chosen():
    assert LinkedMentions([], answers=[0.5, 0.2]).chosen == [True, False]
    assert LinkedMentions([], answers=[0.2, 0.3]).chosen == [False, False]  # none has 0.5
    assert LinkedMentions([[(0, 1)]]).chosen == []


@pytest.mark.parametrize("singletons", [False, True])
def test_links_follow_the_best_antecedent_and_the_batch_does_not_matter(head, singletons):
    head.singletons = singletons
    torch.nn.init.constant_(head.mention.bias, 1.0)
    together = head.decode(hidden_of(DOC, OTHER), [DOC, OTHER])
    both = hidden_of(DOC, OTHER).vectors
    for document, vectors, output in zip((DOC, OTHER), both.split([7, 2]), together, strict=True):
        lengths = torch.tensor([len(text) for text in document.texts])
        (own,) = head.decode(Hidden(vectors, lengths, Packing.of(lengths)), [document])
        assert own.clusters == output.clusters
        found = [mention for cluster in output.clusters for mention in cluster]
        assert len(found) == len(set(found)) == len(output.probabilities)
        assert all(cluster == sorted(cluster) for cluster in output.clusters)
        assert singletons or all(len(cluster) > 1 for cluster in output.clusters)
    assert any(len(cluster) > 1 for output in together for cluster in output.clusters)


def test_a_document_without_words(head):
    empty = CorefDocument(())
    hidden = Hidden(torch.zeros(0, 3), torch.tensor([], dtype=torch.long), Packing.of(torch.tensor([0])))
    assert head.decode(hidden, [empty]) == [LinkedMentions([])]


def test_words_that_spans_share():
    spans = DocumentSpans.of(
        [(0, 2), (2, 3), (3, 5), (4, 5)], [("Ada", "King", "king"), ("ada", "King")], "cpu"
    )
    (numbers,) = list(spans.pair_features(torch.tensor([2]), torch.tensor([[0, 1]])))[3].tolist()
    assert numbers == [0b11111, 0b11010]  # the whole, last, first word, each last word in the other
    (nested,) = list(spans.pair_features(torch.tensor([3]), torch.tensor([[2]])))[3].tolist()
    assert nested == [0b111010]


@pytest.fixture(scope="module")
def model(folders, elmo, tmp_path_factory):
    settings = quick_settings("coreference", *LEARN)
    out = tmp_path_factory.mktemp("coreference") / "out"
    found = train("coreference", folders["coreference"], encoder=f"{elmo}+chars", out=out, settings=settings)
    assert found.scores.value > 0.95
    return found.model


def test_documents_in_clusters_out(model):
    given = "Grace Hopper left Paris . She left Rome"
    found = model.predict(given)
    assert str(found) == "[1 Grace Hopper] left Paris . [1 She] left Rome"
    assert found.sentences == [["Grace", "Hopper", "left", "Paris", "."], ["She", "left", "Rome"]]
    assert [(mention.text, mention.start, mention.end) for mention in found.clusters[0]] == [
        ("Grace Hopper", 0, 12),
        ("She", 26, 29),
    ]
    (same,) = model.predict([[sentence for sentence in found.sentences]])
    assert same.clusters == found.clusters
    assert found.table() == "  1  Grace Hopper | She"
    with pytest.raises(
        elmokit.ConfigError, match="expected a text, a list of tokens, or a list of sentences"
    ):
        model.predict([7])


def test_questions_can_be_learnt(elmo, tmp_path):
    rows = [GAP.splitlines()[0]]
    for number, (one, other) in enumerate(
        [("Ada", "Eve"), ("Eve", "Ada"), ("Rome", "Eve"), ("Ada", "Paris")] * 3
    ):
        text = f"{one} saw {other} . She left ."
        offset = len(one) + 5
        rows.append(
            f"{number}\t{text}\tShe\t{len(one) + len(other) + 8}\t{one}\t0\tTRUE\t{other}\t{offset}\tFALSE\tx"
        )
    for part in ("train", "dev"):
        (tmp_path / f"{part}.tsv").write_text("\n".join(rows) + "\n")
    settings = quick_settings("coreference", *LEARN)
    found = train("coreference", tmp_path, encoder=f"{elmo}+chars", out=tmp_path / "out", settings=settings)
    assert found.scores.main == "gap_f1"
    assert found.scores.value == 1.0
    assert found.model.predict("Ada saw Eve . She left .").sentences[1] == ["She", "left", "."]


def test_how_clusters_are_shown():
    text = "The king's <son> & he"
    spans = [(0, 16), (0, 8), (19, 21)]
    found = [FoundMention(text[start:end], start, end, 0.5) for start, end in spans]
    prediction = CoreferencePrediction(text, [], [[found[0], found[2]], [found[1]]])
    assert str(prediction) == "[1 [2 The king]'s <son>] & [1 he]"
    assert prediction.coloured() == (
        "\x1b[31m[1\x1b[0m \x1b[32m[2\x1b[0m The king\x1b[32m]\x1b[0m's <son>\x1b[31m]\x1b[0m & "
        "\x1b[31m[1\x1b[0m he\x1b[31m]\x1b[0m"
    )
    html = prediction.html()
    assert html.count("<span") == html.count("</span>") == 3
    assert "&lt;son&gt;</span> &amp; <span" in html
    assert 'data-cluster="2"><sub>2</sub>The king</span>' in html
    empty = CoreferencePrediction("", [], [])
    assert (str(empty), empty.html(), empty.table()) == ("", "<p></p>", "")


def test_inputs():
    found = DocumentInput.read([["Ada", "left"], [], ["She", "slept"]], RULES)
    assert found.texts == [["Ada", "left"], ["She", "slept"]]
    assert [token.start for sentence in found.sentences for token in sentence] == [0, 4, 9, 13]
    assert DocumentInput.read("", RULES).texts == []
