"""A masked language model of the BERT family: words for gaps, and scores of sentences.

A masked model has no probability of a sentence. What takes its place is the sum over all words of the
probability given everything else (pseudo-log-likelihood: Salazar et al. 2020). While a piece of a word is
predicted, the pieces of the word to its right are hidden too, or long words would seem too likely (Kauf and
Ivanova 2023).

Shapes: m hidden places, T pieces of a row, V pieces of the vocabulary.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmokit.base import check_whole_number, shown
from elmokit.embed import Text, windows
from elmokit.errors import ConfigError, DataError
from elmokit.formats import UNRECORDED, open_transformers
from elmokit.kernels import find_device
from elmokit.language_model.lm import MASK
from elmokit.text import TokenizerSpec, make_tokenizer, tokens_from_list

_SPEC = "bert:"
_SENTENCE_WORDS = 512  # of the sentences that are read ahead


@dataclass(frozen=True, kw_only=True)
class MaskedCandidate:
    """A word for a gap, with its probability."""

    word: str
    probability: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class MaskedScore:
    """The pseudo-log-likelihood of a sentence.

    Attributes:
        text: What was scored; tokens that were given as a list are joined by spaces.
        tokens: Its words.
        words: log p(word | all other words) of each.
    """

    text: str
    tokens: tuple[str, ...]
    words: tuple[float, ...]

    @property
    def total(self) -> float:
        """Return the sum over the words."""
        return math.fsum(self.words)

    @property
    def perplexity(self) -> float:
        """Return the pseudo-perplexity, exp of the mean loss of a word; it compares with no other model's."""
        return math.exp(-self.total / max(1, len(self.words)))

    def most_surprising(self, count: int = 3) -> list[int]:
        """Return the positions of the least expected words, the least expected first."""
        return sorted(range(len(self.words)), key=lambda at: self.words[at])[:count]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self) | {"total": self.total, "perplexity": self.perplexity}


class MaskedLanguageModel:
    """Gap filling and scores with a masked language model.

    Args:
        spec: "bert:FOLDER", as transformers saves it.
        device: Where it computes.
        tokenizer: How running text becomes words; by default as the files say, else by general rules.
        batch_tokens: About how many pieces go through the network at once.
    """

    def __init__(
        self,
        spec: str,
        *,
        device: str = "cpu",
        tokenizer: TokenizerSpec | str | None = None,
        batch_tokens: int = 8192,
    ) -> None:
        opened = open_transformers(
            spec.removeprefix(_SPEC), "AutoModelForMaskedLM", "a masked language model"
        )
        self._model, self._pieces = opened.model.to(find_device(device)), opened.pieces
        self._device = find_device(device)
        parsed = TokenizerSpec.parse(tokenizer) if isinstance(tokenizer, str) else tokenizer
        found = parsed or opened.words or UNRECORDED
        self.language = found.language
        self._tokenize = make_tokenizer(found)
        self.batch_tokens = batch_tokens
        positions = int(getattr(self._model.config, "max_position_embeddings", 512))
        self._longest = min(int(self._pieces.model_max_length), positions)

    def tokens(self, text: Text) -> list[str]:
        """Tokenise a string; return a list of tokens as it is."""
        found = self._tokenize(text) if isinstance(text, str) else tokens_from_list(text)
        return [token.text for token in found]

    def score(self, sentence: Text) -> MaskedScore:
        """Return the pseudo-log-likelihood of a sentence, given as a string or as a list of tokens."""
        return next(self.stream([sentence]))

    def stream(self, sentences: Iterable[Text], *, latency: float | None = None) -> Iterator[MaskedScore]:
        """Score any number of sentences in order; for `latency` see `Embedder.stream`.

        Raises:
            DataError: A sentence is longer than the model reads.
        """

        def read(sentence: Text) -> tuple[Text, list[str]]:
            return sentence, self.tokens(sentence)

        for window in windows(sentences, read, lambda one: len(one[1]) + 1, _SENTENCE_WORDS, latency=latency):
            yield from self._score_window(window)

    @torch.inference_mode()
    def _score_window(self, window: list[tuple[Text, list[str]]]) -> Iterator[MaskedScore]:
        rows, places, targets, owners = [], [], [], []
        for number, (_, tokens) in enumerate(window):
            ids, words = self._read(tokens)
            for at, word in enumerate(words):
                if word is None:
                    continue
                row = [
                    self._pieces.mask_token_id if place >= at and other == word else piece
                    for place, (piece, other) in enumerate(zip(ids, words, strict=True))
                ]
                rows.append(row)
                places.append(at)
                targets.append(ids[at])
                owners.append((number, word))
        logs = self._log_probabilities(rows, places, torch.tensor(targets, dtype=torch.long))
        sums = [[0.0] * len(tokens) for _, tokens in window]
        for (number, word), value in zip(owners, logs, strict=True):
            sums[number][word] += value
        for (text, tokens), values in zip(window, sums, strict=True):
            given = text if isinstance(text, str) else " ".join(text)
            yield MaskedScore(text=given, tokens=tuple(tokens), words=tuple(values))

    def _log_probabilities(self, rows: list[list[int]], places: list[int], targets: Tensor) -> list[float]:
        """Return log p of the target at one place of each row."""
        found = [0.0] * len(rows)
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
        while order:
            each = max(1, self.batch_tokens // len(rows[order[-1]]))
            batch, order = order[-each:], order[:-each]
            hidden = self._top([rows[row] for row in batch], [places[row] for row in batch])  # (m, V)
            logs = hidden.log_softmax(-1).gather(1, targets[batch].to(self._device)[:, None])
            for row, value in zip(batch, logs[:, 0].tolist(), strict=True):
                found[row] = value
        return found

    def _top(self, rows: list[list[int]], places: list[int]) -> Tensor:
        """Return the scores of all pieces at one place of each row, (m, V)."""
        padded = self._pieces.pad({"input_ids": rows}, return_tensors="pt").to(self._device)
        at = torch.tensor(places, device=self._device)
        logits: Tensor = self._model(**padded).logits  # (m, T, V)
        return logits[torch.arange(len(rows), device=self._device), at].float()

    def _read(self, tokens: list[str]) -> tuple[list[int], list[int | None]]:
        """Return the pieces of words, with the marks around them, and the word of each piece."""
        encoded = self._pieces(tokens, is_split_into_words=True, verbose=False)
        ids: list[int] = encoded["input_ids"]
        if len(ids) > self._longest:
            raise DataError(
                f"a sentence has {len(ids)} pieces, the model reads {self._longest}: "
                f"{shown(' '.join(tokens), 60)}; split it"
            )
        return ids, encoded.word_ids()

    @torch.inference_mode()
    def fill(self, sentence: Text, *, top: int = 10) -> list[list[MaskedCandidate]]:
        """Find words for each `[MASK]` of a sentence: those that are one piece of the vocabulary.

        With several gaps, the one whose best word is most probable is filled first and is then context for
        the others.

        Args:
            sentence: A string or a list of tokens, with at least one `[MASK]`.
            top: How many words to return for each gap, the most likely first.

        Raises:
            ConfigError: There is no gap, or `top` is below 1.
        """
        check_whole_number("top", top, least=1)
        tokens = self._with_masks(sentence)
        gaps = [at for at, token in enumerate(tokens) if token == self._pieces.mask_token]
        if not gaps:
            raise ConfigError(f"expected {MASK} in the sentence, found none: {shown(' '.join(tokens), 80)}")
        found: dict[int, list[MaskedCandidate]] = {}
        while len(found) < len(gaps):
            ids, words = self._read(tokens)
            still_open = [at for at in gaps if at not in found]
            places = [words.index(at) for at in still_open]
            logs = self._top([ids] * len(places), places).masked_fill(~self._is_word, -math.inf)
            chances = logs.softmax(-1).topk(min(top, int(self._is_word.sum())))
            number = int(chances.values[:, 0].argmax())
            at = still_open[number]
            found[at] = [
                MaskedCandidate(word=self._words[piece], probability=p)
                for p, piece in zip(
                    chances.values[number].tolist(), chances.indices[number].tolist(), strict=True
                )
            ]
            tokens[at] = found[at][0].word
        return [found[at] for at in gaps]

    def _with_masks(self, sentence: Text) -> list[str]:
        mask = self._pieces.mask_token
        if not isinstance(sentence, str):
            return [mask if token == MASK else token for token in self.tokens(sentence)]
        first, *rest = (self.tokens(part) for part in sentence.split(MASK))
        return list(chain(first, *([mask, *part] for part in rest)))

    @cached_property
    def _words(self) -> list[str]:
        """(V,) the word that each piece is, by itself; empty for one that is none."""
        words = [""] * int(self._model.config.vocab_size)
        special = set(self._pieces.all_special_ids)
        for piece, number in self._pieces.get_vocab().items():
            starts_word = not piece.startswith("##") and ("Ġ" not in self._pieces.mask_token)
            if number not in special and starts_word and number < len(words):
                words[number] = self._pieces.convert_tokens_to_string([piece]).strip()
        return words

    @cached_property
    def _is_word(self) -> Tensor:
        return torch.tensor([bool(word) for word in self._words], device=self._device)


def is_masked(path: str | Path) -> bool:
    """Return whether a model's name is that of a masked language model."""
    return str(path).startswith(_SPEC)
