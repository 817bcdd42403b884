"""Risk control: a report on each piece of news and each message.

python examples/risk/report.py MODELS [DOCS…] [--json] [--graph GRAPH.graphml]

MODELS is what examples/risk/train.py has written; DOCS are files as `elmokit index` reads them, by default
examples/risk/inbox.jsonl. A report has the mood of each sentence and of the whole, the probability that it is
a fraud, the companies, the people and places around them, and what they have to do with each other, each with
the sentence that says it. What needs somebody's eyes is marked.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmokit import Classifier, Document, RelationModel, Tagger, build_graph, read_documents
from elmokit.text import split_sentences

INBOX = Path(__file__).parent / "inbox.jsonl"
KINDS = {"PER": "Peop", "LOC": "Loc", "ORG": "Org", "MISC": "Other"}  # of ner-en, and of the relations
FRAUD, BAD_NEWS = 0.5, 0.5  # from which on a document is marked


class Desk:
    """The four models, and what they say about a document."""

    def __init__(self, models: Path) -> None:
        self.sentiment = Classifier.load(models / "sentiment")
        self.fraud = Classifier.load(models / "fraud")
        self.relations = RelationModel.load(models / "relations")
        self.tagger = Tagger.load("ner-en")

    def reports(self, documents: list[Document]) -> Iterator[dict[str, Any]]:
        """Yield a report for each document, those of one inbox together in one graph."""
        graph = build_graph(documents, relations=self.relations, entities=self.tagger, rename=KINDS)
        names = {node.id: node.name for node in graph.nodes}
        for document in documents:
            spans = split_sentences(document.text, "en")
            moods = self.sentiment.predict([document.text[start:end] for start, end in spans])
            negative = max((one.scores.get("negative", 0.0) for one in moods), default=0.0)
            fraud = self.fraud.predict(document.text).scores.get("spam", 0.0)
            # Each model judges what it has learnt from: the one news, the other messages.
            if document.metadata.get("kind") == "news":
                fraud = 0.0
            elif document.metadata.get("kind") == "message":
                negative = 0.0
            here = [node for node in graph.nodes if any(m.document == document.id for m in node.mentions)]
            relations = [
                {"from": names[edge.source], "relation": edge.relation, "to": names[edge.target],
                 "probability": round(one.probability, 2), "sentence": one.sentence}
                for edge in graph.edges for one in edge.evidence if one.document == document.id
            ]  # fmt: skip
            yield {
                "id": document.id,
                "marked": ["fraud"] * (fraud >= FRAUD) + ["bad news"] * (negative >= BAD_NEWS),
                "fraud": round(fraud, 3),
                "negative": round(negative, 3),
                "sentences": [{"mood": one.label, "text": one.text} for one in moods],
                "companies": [node.name for node in here if node.kind == "Org"],
                "others": [f"{node.name} ({node.kind})" for node in here if node.kind != "Org"],
                "relations": relations,
            }
        self.graph = graph


def shown(report: dict[str, Any]) -> str:
    """A report for people."""
    lines = [
        f"{report['id']}   {', '.join(report['marked']).upper() or 'nothing to mark'}",
        f"  fraud {report['fraud']:.2f}   bad news {report['negative']:.2f}",
        *(f"  {one['mood']:<9} {one['text']}" for one in report["sentences"]),
        f"  companies: {', '.join(report['companies']) or 'none'}",
        f"  also: {', '.join(report['others']) or 'none'}",
        *(
            f"  {one['from']} --{one['relation']}--> {one['to']}  ({one['probability']})"
            for one in report["relations"]
        ),
    ]
    return "\n".join(lines)


def main() -> None:
    """Report on an inbox."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("documents", nargs="*", default=[INBOX])
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.add_argument("--graph", help="also write the graph of all documents")
    arguments = parser.parse_args()
    desk = Desk(arguments.models)
    for report in desk.reports(list(read_documents(arguments.documents))):
        print(json.dumps(report, ensure_ascii=False) if arguments.json else f"{shown(report)}\n")
    if arguments.graph:
        desk.graph.save(arguments.graph, overwrite=True)


if __name__ == "__main__":
    main()
