"""Find documents by words and by meaning, and uses of words by their meaning."""

from elmokit.search.documents import Document, as_documents, read_documents
from elmokit.search.index import Index
from elmokit.search.index_creation import IndexReport
from elmokit.search.index_facts import describe_index
from elmokit.search.neighbours import Use, nearest_uses
from elmokit.search.passages import PassageSettings
from elmokit.search.query import RETRIEVERS, Hit, Match
from elmokit.search.retrieval_scores import (
    RetrievalScores,
    evaluate_search,
    read_judgements,
    read_queries,
    read_run,
    score_run,
    write_run,
)
from elmokit.search.uses_picture import context, plane
from elmokit.search.word_uses import WordUse, WordUses, find_uses

__all__ = [
    "RETRIEVERS", "Document", "Hit", "Index", "IndexReport", "Match", "PassageSettings", "RetrievalScores",
    "Use", "WordUse", "WordUses", "as_documents", "context", "describe_index", "evaluate_search", "find_uses",
    "nearest_uses", "plane", "read_documents", "read_judgements", "read_queries", "read_run", "score_run",
    "write_run",
]  # fmt: skip
