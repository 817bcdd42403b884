"""The main job: text in, the vectors of its tokens out.

    text → tokens → distinct tokens → token vectors (each computed once) → length-sorted batches → all layers

A sentence's vectors depend on the sentence alone, unless the embedder was made `stateful`.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from elmokit.base import check_whole_number
from elmokit.embed.engine import Batch, InferenceBiLM
from elmokit.embed.reader import (
    Text,
    TextReader,
    batches_by_length,
    refuse_one_string,
    refuse_unless,
    windows,
)
from elmokit.embed.sentence import Floats, Pooling, Sentence
from elmokit.embed.type_vectors import TypeVectors
from elmokit.errors import ConfigError
from elmokit.formats import UNRECORDED, ModelBundle, load_model, save_model
from elmokit.kernels import find_device, resolve, whole_pieces
from elmokit.model import BiLM, CarriedState, ScalarMix
from elmokit.text import Token, TokenizerSpec, make_tokenizer


def load(
    path: str | Path,
    weights: str | Path | None = None,
    *,
    precision: str = "float32",
    device: str = "cpu",
    stateful: bool = False,
    tokenizer: TokenizerSpec | str | None = None,
    batch_tokens: int = 8192,
) -> "Embedder":
    """Open a model, whatever its format.

    Args:
        path: A folder, an options file, a zip, or the name of a bundled model.
        weights: The weights, if they do not lie beside the options.
        precision: "float32", "int8", "bfloat16", or "auto" for the fastest that this machine does natively.
        device: "cpu", "cuda", … or "auto" for the fastest there is.
        stateful: Carry the LSTM's state from call to call, as the old systems do; see `Embedder`.
        tokenizer: Replaces the model's own: a spec, or "name" or "name:language".
        batch_tokens: About how many tokens go through the network at once.
    """
    return Embedder(
        load_model(path, weights),
        precision=precision,
        device=device,
        stateful=stateful,
        tokenizer=tokenizer,
        batch_tokens=batch_tokens,
    )


class Embedder:
    """A model ready to embed.

    With `stateful=True`, row k of each `embed` call continues where row k of the previous call stopped, as
    AllenNLP and bilm-tf do with the rows of a batch; `stream` then makes a call for each sentence, and
    `reset` clears the state. Otherwise every sentence starts from zero. One embedder serves one thread.

    Args:
        bundle: The model, from `elmokit.formats.load_model`. Its weights are laid out for fast products at
            the first call; later changes of them are not seen.
        precision, device, stateful, tokenizer, batch_tokens: See `load`.
        mix: How `vectors` are made from `layers`; their average if not given. A layer norm takes its
            statistics from the sentence alone.
    """

    def __init__(
        self,
        bundle: ModelBundle,
        *,
        precision: str = "float32",
        device: str = "cpu",
        stateful: bool = False,
        tokenizer: TokenizerSpec | str | None = None,
        mix: ScalarMix | None = None,
        batch_tokens: int = 8192,
    ) -> None:
        check_whole_number("batch_tokens", batch_tokens, least=1)
        self.bundle = bundle
        self.device = find_device(device)
        self.precision = resolve(precision, self.device.type)
        model = bundle.model
        if next(model.parameters()).device.type != self.device.type:  # another may still use it where it is
            model = deepcopy(model)
        self.model: BiLM = model.to(self.device).eval()
        if isinstance(tokenizer, str):
            tokenizer = TokenizerSpec.parse(tokenizer)
        self.tokenizer_spec = tokenizer or bundle.tokenizer
        self.mix = (mix or ScalarMix.average(self.model.num_outputs)).to(self.device).eval()
        mixed, layers = len(self.mix.coefficients()), self.model.num_outputs
        if mixed != layers:
            raise ConfigError(f"the mix has {mixed} layers, the model {layers}; make them equal")
        if stateful and self.model.config.joined_directions:
            raise ConfigError("this model starts every sentence from zero; leave out stateful=True")
        self.stateful = stateful
        self.batch_tokens = batch_tokens
        self._reader = TextReader(
            make_tokenizer(self.tokenizer_spec),
            self.model.config,
            recorded=tokenizer is not None or bundle.tokenizer != UNRECORDED,
            vocabulary=bundle.vocabulary,
        )
        self._carried = CarriedState()

    @cached_property
    def _engine(self) -> InferenceBiLM:
        return InferenceBiLM(self.model, self.precision)

    @cached_property
    def _type_vectors(self) -> TypeVectors:
        return TypeVectors(self._engine, self.bundle.vocabulary, self.device, self.bundle.lexicon)

    @property
    def num_layers(self) -> int:
        """Return L + 1, the number of layers of each token, the token layer included."""
        return self.model.num_outputs

    @property
    def dim(self) -> int:
        """Return 2P, the size of each vector."""
        return self.model.config.output_dim

    def reset(self) -> None:
        """Forget the carried state: the next call starts from zero."""
        self._carried.reset()

    def save(self, folder: str | Path) -> None:
        """Write the model as an elmokit folder."""
        save_model(self.bundle, folder)

    @overload
    def embed(self, texts: str) -> Sentence: ...  # type: ignore[overload-overlap]  # a str is an Iterable too
    @overload
    def embed(self, texts: Iterable[Text]) -> list[Sentence]: ...
    def embed(self, texts: str | Iterable[Text]) -> Sentence | list[Sentence]:
        """Embed one text, or many.

        Args:
            texts: A string is one sentence. Each item of a list (or of any iterable) is one sentence too: a
                string that will be tokenised, or a list of tokens that will be taken as they are.

        Returns:
            A Sentence for a string, else a list of them in the order given.
        """
        if isinstance(texts, str):
            return self._embed_call([self._prepare(texts)])[0]
        refuse_unless(texts, Iterable, "a text or a list of texts")
        if self.stateful:  # one call is one batch, whose rows carry the state
            return self._embed_call([self._prepare(text) for text in texts])
        if isinstance(texts, list | tuple):
            _warn_of_one_sentence(texts, self._reader)
        return list(self.stream(texts))

    def stream(self, texts: Iterable[Text]) -> Iterator[Sentence]:
        """Embed any number of texts in order, holding only a few batches in memory at a time."""
        refuse_one_string(texts)
        prepared = map(self._prepare, texts)
        one_by_one = ([one] for one in prepared)
        for window in one_by_one if self.stateful else windows(prepared, len, self.batch_tokens):
            yield from self._embed_call(window)

    def encode(self, texts: Iterable[Text], *, pooling: Pooling = "mean") -> Floats:
        """Return one vector per text, (n, 2P); see `Sentence.pool`."""
        rows = [sentence.pool(pooling) for sentence in self.stream(texts)]
        return np.stack(rows) if rows else np.zeros((0, self.dim), np.float32)

    def _prepare(self, text: Text) -> "_Prepared":
        tokens = self._reader(text)
        return _Prepared(text if isinstance(text, str) else " ".join(text), tokens)

    def _embed_call(self, window: list["_Prepared"]) -> list[Sentence]:
        # The precision is the embedder's own, whatever surrounds the call.
        with torch.autocast(self.device.type, enabled=False):
            return self._embed_window(window)

    @torch.inference_mode()
    @whole_pieces()
    def _embed_window(self, window: list["_Prepared"]) -> list[Sentence]:
        """Embed sentences in batches of similar length and return them in order."""
        rows_of = list(batches_by_length([len(one) for one in window], self.batch_tokens))
        groups = [[window[row] for row in rows] for rows in rows_of]
        results: dict[int, Sentence] = {}
        done = self._engine(list(self._batches(groups, rows_of)))
        for rows, group, (layers, end) in zip(rows_of, groups, done, strict=True):
            if self.stateful:
                self._carried.put(torch.tensor(rows), end)
            vectors = self._mix(layers, [len(one) for one in group])  # (S, 2P)
            results.update(zip(rows, self._split(group, layers.cpu().numpy(), vectors), strict=True))
        return [results[row] for row in range(len(window))]

    def _batches(self, groups: list[list["_Prepared"]], rows_of: list[list[int]]) -> Iterator[Batch]:
        begin, end = self.bundle.boundaries
        tokens = [token for group in groups for one in group for token in (begin, *one.words, end)]
        sizes = [sum(map(len, group)) for group in groups]
        parts = torch.split(self._type_vectors(tokens), sizes)  # (S, P) each
        for group, rows, x in zip(groups, rows_of, parts, strict=True):
            state = self._carried.rows(self.model, torch.tensor(rows)) if self.stateful else None
            yield Batch(x, torch.tensor([len(one) for one in group]), state)

    def _split(self, group: list["_Prepared"], layers: Floats, vectors: Floats) -> Iterator[Sentence]:
        """Split a batch, (L+1, S, 2P) and (S, 2P), into its sentences."""
        start = 0
        for one in group:
            end = start + len(one) - 1
            yield Sentence(
                text=one.text,
                tokens=one.words,
                offsets=[(token.start, token.end) for token in one.tokens],
                # Copies: a view of one sentence would keep its whole batch in memory.
                layers=np.ascontiguousarray(layers[:, start + 1 : end]),
                vectors=np.ascontiguousarray(vectors[start + 1 : end]),
                boundaries=np.ascontiguousarray(layers[:, [start, end]]),
                truncated=self._reader.truncated(one.words),
                unknown=self._reader.unknown(one.words),
            )
            start = end + 1

    def _mix(self, layers: Tensor, lengths: list[int]) -> Floats:
        """Mix the layers of a batch, (L+1, S, 2P) → (S, 2P); a layer norm sentence by sentence."""
        if self.mix.layer_norm is None:
            mixed: Floats = self.mix(layers).cpu().numpy()
            return mixed
        parts = []
        for sentence in torch.split(layers, lengths, dim=1):  # (L+1, T+2, 2P)
            counted = torch.ones(sentence.shape[1], dtype=torch.bool, device=layers.device)
            counted[[0, -1]] = self.mix.counts_boundaries or sentence.shape[1] == 2
            parts.append(self.mix(sentence, counted))
        joined: Floats = torch.cat(parts).cpu().numpy()
        return joined


@dataclass(frozen=True)
class _Prepared:
    """A text and its tokens; its length counts the boundary tokens too."""

    text: str
    tokens: list[Token]

    def __len__(self) -> int:
        return len(self.tokens) + 2

    @property
    def words(self) -> list[str]:
        return [token.text for token in self.tokens]


def _warn_of_one_sentence(texts: Sequence[Any], reader: TextReader) -> None:
    """Warn about a list of words, which is most likely one sentence that should be in another list.

    Text without blanks may also be a sentence, for example in Chinese; then most items have several tokens.
    """
    words = (isinstance(text, str) and text and not any(map(str.isspace, text)) for text in texts)
    if len(texts) > 2 and all(words) and sum(len(reader(text)) == 1 for text in texts) > len(texts) / 2:
        warnings.warn(
            f"each of these {len(texts)} words is taken as a sentence of its own ({texts[0]!r}, …); "
            "for one sentence given by its tokens pass [tokens]",
            stacklevel=3,
        )
