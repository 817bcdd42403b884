"""An index of many short passages: memory, speed of building and of asking, size.

    python benchmarks/search_million.py en --passages 1000000 --out FOLDER

The passages are sentences of raw English text. An interrupted run goes on where it was: run it again with the
same folder. Throughput stands beside that of the vectors alone, as `elmokit embed --pooling whitened` makes
them, on the first passages of the same text.
"""

import itertools
import lzma
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import elmokit
from common import data_file, markdown_table, model_parser, report
from elmokit.search import Document, Index
from elmokit.text import split_sentences

_FILES = ("en-wikipedia", "en-news", "en-talk", "en-books")
_QUERIES = 300
_WAYS = (("bm25",), ("dense",), ("bm25", "dense"), ("bm25", "dense", "late"))


def sentences() -> Iterator[str]:
    """Sentences of 20 to 300 characters."""
    for name in _FILES:
        with lzma.open(data_file(f"lm/{name}.txt.xz", "raw text, a paragraph a line"), "rt") as lines:
            for line in lines:
                for start, end in split_sentences(line, "en"):
                    if 20 <= end - start <= 300:
                        yield " ".join(line[start:end].split())


def embed_speed(elmo: elmokit.Embedder, number: int) -> float:
    """Passages per second of vectors alone."""
    texts = list(itertools.islice(sentences(), number))
    elmo.encode(texts[:200])
    start = time.perf_counter()
    elmo.encode(texts)
    return number / (time.perf_counter() - start)


def build(index: Index, passages: int, seconds: float) -> tuple[int, float]:
    """Add passages until there are enough or the time is over; how many, and the passages per second."""
    start = time.perf_counter()
    before, skipped = len(index), 0.0

    def timed() -> Iterator[Document]:
        nonlocal skipped
        for number, text in enumerate(itertools.islice(sentences(), passages)):
            if number == before:
                skipped = time.perf_counter() - start
            if time.perf_counter() - start > seconds:
                return
            yield Document(id=str(number), text=text)

    index.add(timed())
    return len(index) - before, (len(index) - before) / (time.perf_counter() - start - skipped)


def ask(index: Index, queries: list[str], by: tuple[str, ...]) -> tuple[float, float]:
    """Median and 95th percentile of the milliseconds of a query."""
    index.search(queries[0], by=by)  # opens the files
    times = []
    for query in queries:
        start = time.perf_counter()
        index.search(query, by=by)
        times.append(1000 * (time.perf_counter() - start))
    return float(np.percentile(times, 50)), float(np.percentile(times, 95))


def main() -> None:
    """Build, ask, print, write."""
    parser = model_parser(__doc__)
    parser.add_argument("--passages", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, required=True, help="folder of the index")
    parser.add_argument("--words", action="store_true", help="store the vectors of words, too")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop building after so many")
    arguments = parser.parse_args()
    elmo = elmokit.load(arguments.model, precision=arguments.precision)
    alone = embed_speed(elmo, min(20_000, arguments.passages))
    with Index.build((), arguments.out, model=elmo, words=arguments.words) as index:
        added, speed = build(index, arguments.passages, arguments.seconds)
        size = sum(path.stat().st_size for path in index.path.rglob("*") if path.is_file())
        # Questions are other sentences, without their last words.
        texts = itertools.islice(sentences(), 0, len(index) or 1, max(1, len(index) // _QUERIES))
        queries = [" ".join(text.split()[:8]) for text in texts][:_QUERIES]
        ways = [by for by in _WAYS if arguments.words or "late" not in by]
        asked = {" + ".join(by): ask(index, queries, by) for by in ways}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        result = {
            "passages": len(index), "added in this run": added, "passages/s": speed,
            "passages/s of vectors alone": alone, "peak memory, MB": peak, "size, MB": size / 1e6,
            "milliseconds of a query, median and p95": asked, "words": arguments.words,
        }  # fmt: skip
        print(markdown_table(["", ""], [(name, str(value)) for name, value in result.items()]))
        report("search-million", arguments, "", result, suffix="-words" if arguments.words else "")


if __name__ == "__main__":
    main()
