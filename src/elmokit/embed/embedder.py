"""The main job: text in, the vectors of its tokens out.

    text → tokens → distinct tokens → token vectors (each computed once) → length-sorted batches → all layers

A sentence's vectors depend on the sentence alone, unless the embedder was made `stateful`.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
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
from elmokit.embed.sentence import Floats, LayerChoice, Sentence
from elmokit.embed.sentence_vectors import Pooler, SentencePooling
from elmokit.embed.type_vectors import TypeVectors
from elmokit.errors import ConfigError
from elmokit.formats import UNRECORDED, ModelBundle, load_model, save_model
from elmokit.kernels import engine_name, find_device, resolve, side_by_side, whole_pieces
from elmokit.model import BiLM, CarriedState, MixChoice, ScalarMix
from elmokit.text import Run, TokenizerSpec, group_tokens, known_scripts, make_tokenizer


def load(
    path: str | Path,
    weights: str | Path | None = None,
    *,
    precision: str = "float32",
    device: str = "cpu",
    stateful: bool = False,
    tokenizer: TokenizerSpec | str | None = None,
    words: TokenizerSpec | str | None = None,
    mix: MixChoice = "average",
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
        words: Another tokenizer, such as "jieba", whose tokens are put together from those of the model: the
            vectors of a word are the means of those of its tokens. For models that read characters; texts
            that are given as lists of tokens stay as they are.
        mix: How `vectors` are made from `layers`: their "average", the "top" one, a list with the weight of
            each layer, or a `ScalarMix`. Its layer norm takes the statistics from the sentence alone.
        batch_tokens: About how many tokens go through the network at once.
    """
    embedder = Embedder(
        load_model(path, weights),
        precision=precision,
        device=device,
        stateful=stateful,
        tokenizer=tokenizer,
        words=words,
        mix=mix,
        batch_tokens=batch_tokens,
    )
    found = Path(path)
    embedder.path = str(found.resolve()) if found.exists() else str(path)
    return embedder


class Embedder:
    """A model ready to embed.

    With `stateful=True`, row k of each `embed` call continues where row k of the previous call stopped, as
    AllenNLP and bilm-tf do with the rows of a batch; `stream` then makes a call for each sentence, and
    `reset` clears the state. Otherwise every sentence starts from zero. One embedder serves one thread.

    Args:
        bundle: The model, from `elmokit.formats.load_model`. Its weights are laid out for fast products at
            the first call; later changes of them are not seen.
        precision, device, stateful, tokenizer, words, mix, batch_tokens: See `load`.

    Attributes:
        path: What `load` opened; None for a model that was made in memory.
    """

    def __init__(
        self,
        bundle: ModelBundle,
        *,
        precision: str = "float32",
        device: str = "cpu",
        stateful: bool = False,
        tokenizer: TokenizerSpec | str | None = None,
        words: TokenizerSpec | str | None = None,
        mix: MixChoice = "average",
        batch_tokens: int = 8192,
    ) -> None:
        check_whole_number("batch_tokens", batch_tokens, least=1)
        self.bundle = bundle
        self.path: str | None = None
        self.device = find_device(device)
        self.precision = resolve(precision, self.device.type)
        model = bundle.model
        if next(model.parameters()).device.type != self.device.type:  # others may use it on its own
            model = deepcopy(model)
        self.model: BiLM = model.to(self.device).eval()
        if isinstance(tokenizer, str):
            tokenizer = TokenizerSpec.parse(tokenizer)
        self.tokenizer_spec = tokenizer or bundle.tokenizer
        self.words_spec = TokenizerSpec.parse(words) if isinstance(words, str) else words
        self._find_words = None if self.words_spec is None else make_tokenizer(self.words_spec)
        self.mix = ScalarMix.of(mix, self.model.num_outputs).to(self.device).eval()
        if stateful and not self.model.config.carries_state:
            raise ConfigError("this model starts every sentence from zero; leave out stateful=True")
        self.stateful = stateful
        self.batch_tokens = batch_tokens
        self._recorded = tokenizer is not None or bundle.tokenizer != UNRECORDED
        self._reader = self._make_reader()
        self._carried = CarriedState()

    def _make_reader(self) -> TextReader:
        vocabulary = self.bundle.vocabulary
        return TextReader(
            make_tokenizer(self.tokenizer_spec),
            self.model.config,
            recorded=self._recorded,
            vocabulary=vocabulary,
            known=known_scripts(vocabulary.tokens) if vocabulary else frozenset(),
        )

    def twin(self) -> "Embedder":
        """Return an embedder for another thread; both share the weights and the table of known words."""
        assert (
            self._type_vectors is not None
        )  # made now, with the engine, or each embedder would make its own
        other = copy(self)
        other._reader, other._carried = self._make_reader(), CarriedState()
        return other

    @cached_property
    def _engine(self) -> InferenceBiLM:
        return InferenceBiLM(self.model, self.precision)

    @cached_property
    def _type_vectors(self) -> TypeVectors:
        return TypeVectors(self._engine, self.bundle.vocabulary, self.device, self.bundle.lexicon)

    @property
    def engine(self) -> str:
        """Return what computes the LSTM: an instruction set of the native kernel, or "torch"."""
        return engine_name(self.precision, self.device.type)

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
        """Write the model as an elmokit folder; it records the tokenizer that is used here."""
        save_model(replace(self.bundle, tokenizer=self.tokenizer_spec), folder)

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
            return self.embed_prepared([self.prepare(texts)])[0]
        refuse_unless(texts, Iterable, "a text or a list of texts")
        if self.stateful:  # one call is one batch, whose rows carry the state
            return self.embed_prepared([self.prepare(text) for text in texts])
        if isinstance(texts, list | tuple):
            _warn_of_one_sentence(texts, self._reader)
        return list(self.stream(texts))

    def stream(
        self, texts: Iterable[Text], *, latency: float | None = None, copy: bool = True
    ) -> Iterator[Sentence]:
        """Embed any number of texts in order, holding only a few batches in memory at a time.

        Args:
            texts: Any iterable of texts; see `embed`.
            latency: How many seconds a text may wait for others to share its batch. With 0, texts share one
                only if they are there already: for texts that arrive one by one, from a pipe or a queue. They
                are then taken by a thread of their own. By default a text waits until a batch is full.
            copy: With False the arrays of a sentence are views of those of its batch. That is faster, but a
                sentence that you keep keeps its whole batch in memory.
        """
        if self.stateful:
            refuse_one_string(texts)
            for text in texts:
                yield from self.embed_prepared([self.prepare(text)], copy=copy)
            return
        for window in windows(texts, self.prepare, len, self.batch_tokens, latency=latency):
            yield from self.embed_prepared(window, copy=copy)

    def encode(
        self,
        texts: str | Iterable[Text],
        *,
        pooling: SentencePooling | None = None,
        layers: LayerChoice | None = None,
        dim: int | None = None,
    ) -> Floats:
        """Return the vector of one text, (D,), or those of many, (n, D); zeros for an empty text.

        Args:
            texts: One text, or many; see `embed`.
            pooling: "mean" or "max" over the tokens, "ends" (see `Sentence.pool`), or one that was fitted:
                "sif", the mean weighted by the rarity of words without the common direction, and "whitened",
                whose numbers are independent of each other, of length 1. By default "whitened" if the model
                has it (the bundled ones do, `fit_pooling` fits it for others), else "mean".
            layers: For "mean", "max" and "ends": which vectors of the tokens, by default the mix; see
                `Sentence.select`. Several layers give a vector each.
            dim: For "whitened": keep only so many of the numbers, the most important ones.
        """
        pool = Pooler.of(self, pooling, layers, dim)
        if isinstance(texts, str):
            return pool(self.embed(texts))
        rows = [pool(sentence) for sentence in self.stream(texts, copy=False)]
        return np.stack(rows) if rows else np.zeros((0, *pool.shape), np.float32)

    def similarity(self, texts: Iterable[Text], others: Iterable[Text]) -> Floats:
        """Return the cosine of each text with each of the others, (n, m), by the vectors of `encode`."""
        refuse_one_string(texts)
        refuse_one_string(others)
        a, b = (_unit(self.encode(one)) for one in (texts, others))
        cosines: Floats = a @ b.T
        return cosines

    def prepare(self, text: Text) -> "PreparedText":
        """Tokenise a text; `embed_prepared` takes the result."""
        tokens = self._reader(text)
        # Python's garbage collector would go through tokens that live as long as their batch again and again.
        words, offsets = [token.text for token in tokens], [(token.start, token.end) for token in tokens]
        return PreparedText(
            text if isinstance(text, str) else " ".join(text),
            words,
            offsets,
            self._reader.truncated(words),
            self._reader.unknown(words),
            self._runs(text, offsets),
        )

    def _runs(self, text: Text, offsets: list[Run]) -> list[Run] | None:
        """Return which tokens make each word, if there is a tokenizer of words; lists of tokens stay."""
        if self._find_words is None or not isinstance(text, str):
            return None
        return group_tokens(offsets, self._find_words(text))

    def embed_prepared(self, window: list["PreparedText"], *, copy: bool = True) -> list[Sentence]:
        """Embed texts that `prepare` returned, all at once; for `copy` see `stream`."""
        # The precision is the embedder's own, whatever surrounds the call.
        with torch.autocast(self.device.type, enabled=False):
            return self._embed_window(window, copy)

    @torch.inference_mode()
    @whole_pieces()
    def _embed_window(self, window: list["PreparedText"], copy: bool) -> list[Sentence]:
        """Embed sentences in batches of similar length and return them in order."""
        rows_of = list(batches_by_length([len(one) for one in window], self.batch_tokens))
        groups = [[window[row] for row in rows] for rows in rows_of]
        done = self._engine(list(self._batches(groups, rows_of)), ends=self.stateful)
        if self.stateful:
            for rows, (_, end) in zip(rows_of, done, strict=True):
                self._carried.put(torch.tensor(rows), end)

        def assemble(batch: tuple[list["PreparedText"], tuple[Tensor, Any]]) -> list[Sentence]:
            group, (layers, _) = batch
            vectors = self._mix(layers, [len(one) for one in group])  # (S, 2P)
            return list(_split(group, layers.cpu().numpy(), vectors, copy=copy))

        parts = side_by_side(assemble, list(zip(groups, done, strict=True)), self.device)
        results = dict(zip(chain.from_iterable(rows_of), chain.from_iterable(parts), strict=True))
        return [results[row] for row in range(len(window))]

    def _batches(self, groups: list[list["PreparedText"]], rows_of: list[list[int]]) -> Iterator[Batch]:
        begin, end = self.bundle.boundaries
        tokens = [token for group in groups for one in group for token in (begin, *one.words, end)]
        sizes = [sum(map(len, group)) for group in groups]
        parts = torch.split(self._type_vectors(tokens), sizes)  # (S, P) each
        for group, rows, x in zip(groups, rows_of, parts, strict=True):
            state = self._carried.rows(self.model, torch.tensor(rows)) if self.stateful else None
            yield Batch(x, torch.tensor([len(one) for one in group]), state)

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
class PreparedText:
    """What is known of a sentence before it is embedded; its length counts the boundary tokens too."""

    text: str
    words: list[str]
    offsets: list[tuple[int, int]]
    truncated: list[int]
    unknown: list[int]
    runs: list[Run] | None

    def __len__(self) -> int:
        return len(self.words) + 2


def _split(group: list[PreparedText], layers: Floats, vectors: Floats, *, copy: bool) -> Iterator[Sentence]:
    """Split a batch, (L+1, S, 2P) and (S, 2P), into its sentences, as copies or as views."""
    start = 0
    for one in group:
        end = start + len(one) - 1
        own_layers, own_vectors = layers[:, start + 1 : end], vectors[start + 1 : end]
        sentence = Sentence(
            text=one.text,
            tokens=one.words,
            offsets=one.offsets,
            layers=own_layers.copy() if copy else own_layers,
            vectors=own_vectors.copy() if copy else own_vectors,
            boundaries=layers[:, [start, end]],
            truncated=one.truncated,
            unknown=one.unknown,
        )
        yield sentence if one.runs is None else sentence.merged(one.runs)
        start = end + 1


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32)


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
