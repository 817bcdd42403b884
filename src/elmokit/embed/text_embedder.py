"""What every embedder offers: text in, the vectors of its tokens out.

    text → tokens → windows of some thousand tokens → layers and mix of each sentence

How the vectors are computed is the embedder's own: `Embedder` for ELMo, `BertEmbedder` for the BERT family.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, overload

import numpy as np
import torch

from elmokit.base import check_whole_number
from elmokit.embed.reader import Text, refuse_one_string, refuse_unless, windows
from elmokit.embed.sentence import Floats, LayerChoice, Sentence
from elmokit.embed.sentence_vectors import Pooler, SentencePooling
from elmokit.kernels import Precision, share_weights
from elmokit.model import FittedPooling, MixChoice, ScalarMix
from elmokit.text import Run, Token, TokenizerSpec, group_tokens, make_tokenizer


class Reader(Protocol):
    """Tokenises texts, and knows which words the model does not read whole or not at all."""

    def __call__(self, text: Text) -> list[Token]:
        """Return the tokens of a text."""

    def truncated(self, tokens: Sequence[str], /) -> list[int]:
        """Return the positions of the tokens of which the model reads a part only."""

    def unknown(self, tokens: Sequence[str], /) -> list[int]:
        """Return the positions of the tokens that the model does not know."""


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


class TextEmbedder(ABC):
    """A model ready to embed, of whatever kind. One embedder serves one thread.

    Args:
        tokenizer: What makes tokens of a text.
        words, mix, batch_tokens: See `elmokit.load`.

    Attributes:
        path: What `load` opened; None for a model that was made in memory.
        pooling: The statistics of sentence vectors, if they were fitted.
    """

    def __init__(
        self,
        *,
        source: str,
        device: torch.device,
        precision: Precision,
        tokenizer: TokenizerSpec,
        words: TokenizerSpec | str | None,
        mix: MixChoice,
        batch_tokens: int,
        stateful: bool = False,
        pooling: FittedPooling | None = None,
    ) -> None:
        check_whole_number("batch_tokens", batch_tokens, least=1)
        self.path: str | None = None
        self.source, self.pooling = source, pooling
        self.device, self.precision = device, precision
        self.tokenizer_spec = tokenizer
        self.words_spec = TokenizerSpec.parse(words) if isinstance(words, str) else words
        self._find_words = None if self.words_spec is None else make_tokenizer(self.words_spec)
        self._reader = self._make_reader()
        self.mix = ScalarMix.of(mix, self.num_layers).to(device).eval()
        self.batch_tokens, self.stateful = batch_tokens, stateful

    @property
    @abstractmethod
    def engine(self) -> str:
        """Return what computes: an instruction set of the native kernel, or "torch"."""

    @property
    @abstractmethod
    def num_layers(self) -> int:
        """Return the number of layers of each token, that of single tokens included."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Return the size of each vector."""

    @abstractmethod
    def twin(self) -> Self:
        """Return an embedder for another thread; both share the weights."""

    @abstractmethod
    def save(self, folder: str | Path) -> None:
        """Write model and tokenizer, so that `load` opens them."""

    @abstractmethod
    def _make_reader(self) -> Reader: ...

    @abstractmethod
    def _embed_window(self, window: list[PreparedText], copy: bool) -> list[Sentence]:
        """Embed sentences in batches of similar length and return them in order."""

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

    def share_weights(self) -> None:
        """Keep one copy of the weights for all processes of this user and machine that call this.

        They are mapped from files in the temporary folder that hold the same numbers, and so is what the
        native kernel makes of them. Call this before anything is embedded: what has been laid out for fast
        products refers to the weights as they were. Only on Linux; elsewhere nothing is done.
        """
        modules = [part for part in vars(self).values() if isinstance(part, torch.nn.Module)]
        share_weights([weight for module in modules for weight in module.parameters()])
        self.embed([[]])  # lays them out
        share_weights([])

    def prepare(self, text: Text) -> PreparedText:
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

    def embed_prepared(self, window: list[PreparedText], *, copy: bool = True) -> list[Sentence]:
        """Embed texts that `prepare` returned, all at once; for `copy` see `stream`."""
        # The precision is the embedder's own, whatever surrounds the call.
        with torch.autocast(self.device.type, enabled=False):
            return self._embed_window(window, copy)


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32)


def _warn_of_one_sentence(texts: Sequence[Any], reader: Reader) -> None:
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
