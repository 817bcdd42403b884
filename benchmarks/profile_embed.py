"""Where the time of embedding goes: products, σ, other passes over memory, everything else (mostly Python).

    python benchmarks/profile_embed.py

One thread, the network alone (type vectors are cached). Operations are told apart by torch's own profiler, in
a run of its own, because it slows Python; the rest is what a run without it takes beyond the operations.
"""

import time
from itertools import islice

import torch
from torch.profiler import ProfilerActivity, profile

from common import SHAPES, markdown_table, random_model, wikitext_sentences
from elmokit.embed.engine import Batch, InferenceBiLM
from elmokit.kernels.precision import supported
from elmokit.kernels.threads import whole_pieces

KINDS = {
    "products": ("mm", "addmm", "addmm_", "linear_dynamic"),
    "σ": ("sigmoid", "sigmoid_"),
}


def measure(engine: InferenceBiLM, batch: Batch) -> dict[str, float]:
    """Seconds of one run by kind of operation."""

    def run() -> None:
        with torch.inference_mode(), whole_pieces():
            engine([batch])

    run()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run()
    found = dict.fromkeys((*KINDS, "other operations"), 0.0)
    for event in profiler.key_averages():
        name = event.key.split("::")[-1]
        kind = next((kind for kind, names in KINDS.items() if name in names), "other operations")
        if event.key.startswith(("aten::", "quantized::")):
            found[kind] += event.self_cpu_time_total / 1e6
    return {"seconds": min(seconds), **found}


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    sentences = sorted(islice(wikitext_sentences(), 256), key=len)
    rows = []
    for shape, config in SHAPES.items():
        model = random_model(config).model
        for precision in supported():
            engine = InferenceBiLM(model, precision)
            for title, texts in (("256 sentences", sentences), ("one sentence", sentences[128:129])):
                lengths = torch.tensor([len(text) + 2 for text in texts])
                x = torch.randn(int(lengths.sum()), config.projection_dim)
                found = measure(engine, Batch(x, lengths))
                total = found.pop("seconds")
                found["rest"] = max(0.0, total - sum(found.values()))
                shares = [f"{seconds / sum(found.values()):.0%}" for seconds in found.values()]
                rows.append(
                    [
                        shape,
                        precision,
                        title,
                        f"{1e3 * total:.1f} ms",
                        f"{len(x) / total:,.0f}",
                        *shares,
                    ]
                )
    header = [
        "shape",
        "precision",
        "text",
        "time",
        "tokens/s, one thread",
        *KINDS,
        "other operations",
        "rest",
    ]
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
