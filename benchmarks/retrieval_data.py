"""Collections for search: SciFact and Cranfield, as published."""

import re
from dataclasses import dataclass
from pathlib import Path

from common import data_file
from elmokit.search import Document, read_documents, read_judgements, read_queries
from elmokit.text import read_lines

NAMES = ("scifact", "cranfield")


@dataclass(frozen=True)
class Collection:
    """Documents, queries, and which documents answer them how well."""

    documents: list[Document]
    queries: dict[str, str]
    judgements: dict[str, dict[str, int]]


def read_collection(name: str) -> Collection:
    """Read a collection of `NAMES`."""
    folder = f"tasks/retrieval-{name}"
    if name == "scifact":
        source = "SciFact in BEIR's layout"
        documents = list(read_documents([data_file(f"{folder}/corpus.jsonl.xz", source)]))
        judgements = read_judgements(data_file(f"{folder}/qrels-train.tsv", source))
        queries = read_queries(data_file(f"{folder}/queries.jsonl", source))
        return Collection(documents, queries, judgements)
    source = "the Cranfield collection"
    records = _records(data_file(f"{folder}/cran.all.1400.xz", source))
    documents = [
        # An abstract begins with the title once more.
        Document(id=name, text=fields["T"] + "\n\n" + fields["W"].removeprefix(fields["T"]).strip())
        for name, fields in records
    ]
    asked = _records(data_file(f"{folder}/cran.qry", source))
    # Judgements number the queries from 1 in the order of the file, not by their names. Relevance is coded
    # from 1, a complete answer, to 4, of minimum interest.
    queries = {str(number): fields["W"] for number, (_, fields) in enumerate(asked, start=1)}
    judgements: dict[str, dict[str, int]] = {}
    for line in read_lines(data_file(f"{folder}/cranqrel", source)):
        if line.split():
            query, document, code = line.split()
            judgements.setdefault(query, {})[document] = 5 - int(code) if int(code) > 0 else 0
    return Collection(documents, queries, judgements)


def _records(path: Path) -> list[tuple[str, dict[str, str]]]:
    """The records of a file in SMART's format: `.I name`, then fields that begin with `.LETTER`."""
    text = "\n".join(read_lines(path))
    found = []
    for record in re.split(r"^\.I +", text, flags=re.MULTILINE)[1:]:
        name, *parts = re.split(r"^\.([A-Z])\s*$", record, flags=re.MULTILINE)
        fields = {
            letter: " ".join(value.split()) for letter, value in zip(parts[::2], parts[1::2], strict=True)
        }
        found.append((name.strip(), {"T": "", "W": "", **fields}))
    return found
