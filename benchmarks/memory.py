"""The memory that `elmokit embed` takes for a large text file, over time.

    ELMOKIT_DATA=… python benchmarks/memory.py

The text is English Wikipedia, repeated up to the size asked for; the model has the small shape and random
weights. Memory is the process's resident set as Linux tells it (VmRSS, its peak VmHWM), progress the place up
to which it has read the file. 200 MB take hours on two cores: a run that is cut short says so.
"""

import argparse
import lzma
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from common import SHAPES, data_file, markdown_table, random_model
from elmokit.formats import save_model
from elmokit.model import BiLMConfig, CharCNNConfig
from elmokit.text import TokenizerSpec

LIMIT_MEGABYTES = 1500
TINY = BiLMConfig(
    encoder=CharCNNConfig(filters=((2, 8),), embedding_dim=4), cell_dim=8, projection_dim=4, num_layers=1
)
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Sample:
    """The process at one moment: seconds since its start, bytes of text read, memory in MB."""

    seconds: float
    read: int
    resident: float
    peak: float


def write_text(path: Path, size: int) -> None:
    """Fill `path` with `size` bytes of Wikipedia, ending at the end of a line."""
    source = data_file("lm/en-wikipedia.txt.xz", "English Wikipedia as plain text, a paragraph a line, by xz")
    with path.open("wb") as target:
        while target.tell() < size:
            with lzma.open(source) as lines:
                for line in lines:
                    target.write(line)
                    if target.tell() >= size:
                        return


def watch(process: subprocess.Popen[bytes], text: Path, minutes: float) -> list[Sample]:
    """Look at the process until it ends; after so many minutes end it, as Ctrl-C would."""
    samples: list[Sample] = []
    start = time.monotonic()
    read = 0
    while process.poll() is None:
        seconds = time.monotonic() - start
        read = max(read, _position(process.pid, text))
        memory = _memory(process.pid)
        if memory:
            samples.append(Sample(seconds, read, memory["VmRSS"], memory["VmHWM"]))
        if minutes and seconds > 60 * minutes:
            process.send_signal(signal.SIGINT)
            process.wait()
        time.sleep(0.25)
    return samples


def _position(pid: int, text: Path) -> int:
    """How far the process has read the text, 0 while it has not opened it."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if link.readlink() == text:
                info = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text(encoding="utf-8")
                return int(info.split()[1])
        except FileNotFoundError:  # it was closed meanwhile
            continue
    return 0


def _memory(pid: int) -> dict[str, float]:
    """VmRSS and VmHWM in MB; nothing once the process has ended."""
    fields = (line.split() for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines())
    return {name[:-1]: int(rest[0]) / 1024 for name, *rest in fields if name in ("VmRSS:", "VmHWM:")}


def report(samples: list[Sample], size: int, *, finished: bool) -> None:
    """Print the memory at each tenth of what was read and at the end, and the peak."""
    total = samples[-1].read
    tenths = [next(s for s in samples if s.read >= total * tenth / 10) for tenth in range(1, 11)]
    rows = [
        [f"{s.read / MEGABYTE:.1f}", f"{s.seconds:.0f}", f"{s.resident:.0f}", f"{s.peak:.0f}"]
        for s in [*tenths, samples[-1]]
    ]
    print(markdown_table(["text read, MB", "seconds", "memory, MB", "peak so far, MB"], rows))
    peak = samples[-1].peak
    if finished:
        print(f"\nall {size / MEGABYTE:.0f} MB embedded and the file of vectors written")
    else:
        print(
            f"\nstopped by --minutes after {total / MEGABYTE:.1f} of {size / MEGABYTE:.0f} MB; "
            "the rest, and the writing of the finished file, did not happen in this run"
        )
    print(f"peak memory {peak:.0f} MB, aim < {LIMIT_MEGABYTES} MB with the small shape")


def main() -> None:
    """Make text and model, run the command, print what was seen."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=200, help="size of the text (default 200)")
    parser.add_argument("--minutes", type=float, default=10, help="stop after so many; 0: never (default 10)")
    parser.add_argument(
        "--output", default="vectors.npy", help="its ending is the format (default vectors.npy)"
    )
    parser.add_argument(
        "--layers", choices=["all", "top", "average", "mix"], help="what to keep of the layers"
    )
    parser.add_argument(
        "--shape",
        choices=["small", "tiny"],
        default="small",
        help="tiny: the path of files alone, in minutes",
    )
    arguments = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        text, model = folder / "text.txt", folder / "model"
        write_text(text, arguments.megabytes * MEGABYTE)
        config = TINY if arguments.shape == "tiny" else SHAPES["small"]
        save_model(replace(random_model(config), tokenizer=TokenizerSpec(name="rules", language="en")), model)
        command = [
            sys.executable,
            "-c",
            "from elmokit.cli import main; main()",
            "embed",
            "--split",
            "--model",
            model,
        ]
        command += ["--layers", arguments.layers] if arguments.layers else []
        process = subprocess.Popen([*command, text, "--out", folder / arguments.output])
        samples = watch(process, text, arguments.minutes)
        size = text.stat().st_size
    interrupted = 130
    if process.returncode not in (0, interrupted):
        sys.exit(f"elmokit embed failed with status {process.returncode}")
    report(samples, size, finished=process.returncode == 0)


if __name__ == "__main__":
    main()
