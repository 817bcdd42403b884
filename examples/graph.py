"""A knowledge graph of a few texts: who lives and works where, and which place is in which.

ELMOKIT_DATA=… python examples/graph.py [GRAPH.jsonl|GRAPH.graphml|FOLDER [PICTURE.png]]
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import build_graph, task_settings, train

DOCUMENTS = [
    "Marie Curie was born in Warsaw, Poland. Curie later lived in Paris, France, where she worked for the "
    "University of Paris. Pierre Curie of Paris taught there, too.",
    "Ada Lovelace lived in London, England. Charles Babbage, a professor at Cambridge University, wrote to "
    "Lovelace. The University of Cambridge is in Cambridge, England.",
    "Grace Hopper of New York worked for the Navy. Hopper died in Arlington, Va.",
    "Jack Ruby of Dallas, Texas, killed Lee Harvey Oswald, who worked for a bookseller in Dallas.",
    "Alan Turing, a native of London, worked for the National Physical Laboratory in Teddington, England.",
    "James Watt of Glasgow, Scotland, met Matthew Boulton in Birmingham, England.",
    "The Red Cross, based in Geneva, Switzerland, was founded by Henry Dunant of Geneva.",
]
KINDS = {"PER": "Peop", "LOC": "Loc", "ORG": "Org", "MISC": "Other"}  # of ner-en, and of the training data


def main() -> None:
    """Train relations on CoNLL-04, and draw what they find between the entities of the bundled tagger."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks", "relation-conll04")
    settings = task_settings("relations", ["training.epochs=4"])
    with tempfile.TemporaryDirectory() as scratch:
        found = train(
            "relations", data, encoder="chars+en", tokenizer="rules:en", out=Path(scratch, "relations"),
            settings=settings, progress=True,
        )  # fmt: skip
        graph = build_graph(DOCUMENTS, relations=found.model, entities="ner-en", rename=KINDS)
    print(f"dev F1 between given entities {found.scores.values['f1']:.3f}; {graph.sizes()}\n\n{graph}\n")
    for node in graph.find("Lovelace"):
        print(f"{node.name} ({node.kind}), also {', '.join(node.names[1:])}")
        for mention in node.mentions:
            print(f"  document {mention.document}, {mention.start} to {mention.end}: {mention.text}")
    if len(sys.argv) > 1:
        graph.save(sys.argv[1], overwrite=True)
    if len(sys.argv) > 2:
        graph.draw(sys.argv[2])


if __name__ == "__main__":
    main()
