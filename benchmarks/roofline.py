"""How near the native kernel comes to what the CPU can do: share of the instruction peak and of bandwidth.

    python benchmarks/roofline.py

One thread, measured by its own processor time. The instruction peak is that of the kernel's inner loop on
data in the first cache. An LSTM step of b sentences reads every weight of W_h and W_p once and does 2b
operations with it, so its intensity is 2b / (bytes of a weight) operations a byte (W_x is read less often).
Few sentences are limited by the bandwidth of the cache that holds the weights, many by the instructions.
Results go to `results/roofline.md`, `.json` and `.png`.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import torch

from common import RESULTS, SHAPES, machine, markdown_table
from elmokit.kernels import LayerWeights, Packing, Precision, engine_name, supported
from elmokit.kernels.native import NativeEngine, NativeLSTM, engines
from elmokit.kernels.native.library import native_library

BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}
BATCHES = (1, 4, 16, 64, 128)
STEPS = 24
DIMS = {name: (shape.cell_dim, shape.projection_dim) for name, shape in SHAPES.items()} | {"en": (768, 192)}


@dataclass
class Point:
    """One measurement, in 10⁹ operations a second."""

    shape: str
    precision: Precision
    batch: int
    rate: float
    peak: float

    @property
    def intensity(self) -> float:
        """Operations for each byte of weights."""
        return 2 * self.batch / BYTES[self.precision]


def best_seconds(call: Callable[[], object], repeats: int) -> float:
    """The least processor time of this thread."""
    found = []
    for _ in range(repeats):
        start = time.thread_time()
        call()
        found.append(time.thread_time() - start)
    return min(found)


def peak(engine: NativeEngine) -> float:
    """Of the instructions, 10⁹ operations a second."""
    library = native_library()
    assert library is not None
    work = []
    seconds = best_seconds(lambda: work.append(library.elmokit_peak(*engine.codes, 50_000)), 3)
    return 2e-9 * work[0] / seconds


def bandwidth(megabytes: float) -> float:
    """GB a second that one thread reads of so many MB again and again."""
    block = torch.ones(int(megabytes * 2**18))
    repeats = max(1, int(64 / megabytes))
    return 1e-9 * block.nbytes * repeats / best_seconds(lambda: [block.sum() for _ in range(repeats)], 8)


def lstm_rate(engine: NativeEngine, shape: str, batch: int) -> float:
    """Of a two-layer LSTM in both directions, 10⁹ operations a second."""
    cell, dim = DIMS[shape]
    random = torch.Generator().manual_seed(0)

    def draw(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=random) * size[-1] ** -0.5

    layers = [
        [LayerWeights(draw(4 * cell, dim), draw(4 * cell, dim), draw(4 * cell), draw(dim, cell))] * 2
    ] * 2
    settings = SimpleNamespace(
        cell_dim=cell, forget_bias=1.0, cell_clip=3.0, projection_clip=3.0, skip_connections=True
    )
    lstm = NativeLSTM(layers, settings, engine)
    steps = STEPS if shape != "original" else 4
    packing, x = Packing.of(torch.full((batch,), steps)), draw(batch * steps, dim)
    out = torch.empty(2, batch * steps, 2, dim)
    # With a state at the start, or the first step would have less to do than is counted.
    start = torch.zeros(2, 2, batch, dim), torch.zeros(2, 2, batch, cell)
    operations = 2 * 4 * 9 * cell * dim * batch * steps
    repeats = max(2, min(50, int(1e10 / operations)))
    return 1e-9 * operations / best_seconds(lambda: lstm(x, slice(0, 2), packing, start, out), repeats)


def draw_picture(points: list[Point], reads: dict[str, float]) -> None:
    """Rates against intensity, under the roof."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    precisions = list(dict.fromkeys(point.precision for point in points))
    for axes, precision in zip(figure.subplots(1, len(precisions)), precisions, strict=True):
        own = [point for point in points if point.precision == precision]
        for shape in DIMS:
            line = [point for point in own if point.shape == shape]
            axes.loglog(
                [point.intensity for point in line], [point.rate for point in line], "o-", label=shape
            )
        x = sorted({point.intensity for point in own})
        for name, read in reads.items():
            axes.loglog(
                x, [min(own[0].peak, read * each) for each in x], ":", label=f"{name} {read:.0f} GB/s"
            )
        axes.axhline(own[0].peak, color="k", linewidth=0.8)
        axes.set(title=precision, xlabel="operations a byte of weights")
        axes.legend(fontsize=6)
    figure.supylabel("10⁹ operations a second, one thread")
    figure.savefig(RESULTS / "roofline.png", dpi=150)


def main() -> None:
    """Measure, print, write."""
    torch.set_num_threads(1)
    points, reads = [], {"L2": bandwidth(0.5), "L3": bandwidth(8), "memory": bandwidth(128)}
    for precision in supported():
        engine = next(one for one in engines(precision) if one.name == engine_name(precision))
        for shape in DIMS:
            for batch in BATCHES:
                rate = lstm_rate(engine, shape, batch)
                points.append(Point(shape, precision, batch, rate, peak(engine)))
    best = {one.precision: max(p.peak for p in points if p.precision == one.precision) for one in points}
    for point in points:
        point.peak = best[point.precision]
    rows = [
        [shape, precision, f"{best[precision]:.0f}"]
        + [
            f"{p.rate:.0f} ({p.rate / p.peak:.0%})"
            for p in points
            if (p.shape, p.precision) == (shape, precision)
        ]
        for precision in best
        for shape in DIMS
    ]
    page = (
        "# Roofline\n\nOne thread, 10⁹ operations a second of the LSTM alone (share of the peak), by "
        "sentences in a batch. Bandwidth of one thread: "
        + ", ".join(f"{name} {read:.0f} GB/s" for name, read in reads.items())
        + ".\n\n"
        + markdown_table(["shape", "precision", "peak", *map(str, BATCHES)], rows)
        + "\n\n![operations a second against operations a byte](roofline.png)\n"
    )
    print(page)
    draw_picture(points, reads)
    (RESULTS / "roofline.md").write_text(page, encoding="utf-8")
    whole = {"machine": machine(), "GB/s": reads, "points": [vars(point) for point in points]}
    (RESULTS / "roofline.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
