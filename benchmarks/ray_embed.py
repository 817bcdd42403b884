"""A corpus through Ray: speed beside `elmokit embed --workers`, memory of the actors, memory over a long run.

    ELMOKIT_DATA=… python benchmarks/ray_embed.py                    # 1,000,000 tokens
    ELMOKIT_DATA=… python benchmarks/ray_embed.py --tokens 5000000

The text is English Wikipedia, the model the bundled English one, the vectors its mix in float16, as Parquet.
Seconds are those of the whole call, Ray's start included; processor seconds those of all processes that
embed. They say more than seconds on a machine that has other work. Private memory is what only one process
has (USS).
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from common import RESULTS, SHAPES, machine, markdown_table, random_model
from elmokit.formats import save_model
from embed_files import write_text

os.environ.setdefault("RAY_worker_niceness", "0")  # as the processes of the command
MB = 1e6
OPENS = """
import psutil
from elmokit.integrations.embed_batches import EmbedBatches
EmbedBatches({model!r}).opened()
print(psutil.Process().memory_full_info().uss, flush=True)
input()
"""
IMPORTS_TORCH = "import torch, psutil; print(psutil.Process().memory_full_info().uss)"


class Watch(threading.Thread):
    """Samples the actors: the private memory of each, and its processor seconds."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[dict[int, float]] = []
        self.shared: dict[int, float] = {}
        self.seconds: dict[int, float] = {}
        self.ended = threading.Event()

    def run(self) -> None:
        """Sample until the end."""
        while not self.ended.wait(1.0):
            found = {}
            for one in psutil.process_iter(["cmdline"]):
                try:
                    if not "".join(one.info["cmdline"] or ()).startswith("ray::ClusterActor"):
                        continue
                    memory, times = one.memory_full_info(), one.cpu_times()
                except psutil.Error:
                    continue
                found[one.pid] = memory.uss / MB
                self.shared[one.pid] = (memory.rss - memory.uss) / MB
                self.seconds[one.pid] = times.user + times.system
            if found:
                self.samples.append(found)


def by_command(text: Path, target: Path, workers: int, precision: str) -> tuple[float, float]:
    """Seconds and processor seconds of `elmokit embed --workers`."""
    command = [sys.executable, "-m", "elmokit.cli", "embed", str(text), "-o", str(target), "--quiet"]
    command += ["--layers", "mix", "--dtype", "float16", "--precision", precision, "--workers", str(workers)]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def by_ray(text: Path, target: Path, actors: int, precision: str) -> tuple[float, float, Watch]:
    """Seconds, processor seconds of the actors, and what was seen of them."""
    from elmokit.integrations.ray import EmbedBatches, embed_dataset

    embed = EmbedBatches("en", layers="mix", dtype="float16", precision=precision)
    watch, start, own = Watch(), time.perf_counter(), time.process_time()
    watch.start()
    report = embed_dataset(text, target, embed=embed, actors=actors)
    seconds = time.perf_counter() - start
    watch.ended.set()
    print(report, flush=True)
    return seconds, sum(watch.seconds.values()) + time.process_time() - own, watch


def private_memory(model: str) -> list[float]:
    """Private megabytes of two processes that have opened a model, the second one after the first."""
    processes, found = [], []
    for _ in range(2):
        command = [sys.executable, "-c", OPENS.format(model=model)]
        one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert one.stdout is not None
        one.stdout.readline()  # it has opened the model
        processes.append(one)
    for one in processes:
        found.append(psutil.Process(one.pid).memory_full_info().uss / MB)
    for one in processes:
        one.communicate("\n")
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=1_000_000, help="size of the text (default 1,000,000)")
    parser.add_argument("--workers", type=int, default=2, help="processes of either (default 2)")
    parser.add_argument("--precision", default="float32", choices=("float32", "int8", "bfloat16"))
    parser.add_argument("--only-ray", action="store_true", help="leave out the command")
    arguments = parser.parse_args()
    rows, facts = [], {}
    with TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        write_text(text, arguments.tokens)
        if not arguments.only_ray:
            seconds, cpu = by_command(
                text, Path(folder) / "vectors.parquet", arguments.workers, arguments.precision
            )
            rows.append([f"embed --workers {arguments.workers}", round(seconds, 1), round(cpu, 1)])
            print(rows[-1], flush=True)
        seconds, cpu, watch = by_ray(text, Path(folder) / "shards", arguments.workers, arguments.precision)
        rows.append([f"Ray, {arguments.workers} actors", round(seconds, 1), round(cpu, 1)])
        print(rows[-1], flush=True)
    torch_alone = subprocess.run(
        [sys.executable, "-c", IMPORTS_TORCH], check=True, capture_output=True, text=True
    )
    with TemporaryDirectory() as folder:
        save_model(random_model(SHAPES["original"]), Path(folder) / "original")
        opened = {
            name: private_memory(path)
            for name, path in (("en", "en"), ("original shape", f"{folder}/original"))
        }
    peaks = {pid: max(sample.get(pid, 0.0) for sample in watch.samples) for pid in watch.seconds}
    half = len(watch.samples) // 2
    facts = {
        "private memory of an actor at its peak, MB": round(max(peaks.values())),
        "of that in the first half of the run, MB": round(
            max(max(sample.values()) for sample in watch.samples[: half or 1])
        ),
        "private memory of a process that imports torch, MB": round(int(torch_alone.stdout) / MB),
        **{
            f"… that has opened {name}, beside another one, MB": round(max(each))
            for name, each in opened.items()
        },
        "memory that an actor shares with others, MB": round(max(watch.shared.values())),
    }
    page = f"# A corpus through Ray\n\n{arguments.tokens:,} words, {arguments.precision}, mix in float16.\n\n"
    page += markdown_table(["", "seconds", "processor seconds"], rows) + "\n\n"
    page += markdown_table(["", ""], [list(pair) for pair in facts.items()]) + "\n"
    print(page)
    (RESULTS / "ray_embed.md").write_text(page, encoding="utf-8")
    whole = {"machine": machine(), "tokens": arguments.tokens, "rows": rows, "facts": facts}
    (RESULTS / "ray_embed.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
