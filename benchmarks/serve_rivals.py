"""The application of `elmokit serve` with another model inside, for `serve.py`.

    python benchmarks/serve_rivals.py nothing --port 8001
    python benchmarks/serve_rivals.py FOLDER --port 8001     # of all-MiniLM-L6-v2

"nothing" computes nothing: what is left is the cost of HTTP, JSON, tokens and batches. MiniLM gets the texts
of a batch sorted by length and at most 64 at a time, which is how it is fastest on a CPU.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from elmokit.embed import Embedder, Floats, Pooler, PreparedText
from elmokit.serving import serve

AT_ONCE = 64


@dataclass
class Pooled:
    """Stands for a sentence whose vector is known."""

    vector: Floats


def nothing(self: Embedder, window: list[PreparedText], *, copy: bool = True) -> list[Pooled]:
    """Return zeros."""
    return [Pooled(_ZEROS)] * len(window)


_ZEROS: Floats = np.zeros(576, np.float32)


class MiniLM:
    """Embeds texts with all-MiniLM-L6-v2: the mean of the last layer's vectors."""

    def __init__(self, folder: str) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModel.from_pretrained(folder).eval()

    @torch.inference_mode()
    def __call__(self, window: list[PreparedText], *, copy: bool = True) -> list[Pooled]:
        """Return the vectors of the texts."""
        order = sorted(range(len(window)), key=lambda row: len(window[row]))
        found: dict[int, Pooled] = {}
        for start in range(0, len(order), AT_ONCE):
            rows = order[start : start + AT_ONCE]
            texts = [window[row].text for row in rows]
            inputs: Any = self._tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
            mask = inputs["attention_mask"][:, :, None]  # (B, T, 1)
            hidden = self._model(**inputs).last_hidden_state  # (B, T, D)
            means = ((hidden * mask).sum(dim=1) / mask.sum(dim=1)).numpy()  # (B, D)
            found |= {row: Pooled(vector) for row, vector in zip(rows, means, strict=True)}
        return [found[row] for row in range(len(window))]


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help='"nothing", or the folder of MiniLM')
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    Pooler.__call__ = lambda self, sentence: sentence.vector  # type: ignore
    if arguments.model == "nothing":
        Embedder.embed_prepared = nothing  # type: ignore[assignment,method-assign]
    else:
        minilm = MiniLM(arguments.model)
        Embedder.embed_prepared = lambda self, window, *, copy=True: minilm(window)  # type: ignore
    serve(models=("en",), port=arguments.port)


if __name__ == "__main__":
    main()
