"""The main job: text in, the vectors of its tokens out.

    text → tokens → distinct tokens → token vectors (each computed once) → length-sorted batches → all layers

A sentence's vectors depend on the sentence alone, unless the embedder was made `stateful`.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

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
        path: a folder, an options file, a zip, or the name of a bundled model.
        weights: the weights, where they do not lie beside the options.
        precision: "float32", "int8", "bfloat16" or "auto" for the fastest that this machine does natively.
        device: "cpu", "cuda", … or "auto" for the fastest there is.
        stateful: carry the LSTM's state over calls as the old systems do; see `Embedder`.
        tokenizer: instead of the model's own: a spec, or "name" or "name:language".
        batch_tokens: about how many tokens go through the network at once.
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

    With `stateful=True` row k of each `embed` call goes on from where row k of the call before it stopped, as
    AllenNLP and bilm-tf do with the rows of a batch; `stream` is then a call for each sentence, and `reset`
    clears. Without it every sentence starts from zero. One embedder serves one thread at a time.

    Args:
        bundle: the model, from `elmokit.formats.load_model`. Its weights are laid out for fast products at
            the first call; later changes of them are not seen.
        precision, device, stateful, tokenizer, batch_tokens: see `load`.
        mix: how `vectors` come from `layers`; the average when not given. A layer norm takes its statistics
            from the sentence alone.
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
        if batch_tokens < 1:
            raise ConfigError(f"batch_tokens must be at least 1, found {batch_tokens}")
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
        if len(self.mix.coefficients()) != self.model.num_outputs:
            layers = len(self.mix.coefficients())
            raise ConfigError(
                f"the mix has {layers} layers, the model {self.model.num_outputs}; make them equal"
            )
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
        """L + 1, the layers of each token, the token layer among them."""
        return self.model.num_outputs

    @property
    def dim(self) -> int:
        """2P, the numbers of each vector."""
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
            texts: a string is one sentence; of a list (or any iterable) each item is one: a string that will
                be tokenised, or a list of tokens that will be taken as they are.

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
        """Embed any number of texts in order, holding only a few batches at a time."""
        refuse_one_string(texts)
        if self.stateful:
            for text in texts:
                yield from self._embed_call([self._prepare(text)])
            return
        prepared = map(self._prepare, texts)
        for window in windows(prepared, lambda one: one.length, self.batch_tokens):
            yield from self._embed_call(window)

    def encode(self, texts: Iterable[Text], *, pooling: Pooling = "mean") -> Floats:
        """One vector per text, (n, 2P); see `Sentence.pool`."""
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
        """Embed sentences by batches of like length and give them back in order."""
        rows_of = list(batches_by_length([prepared.length for prepared in window], self.batch_tokens))
        groups = [[window[row] for row in rows] for rows in rows_of]
        results: dict[int, Sentence] = {}
        done = self._engine(list(self._batches(groups, rows_of)))
        for rows, group, (layers, end) in zip(rows_of, groups, done, strict=True):
            if self.stateful:
                self._carried.put(torch.tensor(rows), end)
            vectors = self._mix(layers, [prepared.length for prepared in group])  # (S, 2P)
            sentences = self._split(group, layers.cpu().numpy(), vectors.cpu().numpy())
            results.update(zip(rows, sentences, strict=True))
        return [results[row] for row in range(len(window))]

    def _batches(self, groups: list[list["_Prepared"]], rows_of: list[list[int]]) -> Iterator[Batch]:
        tokens = [list(chain.from_iterable(map(self._with_boundaries, group))) for group in groups]
        vectors = self._type_vectors(list(chain.from_iterable(tokens)))  # (all tokens, P)
        parts = torch.split(vectors, list(map(len, tokens)))  # (S, P) each
        for group, rows, x in zip(groups, rows_of, parts, strict=True):
            lengths = torch.tensor([prepared.length for prepared in group])
            state = self._carried.rows(self.model, torch.tensor(rows)) if self.stateful else None
            yield Batch(x, lengths, state)

    def _with_boundaries(self, prepared: "_Prepared") -> Iterator[str]:
        begin, end = self.bundle.boundaries
        yield begin
        for token in prepared.tokens:
            yield token.text
        yield end

    def _split(self, batch: list["_Prepared"], layers: Floats, vectors: Floats) -> Iterator[Sentence]:
        start = 0
        for prepared in batch:
            end = start + prepared.length - 1
            tokens = [token.text for token in prepared.tokens]
            yield Sentence(
                text=prepared.text,
                tokens=tokens,
                offsets=[(token.start, token.end) for token in prepared.tokens],
                # Copies: a view of one sentence would keep its whole batch in memory.
                layers=np.ascontiguousarray(layers[:, start + 1 : end]),
                vectors=np.ascontiguousarray(vectors[start + 1 : end]),
                boundaries=np.ascontiguousarray(layers[:, [start, end]]),
                truncated=self._reader.truncated(tokens),
                unknown=self._reader.unknown(tokens),
            )
            start = end + 1

    def _mix(self, layers: Tensor, lengths: list[int]) -> Tensor:
        if self.mix.layer_norm is None:
            mixed: Tensor = self.mix(layers)
            return mixed
        parts = []
        for sentence in torch.split(layers, lengths, dim=1):  # (L+1, T+2, 2P)
            counted = torch.ones(sentence.shape[1], dtype=torch.bool, device=layers.device)
            counted[[0, -1]] = self.mix.counts_boundaries or sentence.shape[1] == 2
            parts.append(self.mix(sentence, counted))
        return torch.cat(parts)


@dataclass(frozen=True)
class _Prepared:
    """A sentence on its way: its text and tokens."""

    text: str
    tokens: list[Token]

    @property
    def length(self) -> int:
        """Tokens, `<S>` and `</S>`."""
        return len(self.tokens) + 2


def _warn_of_one_sentence(texts: Sequence[Any], reader: TextReader) -> None:
    """A list of words is most likely one sentence that should have been wrapped in another list.

    Text without blanks may be a sentence too, in Chinese for one: then the tokenizer cuts most of them.
    """
    words = (isinstance(text, str) and text and not any(map(str.isspace, text)) for text in texts)
    if len(texts) > 2 and all(words) and sum(len(reader(text)) == 1 for text in texts) > len(texts) / 2:
        warnings.warn(
            f"each of these {len(texts)} words is taken as a sentence of its own ({texts[0]!r}, …); "
            "for one sentence given by its tokens pass [tokens]",
            stacklevel=3,
        )
