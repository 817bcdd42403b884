"""simple_elmo's `ElmoModel`.

    from elmokit.compat.simple_elmo import ElmoModel      # was: from simple_elmo import ElmoModel

A sentence's vectors depend on the sentence alone: there is nothing to warm up, and padding is zero.

Shapes: B sentences, T tokens of the longest, L layers, P projection, V vocabulary.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.base import check_option
from elmokit.compat.padded_bilm import stack_padded
from elmokit.embed import Embedder, Floats
from elmokit.errors import ConfigError, ModelFileError
from elmokit.formats import is_checkpoint, latest_checkpoint, load_model
from elmokit.text import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, lists_of_tokens, refuse_bare_string

Layers = Literal["average", "top", "all"]
Doubles = npt.NDArray[np.float64]


class ElmoModel:
    """Vectors of tokenised sentences, and substitutes for their words. Call `load` first.

    Attributes:
        batch_size: has no effect.
        max_chars: how many characters of a token the model reads, with their boundary marks.
        vector_size: 2P.
        n_layers: L+1.
    """

    batch_size: int | None = None
    max_chars: int | None = None
    vector_size: int | None = None
    n_layers: int | None = None
    _embedder: Embedder | None = None

    def load(
        self, directory: str | Path, max_batch_size: int = 32, limit: int = 100, full: bool = False
    ) -> str:
        """Load a model from a folder, a zip, or anything else that `elmokit.load` takes.

        With `full`, load the TensorFlow checkpoint and its vocabulary, for `get_elmo_substitutes`.
        `max_batch_size` and `limit` have no effect.

        Raises:
            ModelFileError: there is no model or, with `full`, no softmax or vocabulary.
            DataError: with `full`, the vocabulary lacks a special token.
        """
        bundle = load_model(directory, _checkpoint(Path(directory)) if full else None)
        if full and (bundle.softmax is None or bundle.vocabulary is None):
            missing = "softmax" if bundle.softmax is None else "vocabulary (vocab.txt)"
            raise ModelFileError(f"{bundle.source}: has no {missing}, which full=True needs")
        if full and bundle.vocabulary is not None:
            bundle.vocabulary.require_specials()
        self._embedder = Embedder(bundle)
        self.batch_size = max_batch_size
        self.max_chars = bundle.model.config.encoder.max_characters
        self.vector_size, self.n_layers = self._embedder.dim, self._embedder.num_layers
        return "The model is now loaded."

    def get_elmo_vectors(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: Layers = "average",
        session: None = None,
    ) -> Doubles:
        """Return the vectors of tokenised sentences: the "average" of the layers, the "top" one, or "all".

        Returns:
            (B, T, 2P), or (B, L+1, T, 2P) for all layers; zero where there is no token.
        """
        rows, inner = self._chosen(texts, layers, session)
        padded = stack_padded([np.moveaxis(row, -2, 0) for row in rows], inner, np.float64)  # (B, T, …, 2P)
        return np.moveaxis(padded, 1, -2)

    def get_elmo_vector_average(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: Layers = "average",
        session: None = None,
    ) -> Doubles:
        """Return the mean of each sentence's token vectors, scaled to length 1; zero without tokens.

        Returns:
            (B, 2P), or (B, L+1, 2P) for all layers, where a sentence's layers together have length 1.
        """
        rows, inner = self._chosen(texts, layers, session)
        means = np.zeros((len(rows), *inner))
        for mean, row in zip(means, rows, strict=True):
            mean[...] = row.astype(np.float64).sum(axis=-2) / max(1, row.shape[-2])
            mean /= np.linalg.norm(mean) or 1.0
        return means

    def get_elmo_substitutes(
        self, data: Sequence[str], topn: int = 3, nodelimiters: bool = True
    ) -> list[list[dict[str, Any]]]:
        """Return the `topn` words that each direction predicts in place of each space-separated token.

        Returns:
            For each word of each sentence, `word` (`<UNK>` if it is not in the vocabulary), `forward` and
            `backward`. Both hold the `candidates` (rows of the vocabulary), `candidate_words` and `logp`
            (natural logarithms of their probabilities), the most likely first.
        """
        embedder = self._loaded()
        bundle = embedder.bundle
        if bundle.softmax is None or bundle.vocabulary is None:
            raise ConfigError("substitutes need the softmax; load the model with full=True")
        refuse_bare_string(data)
        softmax, vocabulary = bundle.softmax.read(), bundle.vocabulary
        delimiters = (BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN) if nodelimiters else ()
        left_out = [vocabulary.id(token) for token in delimiters]
        if not 1 <= topn <= len(vocabulary) - len(left_out):
            most = len(vocabulary) - len(left_out)
            raise ConfigError(f"topn is {topn}; it takes 1 to {most}, the words of the vocabulary")
        dim, answers = embedder.dim // 2, []
        for sentence in embedder.stream(text.split() for text in data):
            begin, end = torch.from_numpy(sentence.boundaries[-1])  # (2P,) each
            top = torch.cat([begin[None], torch.from_numpy(sentence.layers[-1]), end[None]])  # (T+2, 2P)
            sides = []
            for hidden in (top[:-2, :dim], top[2:, dim:]):  # (T, P) before and after each word
                logs = softmax.log_probabilities(hidden)  # (T, V)
                logs[:, left_out] = -torch.inf
                sides.append(_candidates(vocabulary.tokens, *logs.topk(topn, dim=1)))
            words = [vocabulary.tokens[vocabulary.id(token)] for token in sentence.tokens]
            answers.append(
                [
                    {"word": word, "forward": before, "backward": after}
                    for word, before, after in zip(words, *sides, strict=True)
                ]
            )
        return answers

    def _chosen(
        self, texts: Sequence[Sequence[str]], layers: Layers, session: object
    ) -> tuple[list[Floats], tuple[int, ...]]:
        """Return the chosen layers (…, T, 2P) of each sentence, and their shape (…, 2P) without tokens."""
        check_option("layers", layers, ("average", "top", "all"))
        if session is not None:
            raise ConfigError("there are no TensorFlow sessions here; leave out session")
        embedder = self._loaded()
        rows = [sentence.select(layers) for sentence in embedder.embed(lists_of_tokens(texts))]
        return rows, (embedder.num_layers, embedder.dim) if layers == "all" else (embedder.dim,)

    def _loaded(self) -> Embedder:
        if self._embedder is None:
            raise ConfigError("no model is loaded; call load(path) first")
        return self._embedder


def _checkpoint(folder: Path) -> Path | None:
    """Find the folder's latest checkpoint, even beside HDF5 weights, which have no softmax."""
    found = [path for path in sorted(folder.glob("*.index")) if is_checkpoint(path)]
    chosen = latest_checkpoint(folder, found)
    if len(chosen) > 1:
        names = ", ".join(path.stem for path in chosen)
        raise ModelFileError(
            f"{folder}: holds the checkpoints {names}, and no file `checkpoint` to name one; leave one there"
        )
    return chosen[0] if chosen else None


def _candidates(tokens: Sequence[str], logs: Tensor, rows: Tensor) -> list[dict[str, Any]]:
    """Describe the words at `rows` (T, topn) of the vocabulary."""
    return [
        {"candidates": row, "candidate_words": [tokens[number] for number in row], "logp": log}
        for row, log in zip(rows.tolist(), logs.tolist(), strict=True)
    ]
