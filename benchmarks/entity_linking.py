"""How well mentions are linked within a collection: B³ against the identifiers of drugs and diseases (CDR).

ELMOKIT_DATA=… python benchmarks/entity_linking.py [--model en] [--documents 500]

Mentions and kinds are given; whether two mentions mean the same is decided by the linker of `elmokit graph`,
once without contexts and then with contexts and several settings.
"""

import argparse
import lzma
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from common import data_file, markdown_table
from elmokit.embed import load_elmo
from elmokit.graph import EntityLinker, LinkSettings, PlacedEntity, normal_form
from elmokit.graph.graph_building import context_of
from elmokit.text import split_sentences

SETTINGS = [
    *(LinkSettings(apart=-1, near=near) for near in (0.2, 0.4, 0.6, 0.8, 1.0)),
    *(LinkSettings(apart=apart, near=1) for apart in (-0.5, -0.3, -0.1)),
]


class Gold(NamedTuple):
    """A mention with its document, its identifier and what the linker is told."""

    document: str
    identifier: str
    placed: PlacedEntity


def read(model: str, count: int) -> list[Gold]:
    """The mentions of the first documents, with the vectors of their contexts."""
    path = data_file("tasks/relation-cdr/dev.pubtator.txt.xz", "BioCreative V CDR's development set")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")[:count]
    elmo = load_elmo(model)
    found = []
    for block in blocks:
        title, abstract, *lines = block.splitlines()
        text = f"{title.split('|t|')[1]}\n{abstract.split('|a|')[1]}"
        spans = split_sentences(text, "en")
        sentences = elmo.embed([text[start:end] for start, end in spans])
        for line in lines:
            fields = line.split("\t")
            if len(fields) != 6 or fields[5] == "-1":
                continue
            number, start, end, name, kind, identifier = fields
            row = next(row for row, span in enumerate(spans) if span[0] <= int(start) < span[1])
            inside = int(start) - spans[row][0], int(end) - spans[row][0]
            vector = context_of(sentences[row].layers.mean(axis=0), sentences[row].offsets, *inside)
            found.append(Gold(number, identifier, PlacedEntity(name, kind, vector)))
    return found


def b_cubed(gold: Sequence[str], found: Sequence[str]) -> tuple[float, float, float]:
    """Precision, recall and F1 of clusters, as means over mentions (Bagga and Baldwin 1998)."""
    both, true, said = Counter(zip(gold, found, strict=True)), Counter(gold), Counter(found)
    pairs = list(zip(gold, found, strict=True))
    precision = sum(both[pair] / said[pair[1]] for pair in pairs) / len(pairs)
    recall = sum(both[pair] / true[pair[0]] for pair in pairs) / len(pairs)
    return precision, recall, 2 * precision * recall / (precision + recall)


def linked(mentions: Sequence[Gold], settings: LinkSettings, *, contexts: bool) -> list[str]:
    """The node of each mention."""
    linker = EntityLinker(settings)
    nodes = []
    for document in dict.fromkeys(one.document for one in mentions):
        own = [one.placed for one in mentions if one.document == document]
        nodes += linker.link(document, own if contexts else [replace(one, context=None) for one in own])
    return [str(node) for node in nodes]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="en")
    parser.add_argument("--documents", type=int, default=500)
    arguments = parser.parse_args()
    mentions = read(arguments.model, arguments.documents)
    gold = [one.identifier for one in mentions]
    tried = {
        "the same name": [f"{one.placed.kind} {normal_form(one.placed.name)}" for one in mentions],
        "and parts of names within a document": linked(mentions, LinkSettings(), contexts=False),
    }
    for settings in SETTINGS:
        name = f"and contexts: apart {settings.apart}, near {settings.near}"
        tried[name] = linked(mentions, settings, contexts=True)
    rows = [
        [name, *(f"{100 * one:.2f}" for one in b_cubed(gold, found)), len(set(found))]
        for name, found in tried.items()
    ]
    print(f"{len(mentions):,} mentions of {len(set(gold)):,} things in {arguments.documents} documents\n")
    print(markdown_table(["linked by", "precision", "recall", "B³ F1", "nodes"], rows))


if __name__ == "__main__":
    main()
