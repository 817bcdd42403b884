"""How fast `elmokit prepare` is, and how much memory it takes: in all its processes, shared pages once.

    ELMOKIT_DATA=… python benchmarks/prepare.py                  # English Wikipedia, 31 million words
    ELMOKIT_DATA=… python benchmarks/prepare.py --megabytes 20   # its beginning
    python benchmarks/prepare.py --synthetic --megabytes 500     # text of which every other word is new

The synthetic text shows that memory does not grow with the number of distinct words.
"""

import argparse
import lzma
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from common import data_file, machine, markdown_table
from elmokit.corpus import PreparedCorpus

MEGABYTE = 1 << 20


def write_wikipedia(path: Path, limit: int | None) -> None:
    """Unpack the text, so that reading is not what is measured; or its beginning."""
    source = data_file("lm/en-wikipedia.txt.xz", "prose, a paragraph a line, blank lines between articles")
    with lzma.open(source) as packed, path.open("wb") as file:
        while (limit is None or file.tell() < limit) and (block := packed.readlines(MEGABYTE)):
            file.writelines(block)


def write_synthetic(path: Path, limit: int, *, seed: int = 0) -> None:
    """Sentences of 20 words, every other one a random number in words' clothes."""
    generator = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < limit:
            for _ in range(1000):
                words = (f"the x{generator.getrandbits(40):x}" for _ in range(10))
                file.write(" ".join(words) + " .\n\n")


def watch(command: list[str | Path]) -> tuple[float, float]:
    """Run a command; return its seconds and its peak memory in MB, over all its processes."""
    began = time.monotonic()
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        root = psutil.Process(process.pid)
        while process.poll() is None:
            peak = max(peak, _memory(root))
            time.sleep(0.2)
        seconds = time.monotonic() - began
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed with status {process.returncode}")
    return seconds, peak / MEGABYTE


def _memory(root: psutil.Process) -> int:
    """Proportional memory of a process and its children, in bytes; mapped files count while in use."""
    total = 0
    for process in (root, *root.children(recursive=True)):
        try:
            total += process.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):  # it has ended meanwhile
            continue
    return total


def main() -> None:
    """Make the text, run the command, print what was seen."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, help="size of the text (default: all; synthetic: 500)")
    parser.add_argument("--synthetic", action="store_true", help="a text with many distinct words")
    parser.add_argument("--workers", type=int, help="processes (default: the cores)")
    arguments = parser.parse_args()
    facts = machine()
    with TemporaryDirectory() as temporary:
        text, out = Path(temporary, "text.txt"), Path(temporary, "corpus")
        if arguments.synthetic:
            write_synthetic(text, (arguments.megabytes or 500) * MEGABYTE)
        else:
            write_wikipedia(text, arguments.megabytes and arguments.megabytes * MEGABYTE)
        main_program = [sys.executable, "-c", "from elmokit.cli import main; main()"]
        options = ["--workers", str(arguments.workers)] if arguments.workers else []
        seconds, peak = watch(
            [*main_program, "prepare", text, "--language", "en", "--out", out, *options, "--quiet"]
        )
        report = PreparedCorpus(out).report
        megabytes = text.stat().st_size / MEGABYTE
    for key, value in facts.items():
        print(f"{key}: {value}")
    header = [
        "text, MB",
        "tokens",
        "distinct",
        "vocabulary",
        "seconds",
        "tokens/s",
        "MB/s",
        "peak memory, MB",
    ]
    row = [
        f"{megabytes:.0f}",
        f"{report['tokens']:,}",
        f"{report['types']:,}",
        f"{report['vocabulary_size']:,}",
    ]
    speed = [
        f"{seconds:.0f}",
        f"{report['tokens'] / seconds:,.0f}",
        f"{megabytes / seconds:.2f}",
        f"{peak:.0f}",
    ]
    print("\n" + markdown_table(header, [row + speed]))


if __name__ == "__main__":
    main()
