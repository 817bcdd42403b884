"""Embed a whole text file with the command: seconds and processor seconds by engine and format.

    ELMOKIT_DATA=… python benchmarks/embed_files.py
    ELMOKIT_DATA=… python benchmarks/embed_files.py --old SRC    # also an older elmokit, by its src folder

The text is English Wikipedia, the model the bundled English one, in int8, all layers (sentence vectors for
.npy). Start of the program and writing of the finished file are included.
"""

import argparse
import json
import lzma
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from common import RESULTS, data_file, machine, markdown_table

ENDINGS = (".parquet", ".h5", ".npy")


def write_text(path: Path, tokens: int) -> None:
    """Write about so many tokens, a paragraph's sentence a line."""
    source = data_file("lm/en-wikipedia.txt.xz", "English Wikipedia as plain text, a paragraph a line, by xz")
    written = 0
    with lzma.open(source, "rt", encoding="utf-8") as lines, path.open("w", encoding="utf-8") as target:
        for line in lines:
            for sentence in filter(None, line.strip().replace(". ", " .\n").split("\n")):
                target.write(sentence + "\n")
                written += len(sentence.split())
            if written >= tokens:
                return


def run(text: Path, target: Path, variables: dict[str, str]) -> tuple[float, float]:
    """Seconds and processor seconds of the command."""
    command = [sys.executable, "-c", "from elmokit.cli import main; main()", "embed", str(text)]
    command += [str(target)] if "PYTHONPATH" in variables else ["--out", str(target)]  # 0.1 had no option
    command += ["--precision", "int8", "--quiet"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, env={**os.environ, **variables})
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    target.unlink()
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=1_000_000, help="size of the text (default 1,000,000)")
    parser.add_argument("--endings", nargs="+", choices=ENDINGS, default=list(ENDINGS))
    parser.add_argument("--old", metavar="SRC", help="the src folder of an older version")
    arguments = parser.parse_args()
    systems = {"native": {}, "torch": {"ELMOKIT_KERNEL": "torch"}}
    if arguments.old:
        systems["older version"] = {"PYTHONPATH": arguments.old}
    rows = []
    with TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        write_text(text, arguments.tokens)
        for ending in arguments.endings:
            for name, variables in systems.items():
                seconds, cpu = run(text, Path(folder) / f"vectors{ending}", variables)
                rows.append([ending, name, round(seconds, 1), round(cpu, 1)])
                print(rows[-1], flush=True)
    page = f"# Whole files\n\n{arguments.tokens:,} tokens, `elmokit embed --precision int8`.\n\n"
    page += markdown_table(["format", "engine", "seconds", "processor seconds"], rows) + "\n"
    print(page)
    (RESULTS / "embed_files.md").write_text(page, encoding="utf-8")
    whole = {"machine": machine(), "tokens": arguments.tokens, "rows": rows}
    (RESULTS / "embed_files.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
