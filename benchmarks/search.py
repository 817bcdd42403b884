"""Search in SciFact and Cranfield: how good, how fast and how large, beside bm25s and MiniLM.

    OMP_NUM_THREADS=1 python benchmarks/search.py en --precision int8   # both collections, every searcher
    python benchmarks/search.py en --tune      # fusions: the grid on SciFact's train queries, cross-validated

SciFact is asked its 809 train queries; the 300 published ones are kept apart. A collection is small enough to
be compared passage by passage; benchmarks/search_million.py measures a large one. One thread: several that
wait for each other would count as processor time.
"""

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch

import numpy as np

import elmokit
from common import markdown_table, model_parser, report
from elmokit.search import RETRIEVERS, Index, RetrievalScores, score_run
from elmokit.search.query import WEIGHTS
from minilm_search import MiniLM
from retrieval_data import NAMES, Collection, read_collection

Run: TypeAlias = dict[str, list[tuple[str, float]]]
Search: TypeAlias = Callable[[str, int], list[tuple[str, float]]]

DEPTH = 100
_RRF = 60
_TIMED = 200  # queries
_WAYS = {
    "BM25": ("bm25",),
    "{}, passages": ("dense",),
    "{}, words": ("late",),
    "BM25 + {}, passages": ("bm25", "dense"),
    "BM25 + {}, passages, words": ("bm25", "dense", "late"),
}


def reciprocal_ranks(runs: Sequence[Run], weights: Sequence[float]) -> Run:
    """Fuse runs of documents by reciprocal ranks."""
    found: Run = {}
    for query in runs[0]:
        scores: dict[str, float] = {}
        for run, weight in zip(runs, weights, strict=True):
            for rank, (name, _) in enumerate(run.get(query, ()), start=1):
                scores[name] = scores.get(name, 0.0) + weight / (_RRF + rank)
        found[query] = sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:DEPTH]
    return found


def bm25s_search(collection: Collection) -> Search:
    """The library bm25s with its defaults for English: its own words, its stop words, and a stemmer."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    texts = [document.text for document in collection.documents]
    names = [document.id for document in collection.documents]
    retriever = bm25s.BM25()
    retriever.index(
        bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False
    )

    def search(query: str, k: int) -> list[tuple[str, float]]:
        words = bm25s.tokenize(query, stopwords="en", stemmer=stemmer, show_progress=False)
        rows, scores = retriever.retrieve(words, k=min(k, len(names)), show_progress=False)
        return [(names[row], float(score)) for row, score in zip(rows[0], scores[0], strict=True) if score]

    return search


def run_of(search: Search, collection: Collection) -> Run:
    """Ask every query that was judged."""
    return {name: search(collection.queries[name], DEPTH) for name in collection.judgements}


def queries_per_second(searches: Mapping[str, Search], queries: Sequence[str]) -> dict[str, float]:
    """Queries in a second of one processor: one after another, ten documents each.

    The searchers take turns; the best of three turns counts.
    """
    best = dict.fromkeys(searches, 0.0)
    for _ in range(3):
        for name, search in searches.items():
            start = time.process_time()
            for query in queries:
                search(query, 10)
            best[name] = max(best[name], len(queries) / (time.process_time() - start))
    return best


def elmokit_search(index: Index, by: Sequence[str]) -> Search:
    """One of our ways as a function."""
    return lambda query, k: [(hit.id, hit.score) for hit in index.search(query, k, by=by)]


def measure(
    collection: Collection, elmo: elmokit.Embedder, model: str, folder: Path
) -> tuple[list[tuple[object, ...]], dict[str, object]]:
    """Every searcher on one collection."""
    start = time.perf_counter()
    index = Index.build(collection.documents, folder / "index", model=elmo)
    seconds = {"elmokit": time.perf_counter() - start}
    minilm = MiniLM()
    start = time.perf_counter()
    texts = [document.text for document in collection.documents]
    minilm.build([document.id for document in collection.documents], texts)
    seconds["MiniLM"] = time.perf_counter() - start
    searches = {"bm25s": bm25s_search(collection)}
    searches |= {name.format(model): elmokit_search(index, by) for name, by in _WAYS.items()}
    searches["MiniLM"] = minilm.search
    runs = {name: run_of(search, collection) for name, search in searches.items()}
    both = "BM25 + MiniLM"
    runs[both] = reciprocal_ranks([runs["BM25"], runs["MiniLM"]], [1, 1])
    words = f"{model}, words"
    runs[f"BM25 + {words}, by reciprocal ranks"] = reciprocal_ranks([runs["BM25"], runs[words]], [1, 1])
    bm25, dense = searches["BM25"], searches["MiniLM"]

    def hybrid(query: str, k: int) -> list[tuple[str, float]]:
        return reciprocal_ranks([{"": bm25(query, DEPTH)}, {"": dense(query, DEPTH)}], [1, 1])[""][:k]

    speeds = queries_per_second({**searches, both: hybrid}, list(collection.queries.values())[:_TIMED])
    scores = {name: score_run(run, collection.judgements) for name, run in runs.items()}
    sizes = {
        "with words": sum(path.stat().st_size for path in index.path.rglob("*") if path.is_file()),
        "vectors of words": sum(path.stat().st_size for path in index.path.rglob("word*.npy")),
        "text": sum(len(text.encode()) for text in texts),
        "MiniLM, its graph alone": minilm.save(folder / "minilm.usearch"),
    }
    rows = [(name, *_columns(one), speeds.get(name, "")) for name, one in scores.items()]
    return rows, {"scores": {name: vars(one) for name, one in scores.items()}, "queries/CPU-s": speeds,
                  "seconds to build": seconds, "bytes": sizes, "documents": len(texts)}  # fmt: skip


def _columns(scores: RetrievalScores) -> tuple[str, ...]:
    return tuple(f"{one:.4f}" for one in (scores.ndcg_10, scores.map, scores.recall_100, scores.mrr))


def tune(index: Index, collection: Collection) -> list[tuple[object, ...]]:
    """The weights of the fusion: nDCG@10 on all queries, and cross-validated (chosen on four fifths)."""
    gains = {}
    for alike, late, often in itertools.product((0, 0.2, 0.4), (0.25, 0.5, 0.75), (0, 0.25, 0.5)):
        with patch.dict(WEIGHTS, alike=alike, late=late, often=often):
            gains[alike, late, often] = _each(
                run_of(elmokit_search(index, RETRIEVERS), collection), collection
            )
    folds = np.arange(len(collection.judgements)) % 5
    held = np.zeros(len(folds))
    for fold in range(5):
        chosen = max(gains, key=lambda weights: gains[weights][folds != fold].mean())
        held[folds == fold] = gains[chosen][folds == fold]
    rows: list[tuple[object, ...]] = [(*weights, f"{of.mean():.4f}") for weights, of in gains.items()]
    return [*rows, ("chosen on", "the other", "folds", f"{held.mean():.4f}")]


def _each(run: Run, collection: Collection) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    judged = collection.judgements
    return np.array([score_run(run, {name: judged[name]}).ndcg_10 for name in judged])


def main() -> None:
    """Measure, print, write."""
    parser: argparse.ArgumentParser = model_parser(__doc__)
    parser.add_argument("--tune", action="store_true", help="only the weights of the fusion")
    parser.add_argument("--only", choices=NAMES, help="one collection")
    arguments = parser.parse_args()
    elmo = elmokit.load(arguments.model, precision=arguments.precision)
    result: dict[str, object] = {}
    tables = []
    for name in [arguments.only] if arguments.only else NAMES:
        collection = read_collection(name)
        with tempfile.TemporaryDirectory() as folder:
            if arguments.tune:
                index = Index.build(collection.documents, Path(folder) / "index", model=elmo)
                print(
                    f"{name}\n"
                    + markdown_table(["alike", "late", "often", "nDCG@10"], tune(index, collection))
                )
                continue
            rows, result[name] = measure(collection, elmo, Path(arguments.model).name, Path(folder))
        header = [name, "nDCG@10", "MAP", "recall@100", "MRR", "queries/CPU-s"]
        tables.append(markdown_table(header, rows))
    if not arguments.tune:
        suffix = f"-{arguments.only}" if arguments.only else ""
        report("search", arguments, "\n\n".join(tables), result, suffix=suffix)


if __name__ == "__main__":
    main()
