"""elmokit, asked in the same way as its peers."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from worker import peak_megabytes, serve, timed

import elmokit

Sentences = list[list[str]]
loaded: dict[str, Any] = {}


def load(options: str, weights: str | None = None, engine: str = "", **settings: str) -> None:
    """Read a model for one engine; the settings are those of `elmokit.load`."""
    os.environ["ELMOKIT_KERNEL"] = engine
    loaded["arguments"] = options, weights, settings
    _fresh_embedder()


def embed(sentences: Sentences, batch: int, known: bool = False) -> dict[str, Any]:
    """Embed all sentences by an embedder that knows all words, or none of them; `batch` tokens at a time."""
    embedder = _fresh_embedder(batch_tokens=batch)
    if known:
        embedder.embed([[token] for token in {token for sentence in sentences for token in sentence}])
    return timed(embedder.embed, [sentences])


def single(sentences: Sentences) -> dict[str, Any]:
    """Embed the sentences one by one, as a service does, which goes on knowing the words it has seen."""
    return timed(loaded["embedder"].embed, [[sentence] for sentence in sentences])


def stream(path: str, num_tokens: int, batch: int) -> dict[str, Any]:
    """Embed the first `num_tokens` tokens of a file with a sentence a line, keeping nothing."""
    embedder = _fresh_embedder(batch_tokens=batch)

    def run(sentences: Iterator[list[str]]) -> None:
        for _ in embedder.stream(sentences):
            pass

    return {**timed(run, [_first_tokens(path, num_tokens)]), **peak_megabytes()}


def _first_tokens(path: str, num_tokens: int) -> Iterator[list[str]]:
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            tokens = line.split()[:num_tokens]
            if not tokens:
                return
            yield tokens
            num_tokens -= len(tokens)


def _fresh_embedder(**settings: int) -> elmokit.Embedder:
    loaded.pop("embedder", None)  # so that two models are never in memory
    options, weights, given = loaded["arguments"]
    loaded["embedder"] = elmokit.load(options, weights, **given, **settings)
    loaded["embedder"].embed([["warm", "up"]])
    embedder: elmokit.Embedder = loaded["embedder"]
    return embedder


serve(load, embed, single, stream, peak_megabytes)
