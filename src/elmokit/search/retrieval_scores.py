"""How good a search is: nDCG@10, MAP, recall@100 and MRR, and the files of TREC.

The definitions are those of trec_eval: gains are the judged relevances themselves, and documents that were
not judged count as irrelevant.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from elmokit.base import output_file, parse_json
from elmokit.errors import DataError
from elmokit.text import read_lines

if TYPE_CHECKING:
    from elmokit.search.index import Index

Judgements: TypeAlias = dict[str, dict[str, int]]  # query → document → relevance
Run: TypeAlias = dict[str, list[tuple[str, float]]]  # query → documents and scores, best first

_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True)
class RetrievalScores:
    """Means over the queries that have a relevant document, from 0 to 1."""

    ndcg_10: float
    map: float
    recall_100: float
    mrr: float
    queries: int

    def __str__(self) -> str:
        return (
            f"nDCG@10 {self.ndcg_10:.4f}  MAP {self.map:.4f}  recall@100 {self.recall_100:.4f}  "
            f"MRR {self.mrr:.4f}  ({self.queries:,} queries)"
        )


def score_run(run: Mapping[str, Sequence[tuple[str, float]]], judgements: Judgements) -> RetrievalScores:
    """Score rankings.

    Example:
        >>> score_run({"q": [("a", 2.0), ("b", 1.0)]}, {"q": {"b": 1}}).mrr
        0.5
    """
    rows = []
    for query, judged in judgements.items():
        relevant = {name: gain for name, gain in judged.items() if gain > 0}
        if relevant:
            rows.append(_scores([name for name, _ in run.get(query, ())], relevant))
    if not rows:
        raise DataError("no query has a relevant document; check that queries and judgements belong together")
    ndcg, precision, recall, reciprocal = (fmean(column) for column in zip(*rows, strict=True))
    return RetrievalScores(ndcg_10=ndcg, map=precision, recall_100=recall, mrr=reciprocal, queries=len(rows))


def _scores(ranking: Sequence[str], relevant: Mapping[str, int]) -> tuple[float, float, float, float]:
    gains = [relevant.get(name, 0) for name in ranking]
    ideal = sorted(relevant.values(), reverse=True)
    hits = [rank for rank, gain in enumerate(gains, start=1) if gain]
    return (
        _discounted(gains[:10]) / _discounted(ideal[:10]),
        sum(found / rank for found, rank in enumerate(hits, start=1)) / len(relevant),
        sum(rank <= 100 for rank in hits) / len(relevant),
        1 / hits[0] if hits else 0.0,
    )


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def evaluate_search(
    index: "Index",
    queries: Mapping[str, str],
    judgements: Judgements,
    *,
    by: Sequence[str] | None = None,
    depth: int = 100,
) -> tuple[RetrievalScores, Run]:
    """Search for every query that was judged; return the scores and the rankings.

    Args:
        index: The index.
        queries: The text of each.
        judgements: Which documents are relevant.
        by: The retrievers; see `Index.search`.
        depth: How many documents of each query are ranked.

    Raises:
        DataError: A judged query has no text, or nothing was judged.
    """
    missing = [name for name in judgements if name not in queries]
    if missing:
        raise DataError(f"query {missing[0]!r:.60} was judged and has no text ({len(missing):,} such)")
    names = list(judgements)
    run: Run = {}
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        found = index.search_many([queries[name] for name in part], depth, by=by)
        for name, hits in zip(part, found, strict=True):
            run[name] = [(hit.id, hit.score) for hit in hits]
    return score_run(run, judgements), run


def read_queries(path: str | Path) -> dict[str, str]:
    """Read queries: JSON lines with `_id` or `id` and `text`, or lines with a name, a tab and the text.

    Raises:
        DataError: A line is something else.
    """
    queries = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        name, tab, text = line.partition("\t")
        if line.startswith("{"):
            try:
                record = parse_json(line)
            except ValueError as error:
                raise DataError(f"{path}, line {number}: not JSON ({error})") from error
            name, text = str(record.get("_id", record.get("id", ""))), record.get("text", "")
            tab = "\t" if isinstance(text, str) else ""
        if not (name and tab and text.strip()):
            raise DataError(f"{path}, line {number}: {line[:60]!r}, expected a name, a tab and a query")
        queries[name] = text
    return queries


def read_judgements(path: str | Path) -> Judgements:
    """Read judgements: `query 0 document relevance`, as TREC's, or `query document relevance`.

    Raises:
        DataError: A line is something else.
    """
    found: Judgements = {}
    for number, line in enumerate(read_lines(path), start=1):
        parts = line.split()
        if not parts or (number == 1 and not parts[-1].lstrip("-").isdecimal()):
            continue
        if len(parts) not in (3, 4) or not parts[-1].lstrip("-").isdecimal() or len(parts[-1]) > 9:
            raise DataError(f"{path}, line {number}: {line[:60]!r}, expected query, document and relevance")
        found.setdefault(parts[0], {})[parts[-2]] = int(parts[-1])
    return found


def read_run(path: str | Path) -> Run:
    """Read a TREC run: `query Q0 document rank score tag`; documents are ordered by score, then by name.

    Raises:
        DataError: A line is something else.
    """
    run: Run = {}
    for number, line in enumerate(read_lines(path), start=1):
        parts = line.split()
        try:
            query, _, document, _, score, _ = parts
            run.setdefault(query, []).append((document, float(score)))
        except ValueError:
            raise DataError(
                f"{path}, line {number}: {line[:60]!r}, expected query, Q0, document, rank, score and tag"
            ) from None
    return {query: sorted(found, key=lambda one: (-one[1], one[0])) for query, found in run.items()}


def write_run(path: str | Path, run: Mapping[str, Iterable[tuple[str, float]]]) -> None:
    """Write a TREC run. Scores are made to fall strictly, so that every reader keeps the order.

    Raises:
        DataError: The file cannot be written.
    """
    lines = []
    for query, found in run.items():
        ranked = list(found)
        for rank, (document, _) in enumerate(ranked, start=1):
            if len(f"{query} {document}".split()) != 2:
                raise DataError(f"a run has no room for white space: query {query!r}, document {document!r}")
            lines.append(f"{query} Q0 {document} {rank} {len(ranked) - rank + 1} elmokit\n")
    with output_file(Path(path)) as draft:
        draft.write_text("".join(lines), encoding="utf-8")
