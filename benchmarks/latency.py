"""Milliseconds for one sentence of 1 to 128 tokens: elmokit's engines beside MiniLM-L6, one thread and two.

    ELMOKIT_DATA=… python benchmarks/latency.py

Every system runs in a process of its own and knows all words (a service does, after a while). Systems take
turns at each length; figures are the best of all calls, which other programs disturb least, and the median.
elmokit runs the bundled English model. Results go to `results/latency.md` and `.json`.
"""

import argparse
import json
from contextlib import ExitStack
from itertools import chain, islice
from statistics import median

from common import RESULTS, machine, markdown_table, wikitext_sentences
from elmokit.kernels import engine_name
from peers import Peer

LENGTHS = (1, 2, 4, 8, 16, 22, 32, 64, 128)
# Title, worker, engine, and what it loads.
SYSTEMS = (
    ("elmokit int8", "elmokit", engine_name("int8"), {"options": "en", "precision": "int8"}),
    ("elmokit int8, AVX2", "elmokit", "avx2", {"options": "en", "precision": "int8"}),
    ("elmokit int8, torch", "elmokit", "torch", {"options": "en", "precision": "int8"}),
    ("elmokit float32", "elmokit", engine_name("float32"), {"options": "en", "precision": "float32"}),
    ("MiniLM-L6 int8, onnxruntime", "minilm_onnx", "", {}),
    ("MiniLM-L6 float32", "minilm", "", {}),
)


def measure(threads: int, repeats: int) -> dict[str, dict[int, tuple[float, float]]]:
    """For each system and length the best and the median milliseconds."""
    words = list(islice(chain.from_iterable(wikitext_sentences()), 4 * max(LENGTHS)))
    found: dict[str, dict[int, list[float]]] = {title: {} for title, *_ in SYSTEMS}
    with ExitStack() as stack:
        peers = {}
        for title, worker, engine, model in SYSTEMS:
            peers[title] = stack.enter_context(Peer(worker, threads=threads))
            peers[title].ask("load", **({"engine": engine} if engine else {}), **model)
        for _ in range(repeats):
            for length in LENGTHS:
                sentences = [words[start : start + length] for start in range(0, 3 * length, length)] * 7
                for title, peer in peers.items():
                    seconds = peer.ask("single", sentences=sentences)["seconds"]
                    found[title].setdefault(length, []).extend(seconds[3:])  # the first three have new words
    return {
        title: {length: (1e3 * min(each), 1e3 * median(each)) for length, each in lengths.items()}
        for title, lengths in found.items()
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default 5)")
    arguments = parser.parse_args()
    result = {str(threads): measure(threads, arguments.repeats) for threads in (1, 2)}
    parts = ["# Latency"]
    for threads, systems in result.items():
        rows = (
            [title, *(f"{best:.2f} ({middle:.2f})" for best, middle in lengths.values())]
            for title, lengths in systems.items()
        )
        parts.append(f"{threads} thread{'s' if threads != '1' else ''}, ms: best (median)")
        parts.append(markdown_table(["tokens", *map(str, LENGTHS)], rows))
    page = "\n\n".join(parts) + "\n"
    print(page)
    (RESULTS / "latency.md").write_text(page, encoding="utf-8")
    whole = {"machine": machine(), "milliseconds": result}
    (RESULTS / "latency.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
