"""How much the engines differ: float32 from float64, int8 and bfloat16 from float32, and one from another.

    ELMOKIT_DATA=… python benchmarks/engines.py

WikiText-2 sentences through the LSTMs of the bundled English model and of both shapes with random weights.
The reference is `elmokit.model.BiLM` in float64 on the same token vectors. Results go to
`results/engines.md`.
"""

import os
from copy import deepcopy
from itertools import combinations, islice

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

import elmokit
from common import RESULTS, SHAPES, markdown_table, random_model, wikitext_sentences
from elmokit.embed.engine import Batch, InferenceBiLM
from elmokit.formats import ModelBundle
from elmokit.kernels import Precision, supported
from elmokit.kernels.native import engines

SENTENCES = {"en": 20, "small": 8, "original": 2}


def layers_by_engine(bundle: ModelBundle, count: int) -> tuple[Tensor, dict[tuple[Precision, str], Tensor]]:
    """The reference (L + 1, S, 2P) in float64, and what each engine computes in each precision."""
    sentences = list(islice(wikitext_sentences(), count))
    model = bundle.model.eval()
    found = {}
    with torch.inference_mode():
        encode = InferenceBiLM(model, "float32").encode
        inputs = model.config.encoder.inputs(bundle.vocabulary, bundle.lexicon)
        x = encode(*inputs([token for sentence in sentences for token in sentence]))  # (S, P)
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        exact, _ = deepcopy(model).double()(x.double(), lengths)
        for precision in supported():
            for name in ["torch", *(engine.name for engine in engines(precision))]:
                os.environ["ELMOKIT_KERNEL"] = name
                ((found[precision, name], _),) = InferenceBiLM(model, precision)([Batch(x, lengths)])
    return exact, found


def main() -> None:
    """Measure, print, write."""
    exact_rows, between_rows = [], []
    for shape, count in SENTENCES.items():
        bundle = elmokit.load_model("en") if shape == "en" else random_model(SHAPES[shape])
        exact, found = layers_by_engine(bundle, count)
        for (precision, name), layers in found.items():
            cosines = cosine_similarity(layers[1:].double(), exact[1:], dim=-1)  # (L, S)
            largest = (layers - exact).abs().max()
            exact_rows.append(
                [shape, precision, name, f"{largest:.1e}", f"{cosines.mean():.6f}", f"{cosines.min():.6f}"]
            )
        for (one, a), (other, b) in combinations(found.items(), 2):
            if one[0] == other[0] == "int8":
                cosines = cosine_similarity(a[1:], b[1:], dim=-1)
                same = "yes" if torch.equal(a, b) else ""
                mean, least = f"{cosines.mean():.6f}", f"{cosines.min():.6f}"
                between_rows.append([shape, one[1], other[1], same, mean, least])
    page = (
        "# Engines\n\nFrom float64, on the layers of the LSTM:\n\n"
        + markdown_table(
            ["model", "precision", "engine", "largest difference", "mean cosine", "least"], exact_rows
        )
        + "\n\nBetween engines, int8:\n\n"
        + markdown_table(["model", "one", "other", "equal to the bit", "mean cosine", "least"], between_rows)
        + "\n"
    )
    print(page)
    (RESULTS / "engines.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
