"""The main job: text in, the vectors of its tokens out.

    text → tokens → distinct tokens → token vectors (each computed once) → length-sorted batches → all layers

A sentence's vectors depend on the sentence alone, unless the embedder was made `stateful`.
"""

from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

import torch
from torch import Tensor

from elmokit.embed.engine import Batch, InferenceBiLM
from elmokit.embed.reader import TextReader, batches_by_length
from elmokit.embed.sentence import Floats, Sentence
from elmokit.embed.text_embedder import PreparedText, TextEmbedder
from elmokit.embed.type_vectors import TypeVectors
from elmokit.errors import ConfigError
from elmokit.formats import UNRECORDED, ModelBundle, load_model, save_model
from elmokit.kernels import engine_name, find_device, resolve, side_by_side, whole_pieces
from elmokit.model import BiLM, CarriedState, MixChoice
from elmokit.text import TokenizerSpec, known_scripts, make_tokenizer


class EmbedderSettings(TypedDict, total=False):
    """How an `Embedder` works; see `elmokit.load`."""

    precision: str
    device: str
    stateful: bool
    tokenizer: TokenizerSpec | str | None
    words: TokenizerSpec | str | None
    mix: MixChoice
    batch_tokens: int


def load_elmo(
    path: str | Path, weights: str | Path | None = None, **settings: Unpack[EmbedderSettings]
) -> "Embedder":
    """Open an ELMo, whatever its format; see `elmokit.load`, which opens other models too."""
    embedder = Embedder(load_model(path, weights), **settings)
    found = Path(path)
    embedder.path = str(found.resolve()) if found.exists() else str(path)
    return embedder


class Embedder(TextEmbedder):
    """An ELMo ready to embed.

    With `stateful=True`, row k of each `embed` call continues where row k of the previous call stopped, as
    AllenNLP and bilm-tf do with the rows of a batch; `stream` then makes a call for each sentence, and
    `reset` clears the state. Otherwise every sentence starts from zero. One embedder serves one thread.

    Args:
        bundle: The model, from `elmokit.formats.load_model`. Its weights are laid out for fast products at
            the first call; later changes of them are not seen.
        precision, device, stateful, tokenizer, words, mix, batch_tokens: See `elmokit.load`.
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
        self.bundle = bundle
        found = find_device(device)
        model = bundle.model
        if next(model.parameters()).device.type != found.type:  # others may use it on its own
            model = deepcopy(model)
        self.model: BiLM = model.to(found).eval()
        if stateful and not self.model.config.carries_state:
            raise ConfigError("this model starts every sentence from zero; leave out stateful=True")
        if isinstance(tokenizer, str):
            tokenizer = TokenizerSpec.parse(tokenizer)
        self._recorded = tokenizer is not None or bundle.tokenizer != UNRECORDED
        self._carried = CarriedState()
        super().__init__(
            source=bundle.source,
            device=found,
            precision=resolve(precision, found.type),
            tokenizer=tokenizer or bundle.tokenizer,
            words=words,
            mix=mix,
            batch_tokens=batch_tokens,
            stateful=stateful,
            pooling=bundle.pooling,
        )

    def _make_reader(self) -> TextReader:
        vocabulary = self.bundle.vocabulary
        return TextReader(
            make_tokenizer(self.tokenizer_spec),
            self.model.config,
            recorded=self._recorded,
            vocabulary=vocabulary,
            known=known_scripts(vocabulary.tokens) if vocabulary else frozenset(),
        )

    def twin(self) -> Self:
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
        save_model(replace(self.bundle, tokenizer=self.tokenizer_spec, pooling=self.pooling), folder)

    @torch.inference_mode()
    @whole_pieces()
    def _embed_window(self, window: list[PreparedText], copy: bool) -> list[Sentence]:
        """Embed sentences in batches of similar length and return them in order."""
        rows_of = list(batches_by_length([len(one) for one in window], self.batch_tokens))
        groups = [[window[row] for row in rows] for rows in rows_of]
        done = self._engine(list(self._batches(groups, rows_of)), ends=self.stateful)
        if self.stateful:
            for rows, (_, end) in zip(rows_of, done, strict=True):
                self._carried.put(torch.tensor(rows), end)

        def assemble(batch: tuple[list[PreparedText], tuple[Tensor, Any]]) -> list[Sentence]:
            group, (layers, _) = batch
            vectors = self._mix(layers, [len(one) for one in group])  # (S, 2P)
            return list(_split(group, layers.cpu().numpy(), vectors, copy=copy))

        parts = side_by_side(assemble, list(zip(groups, done, strict=True)), self.device)
        results = dict(zip(chain.from_iterable(rows_of), chain.from_iterable(parts), strict=True))
        return [results[row] for row in range(len(window))]

    def _batches(self, groups: list[list[PreparedText]], rows_of: list[list[int]]) -> Iterator[Batch]:
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
