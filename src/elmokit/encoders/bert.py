"""All layers of a BERT-family model, through transformers; pieces are pooled to words."""

import json
import logging
import sys
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from elmokit.embed import batches_by_length
from elmokit.encoders.base import LayeredModule, Sentences, fingerprint_of, weight_bytes
from elmokit.formats import open_transformers
from elmokit.kernels import find_device
from elmokit.text import TokenizerSpec

logger = logging.getLogger(__name__)

PiecePooling = Literal["first", "mean"]

_BATCH_PIECES = 4096


class BertEncoder:
    """A model of the BERT family; see `Encoder`. Layer 0 is the embedding layer.

    Text with more pieces than the model has positions is read in windows that overlap by half; a word's
    vectors come from the window in whose middle it stands. Nothing is truncated.
    """

    contextual = True
    pretrained = True
    adaptable = False

    def __init__(self, module: "BertModule", spec: str, tokenizer: TokenizerSpec | None = None) -> None:
        self.spec = spec
        self.tokenizer = tokenizer
        self.module = module
        self.dim = int(module.model.config.hidden_size)
        self.num_layers = int(module.model.config.num_hidden_layers) + 1

    @classmethod
    def open(cls, folder: str, *, pooling: PiecePooling = "first", device: str = "cpu") -> "BertEncoder":
        """Open a folder as transformers saves it; nothing is downloaded.

        Raises:
            MissingExtra: transformers is not installed.
            ModelFileError: The folder does not exist, or does not hold a model and its tokenizer.
        """
        model, tokenizer, words = open_transformers(folder, "AutoModel", "a BERT encoder")
        model.to(find_device(device))
        kind = "bert" if pooling == "first" else "bert-mean"
        return cls(BertModule(model, tokenizer, pooling), f"{kind}:{Path(folder).resolve()}", words)

    @torch.no_grad()
    def encode(self, sentences: Sentences) -> list[Tensor]:
        """Return (L, T, D) for each sentence."""
        found: dict[int, Tensor] = {}
        for rows in batches_by_length([len(sentence) + 2 for sentence in sentences], _BATCH_PIECES):
            lengths = [len(sentences[row]) for row in rows]
            layers = self.module([sentences[row] for row in rows]).cpu()
            found |= zip(rows, layers.split(lengths, dim=1), strict=True)
        return [found[row] for row in range(len(sentences))]

    def fingerprint(self) -> str:
        """Return the fingerprint of pooling, tokenizer, settings and weights."""
        settings = self.module.model.config.to_dict()
        tokenizer = json.loads(self.module.tokenizer.backend_tokenizer.to_str())
        for name in ("_name_or_path", "transformers_version", "dtype", "torch_dtype", "architectures"):
            settings.pop(name, None)
        for name in ("padding", "truncation"):  # of the last call
            tokenizer.pop(name, None)
        known = json.dumps([self.module.pooling, tokenizer, settings], sort_keys=True, default=str).encode()
        return fingerprint_of(chain([known], weight_bytes(self.module.model, without="pooler")))

    def save(self, folder: Path) -> str:
        """Write model and tokenizer as transformers does."""
        self.module.model.save_pretrained(folder)
        self.module.tokenizer.save_pretrained(folder)
        return f"{self.spec.partition(':')[0]}:{folder}"


class BertModule(LayeredModule):
    """The model and its tokenizer. Stage 0 is the embedding layer, stage l the l-th transformer layer.

    Args:
        model, tokenizer: Of transformers; the tokenizer is a fast one, which knows the words of its pieces.
        pooling: Whether a word is its first piece or the mean of its pieces.
    """

    def __init__(self, model: Any, tokenizer: Any, pooling: PiecePooling) -> None:  # noqa: ANN401 (untyped)
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.pooling = pooling
        self._positions = min(int(tokenizer.model_max_length), _num_positions(model))
        self._room = self._positions - int(tokenizer.num_special_tokens_to_add())

    def forward(self, sentences: Sentences) -> Tensor:
        """Return the vectors (L, S, D) of all words; zero for a word that has no pieces."""
        windows = [window for sentence in sentences for window in self._windows(list(sentence))]
        config = self.model.config
        words: Tensor = self.model.get_input_embeddings().weight.new_zeros(
            config.num_hidden_layers + 1, sum(map(len, sentences)), config.hidden_size
        )
        if not windows:
            return words
        encoded = self.tokenizer(
            [window.words for window in windows],
            is_split_into_words=True, padding=True, truncation=True, max_length=self._positions,
            return_tensors="pt",
        )  # fmt: skip
        output = self.model(**encoded.to(self.model.device), output_hidden_states=True)
        hidden = torch.stack(output.hidden_states)  # (L, windows, pieces, D)
        places = self._places(windows, [encoded.word_ids(row) for row in range(len(windows))])
        rows, columns, numbers = torch.tensor(places, device=hidden.device).view(-1, 3).T
        counts = torch.bincount(numbers, minlength=words.shape[1]).clamp(min=1)
        return words.index_add(1, numbers, hidden[:, rows, columns]) / counts[:, None]

    def stages(self) -> list[list[nn.Parameter]]:
        """Return the parameters of the embeddings, then of each layer; a pooler is left out."""
        layers = next(part for part in self.model.modules() if isinstance(part, nn.ModuleList))
        pooler = getattr(self.model, "pooler", None)
        others = {*layers.parameters(), *(pooler.parameters() if pooler is not None else ())}
        below = [parameter for parameter in self.model.parameters() if parameter not in others]
        return [below, *(list(layer.parameters()) for layer in layers)]

    def _places(
        self, windows: list["_Window"], word_ids: list[list[int | None]]
    ) -> list[tuple[int, int, int]]:
        """Return (window, piece, word of the batch) for each piece that counts."""
        places = []
        done = 0
        for row, (window, ids) in enumerate(zip(windows, word_ids, strict=True)):
            seen = set()
            for piece, word in enumerate(ids):
                if word is None or word not in window.kept or (self.pooling == "first" and word in seen):
                    continue
                seen.add(word)
                places.append((row, piece, done + word - window.kept.start))
            done += len(window.kept)
        return places

    def _windows(self, sentence: list[str]) -> Iterator["_Window"]:
        """Yield the sentence as one window if the model has enough positions, else as several."""
        if not sentence:
            return
        sizes = [0] * len(sentence)
        pieces = self.tokenizer(
            sentence, is_split_into_words=True, add_special_tokens=False, verbose=False
        ).word_ids()
        for word in pieces:
            sizes[word] += 1
        if max(sizes) > self._room:
            logger.warning(
                "a word has more pieces than the model has positions; its first %d are read: %.40r…",
                self._room,
                sentence[sizes.index(max(sizes))],
            )
        spans = overlapping_spans([min(size, self._room) for size in sizes], self._room)
        kept = middles(spans)
        for (start, end), words in zip(spans, kept, strict=True):
            yield _Window(sentence[start:end], range(words.start - start, words.stop - start))


def _num_positions(model: Any) -> int:  # noqa: ANN401 (untyped)
    """Return how many pieces a model can read; RoBERTa's family does not use its first positions."""
    most = int(getattr(model.config, "max_position_embeddings", sys.maxsize))
    for name, part in model.named_modules():
        unused = getattr(part, "padding_idx", None)
        if name.endswith("position_embeddings") and unused is not None:
            return most - int(unused) - 1
    return most


class _Window(NamedTuple):
    """Words that are read together, and which of them (counted from the first) are used."""

    words: list[str]
    kept: range


def overlapping_spans(sizes: list[int], room: int) -> list[tuple[int, int]]:
    """Return ranges of words with at most `room` pieces each; they overlap by up to half of that.

    Example:
        >>> overlapping_spans([1] * 7, room=4)
        [(0, 4), (2, 6), (4, 7)]
    """
    spans = []
    start = end = 0
    while end < len(sizes):
        total = sum(sizes[start:end])
        while end < len(sizes) and (total + sizes[end] <= room or start == end):
            total += sizes[end]
            end += 1
        spans.append((start, end))
        if end < len(sizes):  # the next range repeats the last words of this one and has room for one more
            spare = min(room // 2, room - sizes[end])
            start = end
            while sizes[start - 1] <= spare:
                start -= 1
                spare -= sizes[start]
    return spans


def middles(spans: list[tuple[int, int]]) -> list[range]:
    """Return which words to use from each span: each word where it is farthest from an inner edge.

    Example:
        >>> middles([(0, 4), (2, 6), (4, 7)])
        [range(0, 3), range(3, 5), range(5, 7)]
    """
    edges = [0, *((start + end) // 2 for (_, end), (start, _) in pairwise(spans)), spans[-1][1]]
    return [range(start, end) for start, end in pairwise(edges)]
