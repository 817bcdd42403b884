"""How near another precision comes to float32: the cosines of each layer's vectors, on WikiText-2.

    ELMOKIT_DATA=… python benchmarks/nearness.py MODEL --precision int8 [--sentences 1000]

What it does to the tasks tell `senses.py`, `layers.py` and `grammar.py`, which have `--precision`, too.
"""

from itertools import islice

import numpy as np

import elmokit
from common import markdown_table, model_parser, report, wikitext_sentences

AIM = 0.995  # mean cosine of every layer


def main() -> None:
    """Measure, print, write."""
    parser = model_parser(__doc__)
    parser.add_argument("--sentences", type=int, default=1000)
    arguments = parser.parse_args()
    sentences = list(islice(wikitext_sentences(), arguments.sentences))
    exact, other = (
        np.concatenate(
            [s.layers for s in elmokit.load(arguments.model, precision=p).stream(sentences)], axis=1
        )
        for p in ("float32", arguments.precision)
    )  # (L+1, tokens, 2P) each
    lengths = np.linalg.norm(exact, axis=2) * np.linalg.norm(other, axis=2)
    cosines = (exact * other).sum(axis=2) / np.maximum(lengths, 1e-12)  # (L+1, tokens)
    header = ["layer", "mean cosine", "of the worst 1 %", "smallest", f"mean ≥ {AIM}"]
    rows = [
        [
            number,
            *(f"{value:.5f}" for value in (layer.mean(), np.quantile(layer, 0.01), layer.min())),
            "yes" if layer.mean() >= AIM else "**no**",
        ]
        for number, layer in enumerate(cosines)
    ]
    result = {
        "tokens": exact.shape[1],
        "mean cosine": [round(float(layer.mean()), 5) for layer in cosines],
        "smallest": [round(float(layer.min()), 5) for layer in cosines],
    }
    report("nearness", arguments, f"{markdown_table(header, rows)}\n\n{exact.shape[1]:,} tokens", result)


if __name__ == "__main__":
    main()
