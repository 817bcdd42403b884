"""Which mentions are linked: by name, by parts and initials of names, by their contexts."""

import numpy as np
import pytest

import elmokit
from elmokit.graph import EntityLinker, LinkSettings, PlacedEntity, normal_form


def linked(*documents, settings=None):
    """The numbers of the nodes of each document of (name, kind) pairs."""
    linker = EntityLinker(settings)
    return [
        linker.link(str(number), [PlacedEntity(*mention) for mention in mentions])
        for number, mentions in enumerate(documents)
    ]


def test_names_are_compared_without_case_articles_and_marks():
    assert normal_form("The   UNITED Nations'") == "united nations"
    assert normal_form("“京东方”") == "京东方"
    assert normal_form("the") == "the"
    assert normal_form("...") == "..."


def test_the_same_name_of_the_same_kind_is_the_same_thing():
    assert linked([("Rome", "LOC")], [("Rome", "LOC"), ("ROME's", "LOC"), ("Rome", "ORG")]) == [
        [0],
        [0, 0, 1],
    ]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("Lovelace", "Ada Lovelace"),
        ("UN", "United Nations"),
        ("京东方", "京东方科技集团"),
        ("Ada", "Ada Lovelace"),
    ],
)
def test_part_of_a_name_in_one_document(short, long):
    assert linked([(short, "X"), (long, "X")]) == [[0, 0]]
    assert linked([(long, "X"), (short, "X")]) == [[0, 0]]


@pytest.mark.parametrize("short", ["Lace", "da", "U", "Charles", "nited"])
def test_what_is_no_part(short):
    assert linked([(short, "X"), ("Ada Lovelace", "X"), ("United Nations", "X")])[0][0] == 2


def test_part_of_a_name_in_another_document_needs_a_context():
    assert linked([("Ada Lovelace", "PER")], [("Lovelace", "PER")]) == [[0], [1]]


@pytest.mark.parametrize(
    ("names", "part", "same"),
    [
        (("Ada Lovelace", "Lovelace", "William Lovelace"), 1, 0),
        (("William Lovelace", "Ada Lovelace", "Lovelace"), 2, 1),
        (("Lovelace", "William Lovelace", "Ada Lovelace"), 0, 1),
    ],
)
def test_part_of_several_names_in_one_document_is_the_one_named_last(names, part, same):
    (numbers,) = linked([(name, "PER") for name in names])
    assert numbers[part] == numbers[same]
    assert len(set(numbers)) == 2


def near(direction, random):
    return (np.eye(8, dtype=np.float32)[direction] + 0.1 * random.normal(size=8)).astype(np.float32)


def test_contexts_part_and_join():
    random = np.random.default_rng(0)
    linker = EntityLinker(LinkSettings(apart=0.0, near=0.3))
    for number in range(30):  # what all contexts have in common is known after some
        linker.link(f"{number}", [PlacedEntity(f"Name {number}", "X", near(number % 8, random))])

    def link(name, direction):
        return linker.link(f"{name} {direction}", [PlacedEntity(name, "X", near(direction, random))])[0]

    bank, river = link("Jordan", 0), link("Jordan", 1)
    assert bank != river  # the same name, but contexts that have nothing in common
    assert (link("Jordan", 0), link("Jordan", 1)) == (bank, river)
    assert link("Michael Jordan", 0) == bank
    assert link("Jordan River", 1) == river
    assert link("Air Jordan", 5) not in (bank, river)


def test_settings_are_checked():
    with pytest.raises(elmokit.ConfigError, match="near"):
        LinkSettings(near=2.0)
