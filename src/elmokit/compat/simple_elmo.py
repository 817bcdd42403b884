"""simple_elmo's `ElmoModel`.

    from elmokit.compat.simple_elmo import ElmoModel      # was: from simple_elmo import ElmoModel

A sentence's vectors depend on the sentence alone: there is nothing to warm up, and padding is zero.

Shapes: S sentences, T tokens of the longest, L layers, P projection, V vocabulary.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.embed import Embedder, Floats, Sentence
from elmokit.errors import ConfigError, ModelFileError
from elmokit.formats import ModelBundle, is_checkpoint, latest, load_model
from elmokit.model import CharCNNConfig
from elmokit.text import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, lists_of_tokens, refuse_bare_string

Layers = Literal["average", "top", "all"]
Doubles = npt.NDArray[np.float64]


class ElmoModel:
    """Vectors of tokenised sentences, and words that could stand in their place; `load` comes first.

    Attributes:
        batch_size: sentences that the original embeds at once; here batches are made by length.
        max_chars: characters of a token that the model reads, with their marks.
        vector_size: 2P.
        n_layers: L+1.
    """

    def __init__(self) -> None:
        self.batch_size: int | None = None
        self.max_chars: int | None = None
        self.vector_size: int | None = None
        self.n_layers: int | None = None
        self._embedder: Embedder | None = None

    def load(
        self, directory: str | Path, max_batch_size: int = 32, limit: int = 100, full: bool = False
    ) -> str:
        """Read a model.

        Args:
            directory: a folder, a zip, or whatever else `elmokit.load` takes.
            max_batch_size: kept for old programs; it changes nothing.
            limit: likewise.
            full: read the TensorFlow checkpoint and its vocabulary, for `get_elmo_substitutes`.

        Raises:
            ModelFileError: there is no model, or with `full` no softmax or vocabulary.
            DataError: with `full`, a special token is missing in the vocabulary.
        """
        bundle = load_model(directory, _checkpoint(Path(directory)) if full else None)
        if full and (bundle.softmax is None or bundle.vocabulary is None):
            missing = "softmax" if bundle.softmax is None else "vocabulary (vocab.txt)"
            raise ModelFileError(f"{bundle.source}: has no {missing}, which full=True needs")
        if full and bundle.vocabulary is not None:
            bundle.vocabulary.require_specials()
        encoder = bundle.model.config.encoder
        self._embedder = Embedder(bundle)
        self.batch_size = max_batch_size
        self.max_chars = encoder.max_characters if isinstance(encoder, CharCNNConfig) else None
        self.vector_size, self.n_layers = self._embedder.dim, self._embedder.num_layers
        return "The model is now loaded."

    def get_elmo_vectors(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: Layers = "average",
        session: None = None,
    ) -> Doubles:
        """The vectors of each token.

        Args:
            texts: tokens of each sentence.
            warmup: kept for old programs; it changes nothing.
            layers: the "average" of the layers, the "top" one, or "all".
            session: kept for old programs; there are none.

        Returns:
            (S, T, 2P), or (S, L+1, T, 2P) for all; zero where there is no token.
        """
        chosen = [_choose(sentence, layers) for sentence in self._embed(texts, session)]
        longest = max((vectors.shape[-2] for vectors in chosen), default=0)
        inner = (self.n_layers, longest) if layers == "all" else (longest,)
        padded = np.zeros((len(chosen), *inner, self.vector_size or 0))
        for row, vectors in zip(padded, chosen, strict=True):
            row[..., : vectors.shape[-2], :] = vectors
        return padded

    def get_elmo_vector_average(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: Layers = "average",
        session: None = None,
    ) -> Doubles:
        """The mean of each sentence's token vectors, scaled to length 1; the arguments are the same.

        Returns:
            (S, 2P), or (S, L+1, 2P) for all, of which a sentence's numbers together have length 1. Zero for a
            sentence without tokens.
        """
        means = []
        for sentence in self._embed(texts, session):
            vectors = _choose(sentence, layers).astype(np.float64)
            mean = vectors.sum(axis=-2) / max(1, len(sentence))
            means.append(mean / (np.linalg.norm(mean) or 1.0))
        inner = (self.n_layers, self.vector_size) if layers == "all" else (self.vector_size,)
        return np.stack(means) if means else np.zeros((0, *(size or 0 for size in inner)))

    def get_elmo_substitutes(
        self, data: Sequence[str], topn: int = 3, nodelimiters: bool = True
    ) -> list[list[dict[str, Any]]]:
        """The words that each direction expects in the place of each word, from all that it has read.

        Args:
            data: sentences, their tokens parted by white space.
            topn: how many words.
            nodelimiters: leave `<S>` and `</S>` out.

        Returns:
            For each word of each sentence `word` (`<UNK>` if it is not in the vocabulary), `forward` and
            `backward`; of these the `candidates` (rows of the vocabulary), `candidate_words` and `logp`
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
            for hidden in (top[:-2, :dim], top[2:, dim:]):  # (T, P) what stands before, and after
                logs = softmax.log_probabilities(hidden)  # (T, V)
                logs[:, left_out] = -torch.inf
                sides.append(_candidates(bundle, *logs.topk(topn, dim=1)))
            words = [vocabulary.tokens[vocabulary.id(token)] for token in sentence.tokens]
            answers.append(
                [
                    {"word": word, "forward": before, "backward": after}
                    for word, before, after in zip(words, *sides, strict=True)
                ]
            )
        return answers

    def _embed(self, texts: Sequence[Sequence[str]], session: object) -> list[Sentence]:
        if session is not None:
            raise ConfigError("there are no TensorFlow sessions here; leave session out")
        return self._loaded().embed(lists_of_tokens(texts))

    def _loaded(self) -> Embedder:
        if self._embedder is None:
            raise ConfigError("no model is loaded; call load(path) first")
        return self._embedder


def _checkpoint(folder: Path) -> Path | None:
    """The folder's latest checkpoint, even beside HDF5 weights, which have no softmax."""
    found = [path for path in sorted(folder.glob("*.index")) if is_checkpoint(path)]
    chosen = latest(folder, found)
    if len(chosen) > 1:
        names = ", ".join(path.stem for path in chosen)
        raise ModelFileError(
            f"{folder}: holds the checkpoints {names}, and no file `checkpoint` to name one; leave one there"
        )
    return chosen[0] if chosen else None


def _choose(sentence: Sentence, layers: Layers) -> Floats:
    if layers not in get_args(Layers):
        raise ConfigError(f"layers must be average, top or all, found {layers!r}")
    if layers == "all":
        return sentence.layers
    chosen: Floats = sentence.layers[-1] if layers == "top" else sentence.layers.mean(axis=0)
    return chosen


def _candidates(bundle: ModelBundle, logs: Tensor, rows: Tensor) -> list[dict[str, Any]]:
    """(T, topn) each."""
    assert bundle.vocabulary is not None
    tokens = bundle.vocabulary.tokens
    return [
        {"candidates": row, "candidate_words": [tokens[number] for number in row], "logp": log}
        for row, log in zip(rows.tolist(), logs.tolist(), strict=True)
    ]
