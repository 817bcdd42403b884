"""Relations: files, the official score of SemEval-2010 by hand, which words the head reads, which pairs."""

from dataclasses import replace

import pytest
import torch

import elmokit
from elmokit.model import Packing
from elmokit.tasks import find_task, train
from elmokit.tasks.core import Hidden
from elmokit.tasks.relations import (
    EntityPair,
    FoundRelation,
    MarkedEntity,
    PredictedPair,
    RelatedEntity,
    RelationsHead,
    RelationsHeadSettings,
    RelationsInput,
    RelationsPrediction,
    RelationsTask,
    RelationText,
    score_end_to_end,
    score_relations,
)
from elmokit.tasks.relations.head import _maxima, _pairs, _places, nearest_mentions
from elmokit.text import TokenizerSpec
from tests.task_data import quick_settings

RULES = TokenizerSpec.parse("rules:en")
MULTI_HEAD = """\
#doc 7
0\tOswald\tB-Peop\t['Kill', 'Live_In']\t[3, 5]
1\tshot\tO\t['N']\t[1]
2\tJohn\tB-Peop\t['N']\t[2]
3\tKennedy\tI-Peop\t['N']\t[3]
4\tin\tO\t['N']\t[4]
5\tDallas\tB-Loc\t['Has']\t[3]
"""
PUBTATOR = """\
12|t|Lithium and flutter.
12|a|Two infants had flutter. Lithium was given with naloxone.
12\t0\t7\tLithium\tChemical\tD1
12\t12\t19\tflutter\tDisease\tD2
12\t37\t44\tflutter\tDisease\tD2
12\t46\t53\tLithium\tChemical\tD1
12\t69\t77\tnaloxone\tChemical\tD3
12\tCID\tD1\tD2
"""
DDI = (
    '{"text": "Adenocard (adenosine) and quinidine", '
    '"entities": [{"id": "a", "offset": "0-8", "type": "brand"}, '
    '{"id": "b", "start": 11, "end": 20}, {"id": "c", "offset": "26-28;31-34"}],'
    ' "pairs": [{"e1": "a", "e2": "c", "label": "effect"}]}\n'
)


def read(path, text, tokenizer=RULES):
    path.write_text(text, encoding="utf-8")
    formats = find_task("relations").task_type.formats
    return formats.read(path, tokenize=formats.tokenizer(tokenizer))


def test_marked_sentences_are_read(tmp_path):
    (found,) = read(tmp_path / "a.tsv", "1\tMade(e2,e1)\tThe <e1>flower pots</e1>' <e2>factory</e2>'s.\n")
    assert found.tokens == ["The", "flower", "pots", "'", "factory", "'s", "."]
    assert found.entities == (MarkedEntity(((1, 3),)), MarkedEntity(((4, 5),)))
    assert found.pairs == (EntityPair(0, 1, "Made(e2,e1)"),)
    assert found.where.endswith("a.tsv, line 1")


def test_named_entities_are_found_in_the_text(tmp_path):
    spec = TokenizerSpec.parse("characters:zh")
    (found,) = read(tmp_path / "a.tsv", "工行\t工行亚洲\t持股\t工行亚洲由工行控股\n", spec)
    assert found.entities == (MarkedEntity(((5, 7),)), MarkedEntity(((0, 4),)))
    assert found.pairs == (EntityPair(0, 1, "持股"),)


def test_multi_head_blocks_are_read(tmp_path):
    (found,) = read(tmp_path / "a.txt", MULTI_HEAD)
    assert found.entities == (
        MarkedEntity(((0, 1),), "Peop"),
        MarkedEntity(((2, 4),), "Peop"),
        MarkedEntity(((5, 6),), "Loc"),
    )
    labels = {(pair.head, pair.tail): pair.label for pair in found.pairs}
    assert labels == {(0, 1): "Kill(e1,e2)", (0, 2): "Live_In(e1,e2)", (1, 2): "Has(e2,e1)"}


def test_the_tagger_reads_their_entities(tmp_path):
    (tmp_path / "a.txt").write_text(MULTI_HEAD)
    formats = find_task("tagger").task_type.formats
    (found,) = formats.read(tmp_path / "a.txt", tokenize=str.split, format="multihead")
    assert found.tags == ("B-Peop", "O", "B-Peop", "I-Peop", "O", "B-Loc")


def test_pubtator_documents_are_read(tmp_path):
    (found,) = read(tmp_path / "a.txt", PUBTATOR)
    assert [len(text) for text in found.texts] == [4, 5, 6]
    assert found.entities == (
        MarkedEntity(((0, 1), (9, 10)), "Chemical"),
        MarkedEntity(((2, 3), (7, 8)), "Disease"),
        MarkedEntity(((13, 14),), "Chemical"),
    )
    assert found.pairs == (EntityPair(0, 1, "CID"), EntityPair(2, 1, "none"))


def test_json_lines_are_read(tmp_path):
    (found,) = read(tmp_path / "a.jsonl", DDI)
    assert found.entities == (
        MarkedEntity(((0, 1),), "brand"),
        MarkedEntity(((2, 3),)),
        MarkedEntity(((5, 6),)),
    )
    assert found.pairs == (EntityPair(0, 2, "effect"),)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "1\tR\n", r"line 1: expected two entities, their relation"),
        ("a.tsv", "1\tR\t<e1>a</e1> b\n", r"line 1: found 1 entities, expected two"),
        ("a.tsv", "1\tR\t<e1>a</e1> <e2>b\n", r"line 1: <e2> is not closed"),
        ("a.tsv", "1\tR\t<e1></e1> <e2>b</e2>\n", r"line 1: .* closes or encloses nothing"),
        ("a.tsv", "1\tR\t<e1> </e1> <e2>b</e2>\n", r"line 1: no token is at the characters 0 to 1"),
        ("a.tsv", "1\t\t<e1>a</e1> <e2>b</e2>\n", r"line 1: expected number, relation and sentence"),
        ("a.tsv", "ICBC\tHSBC\tR\tnobody\n", r"line 1: 'ICBC' is not in the text"),
        ("a.txt", MULTI_HEAD.replace("[3, 5]", "[1, 5]"), r"line 2: Kill is between the words 0 and 1"),
        ("a.txt", MULTI_HEAD.replace("[3, 5]", "[3]"), r"line 2: expected lists of equal length"),
        ("a.txt", MULTI_HEAD.replace("[3, 5]", "f(3)"), r"line 2: expected lists of equal length"),
        ("a.txt", MULTI_HEAD.replace("3\tKen", "4\tKen"), r"line 5: expected five columns .* \(the number 3"),
        ("a.txt", PUBTATOR.replace("|a|", "|b|"), r"line 1: expected a title .* and an abstract"),
        ("a.txt", PUBTATOR.replace("CID\tD1", "CID\tD9"), r"line 8: D9 has no mention"),
        ("a.txt", PUBTATOR.replace("12\t0", "12\tx"), r"line 3: expected a mention"),
        ("a.txt", PUBTATOR.replace("69\t77", "690\t770"), r"line 1: no token is at the characters 690"),
        ("a.jsonl", DDI.replace('"e1": "a"', '"e1": "z"'), r'line 1: expected a pair with "e1" and "e2"'),
        ("a.jsonl", DDI.replace("0-8", "0"), r'line 1: expected an entity with "offset"'),
        ("a.jsonl", '{"text": "a"}\n', r'line 1: expected an object with "text", "entities"'),
    ],
)
def test_wrong_data_are_named_with_file_and_line(tmp_path, name, text, message):
    with pytest.raises(elmokit.DataError, match=message):
        read(tmp_path / name, text)


def scored(pairs, **settings):
    """Scores of (true, predicted) labels, one pair in each text."""
    ab = (MarkedEntity(((0, 1),)), MarkedEntity(((1, 2),)))
    examples = [RelationText((("a", "b"),), ab, (EntityPair(0, 1, true),)) for true, _ in pairs]
    outputs = [[PredictedPair(0, 1, said)] for _, said in pairs]
    return score_relations(examples, outputs, no_relation="Other", **settings)


def test_the_official_score_of_semeval_by_hand():
    # A: 4 true, 4 predicted, 2 right (one more has the wrong direction): F1 2·2/8. B: 1 true, 2 predicted,
    # 1 right: 2/3. C is never predicted nor true, and counts with 0. Other is no class.
    pairs = [
        ("A(e1,e2)", "A(e1,e2)"),
        ("A(e2,e1)", "A(e2,e1)"),
        ("A(e1,e2)", "A(e2,e1)"),
        ("A(e1,e2)", "Other"),
        ("Other", "A(e1,e2)"),
        ("B(e1,e2)", "B(e1,e2)"),
        ("Other", "B(e1,e2)"),
        ("Other", "Other"),
    ]
    found = scored(pairs, relations=["A", "B", "C"], main="macro_f1")
    assert found.value == pytest.approx((2 * 2 / 8 + 2 / 3 + 0) / 3)
    assert found.values["f1"] == pytest.approx(2 * 3 / (6 + 5))
    assert found.values["precision"] == pytest.approx(3 / 6)
    assert found.values["recall"] == pytest.approx(3 / 5)
    assert found.values["accuracy"] == pytest.approx(4 / 8)
    assert {one.label: one.support for one in found.classes} == {"A": 4, "B": 1}


def test_without_any_relation_scores_are_zero():
    assert scored([("Other", "Other")], relations=[]).value == 0


def test_the_nearest_mentions_are_read():
    head, tail = MarkedEntity(((0, 2), (20, 21))), MarkedEntity(((24, 26), (40, 41)))
    assert nearest_mentions(head, tail) == ((20, 21), (24, 26))
    assert nearest_mentions(tail, head) == ((24, 26), (20, 21))


def test_places_and_pieces():
    entities = (MarkedEntity(((3, 4),)), MarkedEntity(((6, 8),)))
    item = RelationText((tuple("abcdefghijk"),), entities, (EntityPair(1, 0, "R"),))
    hidden = Hidden(torch.zeros(11, 1), torch.tensor([11]), Packing.of(torch.tensor([11])))
    (pair,) = _pairs(hidden, [item], 2)
    assert (pair.start, pair.end, pair.spans) == (1, 10, ((5, 7), (2, 3)))
    places = _places(pair)
    assert (places[:, 0] - 9).tolist() == [-5, -4, -3, -2, -1, 0, 0, 1, 2]
    assert (places[:, 1] - 9).tolist() == [-2, -1, 0, 1, 2, 3, 4, 5, 5]
    values = torch.tensor([9.0, 1, 20, 3, 4, 5, -6, 7, 8])[:, None]
    # The first entity of the pair, the second, between them, around them.
    assert _maxima(values, places, torch.tensor([9])).tolist() == [[5.0, 20.0, 4.0, 9.0]]


def test_a_pair_does_not_depend_on_the_others_of_its_batch():
    torch.manual_seed(0)
    entities = tuple(
        MarkedEntity(((place, place + 1),), kind) for place, kind in ((0, "P"), (3, "L"), (5, ""))
    )
    pairs = tuple(EntityPair(i, j, "a") for i in range(3) for j in range(3) if i != j)
    item = RelationText((tuple("abc"), tuple("defg")), entities, pairs)
    head = RelationsHead(4, ["a", "b"], ["", "P", "L"], RelationsHeadSettings(pair_rnn=3, around=2)).eval()
    lengths = torch.tensor([3, 4, 3, 4])
    hidden = Hidden(torch.randn(7, 4).repeat(2, 1), lengths, Packing.of(lengths))
    both = head.decode(hidden, [item, item])
    assert both[0] == both[1]
    half = torch.tensor([3, 4])
    alone = Hidden(hidden.vectors[:7], half, Packing.of(half))
    for number, pair in enumerate(pairs):
        ((found,),) = head.decode(alone, [replace(item, pairs=(pair,))])
        assert (found.head, found.tail) == (pair.head, pair.tail)
        assert found.scores == pytest.approx(both[0][number].scores, abs=1e-6)


def fitted(*examples):
    return RelationsTask.fit(find_task("relations").task_type.settings_type(), list(examples))[0]


def test_pairs_are_asked_for_as_in_the_training_data():
    kinds = [MarkedEntity(((place, place + 1),), kind) for place, kind in enumerate(("P", "L", "P"))]
    labels = ("In(e1,e2)", "none", "In(e2,e1)")
    pairs = [EntityPair(0, 1, labels[0]), EntityPair(0, 2, labels[1]), EntityPair(1, 2, labels[2])]
    task = fitted(RelationText((tuple("abc"),), tuple(kinds), tuple(pairs)))
    assert (task.no_relation, task.related, task.both_orders) == ("none", ("L > P", "P > L"), False)

    def asked(*entities):
        read = task.read_input({"text": "a b c", "entities": list(entities)}, RULES_TOKENS)
        return [(pair.head, pair.tail) for pair in read.pairs]

    a, b, c = (
        {"start": start, "end": start + 1, "label": kind} for start, kind in ((0, "P"), (2, "L"), (4, "P"))
    )
    assert asked(a, b, c) == [(0, 1), (1, 2)]
    assert asked(b, a) == [(1, 0)]  # the order of the text
    assert asked(a | {"label": "?"}, c) == [(0, 1)]  # kinds that are not known may be related


def RULES_TOKENS(text):
    return elmokit.text.make_tokenizer(RULES)(text)


def test_where_pairs_come_in_both_orders_both_are_asked_for():
    entities = (MarkedEntity(((0, 1),)), MarkedEntity(((1, 2),)))
    pairs = (EntityPair(0, 1, "sells"), EntityPair(1, 0, "buys"))
    task = fitted(RelationText((("a", "b"),), entities, pairs))
    read = task.read_input("<e2>a</e2> <e1>b</e1>", RULES_TOKENS)
    assert [(pair.head, pair.tail) for pair in read.pairs] == [(0, 1), (1, 0)]
    assert task.no_relation == ""


def test_wrong_input_is_refused():
    for given, message in (
        ({"text": "a", "tokens": ["a"]}, 'expected "text" or "tokens"'),
        ({"text": "a", "entities": [{"start": 1}]}, 'expected an entity with "start" and "end"'),
        ({"text": "a", "entities": [{"start": 1, "end": 5}]}, "no token is at the characters 1 to 5"),
        ("<e1>a", "<e1> is not closed"),
    ):
        with pytest.raises(elmokit.ElmoError, match=message):
            RelationsInput.read(given, RULES_TOKENS)


def test_the_label_of_no_relation_has_to_exist():
    example = RelationText(
        (("a", "b"),), (MarkedEntity(((0, 1),)), MarkedEntity(((1, 2),))), (EntityPair(0, 1, "x"),)
    )
    settings = quick_settings("relations", "head.no_relation=nothing")
    with pytest.raises(elmokit.ConfigError, match="'nothing', which is not among the labels x"):
        RelationsTask.fit(settings, [example])


def test_entities_and_relations_together_by_hand():
    people = (MarkedEntity(((0, 2),), "P"), MarkedEntity(((3, 4),), "L"), MarkedEntity(((5, 6),), "P"))
    pairs = (EntityPair(0, 1, "In(e1,e2)"), EntityPair(1, 2, "In(e2,e1)"), EntityPair(0, 2, "none"))
    example = RelationText((tuple("abcdef"),), people, pairs)
    offsets = [(2 * place, 2 * place + 1) for place in range(6)]
    spans = [(0, 3, "P"), (6, 7, "X"), (10, 11, "P")]  # the second has the wrong kind
    entities = [RelatedEntity("", *span) for span in spans]
    relations = [
        FoundRelation(2, 1, "In", 0.9),
        FoundRelation(0, 1, "In", 0.9),
        FoundRelation(0, 2, "In", 0.6),
    ]
    found = RelationsPrediction("a b c d e f", list("abcdef"), offsets, entities, relations)
    values = score_end_to_end([example], [found], no_relation="none").values
    assert values["entity_f1"] == pytest.approx(2 * 2 / 6)
    assert values["boundaries_f1"] == pytest.approx(2 * 2 / 5)
    assert values["f1"] == 0


def test_relations_are_learnt_and_shown(folders, tmp_path):
    settings = quick_settings("relations", "head.pair_dropout=0", "head.pair_rnn=8")
    model = train(
        "relations", folders["relations"], encoder="words", settings=settings, out=tmp_path / "m"
    ).model
    found = model.predict("<e1>Grace Hopper</e1> left <e2>New York</e2> .")
    assert [(one.head, one.tail, one.label) for one in found.relations] == [(0, 1, "left")]
    assert str(found).startswith("Grace Hopper --left--> New York  (")
    assert found.entities[1].text == "New York" == found.text[found.entities[1].start : found.entities[1].end]
    assert str(model.predict("<e1>Ada</e1> likes <e2>Rome</e2> .")) == "Ada likes Rome ."
