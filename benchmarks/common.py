"""What the benchmarks share: models of random weights, sentences, and how results are shown."""

import argparse
import json
import lzma
import math
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from elmokit.formats import ModelBundle, save_model
from elmokit.model import BiLM, BiLMConfig, CharCNNConfig
from elmokit.pretraining.bilm.recipe import SIZES
from elmokit.text import TokenizerSpec

SHAPES = {name: SIZES[name] for name in ("original", "small")}
_encoder = SHAPES["original"].encoder
assert isinstance(_encoder, CharCNNConfig)
PUBLISHED_FILTERS = _encoder.filters
RESULTS = Path(__file__).parent / "results"


@torch.no_grad()
def random_model(config: BiLMConfig, *, seed: int = 0) -> ModelBundle:
    """Normal weights with variance 1 / (numbers that enter a sum), biases uniform in ± 0.1."""
    generator = torch.Generator().manual_seed(seed)
    model = BiLM(config).eval()
    for name, weight in model.named_parameters():
        if weight.dim() == 1 or name.endswith("bias"):
            weight.uniform_(-0.1, 0.1, generator=generator)
            continue
        if name.startswith("layers."):  # (2, out, in)
            entering = weight.shape[-1]
        else:
            entering = 1 if "embedding" in name else math.prod(weight.shape[1:])
        weight.normal_(0.0, entering**-0.5, generator=generator)
    return ModelBundle(model=model, tokenizer=TokenizerSpec(name="whitespace"), source="random weights")


def write_hdf5(bundle: ModelBundle, folder: Path) -> dict[str, str]:
    """Write a model as the originals read it; the two files by the names that loaders use."""
    save_model(bundle, folder, format="hdf5")
    return {"options": str(folder / "options.json"), "weights": str(folder / "weights.hdf5")}


def data_file(name: str, source: str) -> Path:
    """A file of the data folder, or the end of the program with a word on where the data come from."""
    folder = os.environ.get("ELMOKIT_DATA")
    path = Path(folder or ".") / name
    if folder is None or not path.is_file():
        problem = "is not set" if folder is None else f"has no {name}"
        sys.exit(f"ELMOKIT_DATA {problem}: set it to a folder with {name}, {source}")
    return path


def wikitext_sentences(part: str = "valid") -> Iterator[list[str]]:
    """The ordinary sentences (3 to 80 tokens) of WikiText-2; "@-@" is read as "-", "<unk>" as a word."""
    path = data_file(f"lm/wikitext-2/{part}.txt.xz", f"WikiText-2's wiki.{part}.tokens packed by xz")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(" = "):  # a heading
                continue
            plain = re.sub(r"@(.)@", r"\1", line).replace("<unk>", "unknown")
            for sentence in plain.replace(" . ", " .\n").splitlines():
                tokens = sentence.split()
                if 3 <= len(tokens) <= 80:
                    yield tokens


def machine() -> dict[str, str | int]:
    """What the measurements were made on."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^(model name|flags)\s*: (.*)$", cpuinfo, re.MULTILINE))
    wanted = re.compile("avx2|avx512f|avx512_vnni|avx_vnni|avx512_bf16|amx_.*")
    return {
        "processor": fields.get("model name", platform.processor()),
        "instructions": " ".join(flag for flag in fields.get("flags", "").split() if wanted.fullmatch(flag)),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "load before": f"{os.getloadavg()[0]:.1f}",
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "not set"),
    }


def gemm_peaks() -> dict[str, dict[str, float]]:
    """GFLOP/s of torch's matrix products: for each type of number its operators, each at its best shape."""
    peaks: dict[str, dict[str, float]] = {}
    for rows, inner, columns in ((512, 512, 512), (2048, 2048, 2048), (256, 512, 8192)):
        gflop = 2e-9 * rows * inner * columns
        for precision, name, call in _products(torch.randn(rows, inner), torch.randn(inner, columns)):
            best = peaks.setdefault(precision, {}).get(name)
            # A loop without vector instructions would take minutes for larger products.
            if best is None or gflop / best < _MOST_SECONDS:
                peaks[precision][name] = max(best or 0.0, gflop / _best_seconds(call))
    return peaks


_MOST_SECONDS = 1.0


def _products(a: Tensor, b: Tensor) -> Iterator[tuple[str, str, Callable[[], Tensor]]]:
    """Every way that torch has to multiply these two: its type of number, its name, the call."""
    yield "float32", "torch.mm", partial(torch.mm, a, b)
    yield "bfloat16", "torch.mm", partial(torch.mm, a.bfloat16(), b.bfloat16())
    yield "int8", "torch._int_mm", partial(torch._int_mm, (a * 30).char(), (b * 30).char())
    if "fbgemm" in torch.backends.quantized.supported_engines:
        scale, zero = torch.full((b.shape[1],), 0.03).double(), torch.zeros(b.shape[1], dtype=torch.long)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated, and what int8 is made of today
            weight = torch.quantize_per_channel(b.T.contiguous(), scale, zero, 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(weight, None)
        yield "int8", "linear_dynamic", partial(torch.ops.quantized.linear_dynamic, a, packed, True)


def _best_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The rows as a Markdown table; floats have three digits."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def model_parser(description: str) -> argparse.ArgumentParser:
    """A parser of the command line of what measures one model, which is its first argument."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", help="anything that elmokit.load opens")
    parser.add_argument("--precision", default="float32", help="of the products; float32 when not given")
    return parser


def report(
    kind: str, arguments: argparse.Namespace, text: str, result: dict[str, object], *, suffix: str = ""
) -> None:
    """Print a text, and write the figures behind it to results/<kind>-<model>[-<precision>]<suffix>.json."""
    model, precision = arguments.model, arguments.precision
    name = f"{kind}-{Path(model).resolve().name}{'' if precision == 'float32' else f'-{precision}'}{suffix}"
    path = RESULTS / f"{name}.json"
    whole = {"model": model, "precision": precision, **result, "machine": machine()}
    path.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{text}\n\nwritten to {path}")


def percent(share: float) -> float:
    """A share as it is written down."""
    return round(100 * share, 2)
