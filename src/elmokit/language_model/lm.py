"""A biLM with its softmax: a language model that reads from the left and one that reads from the right.

A sentence is `<S>` w_1 … w_n `</S>`. With h_t the top layer at position t, both directions share the softmax:

    forward:   →h_t predicts token t+1 (the words and `</S>`)
    backward:  ←h_t predicts token t-1 (the words and `<S>`)

Every sentence starts from the zero state. The inputs are the characters of each word; as a target, a word
out of vocabulary is `<UNK>`. Shapes: B sentences, S positions of a batch, P projection, V vocabulary, m gaps.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor

from elmokit.base import check_option, check_whole_number, shown
from elmokit.embed import Batch, InferenceBiLM, Text, TextReader, TypeVectors, batches_by_length, windows
from elmokit.errors import ConfigError, DataError, ModelFileError
from elmokit.formats import UNRECORDED, ModelBundle, load_model
from elmokit.kernels import find_device, resolve, side_by_side, whole_pieces
from elmokit.language_model.gap_filling import GapAccuracy, GapFiller
from elmokit.language_model.generation import sampled_continuation, words_in
from elmokit.language_model.results import Candidate, Perplexity, SentenceScore
from elmokit.model import BiLM, FillWeights, Softmax, State
from elmokit.text import (
    BEGIN_SENTENCE_TOKEN,
    END_SENTENCE_TOKEN,
    UNKNOWN_TOKEN,
    Tokenizer,
    TokenizerSpec,
    Vocabulary,
    known_scripts,
    make_tokenizer,
)

MASK = "[MASK]"
Side = Literal["both", "forward", "backward"]

_ROWS_OF_A_PIECE = 1024  # positions that one thread predicts at a time


class LanguageModel:
    """Perplexity, scores, gap filling and sampling with a biLM.

    Args:
        model: the network, on any device. Later changes to its weights have no effect.
        softmax: its output layer.
        vocabulary: the words of the softmax's rows.
        tokenizer: tokenises running text for the model.
        precision: of the network's products; those of the softmax are float32. See `elmokit.load`.
        batch_tokens: about how many tokens go through the network at once.
        fill_weights: how `fill` combines the two directions.

    Raises:
        ConfigError: the parts do not fit together.
        DataError: the vocabulary lacks a special token.
    """

    def __init__(
        self,
        model: BiLM,
        softmax: Softmax,
        vocabulary: Vocabulary,
        tokenizer: TokenizerSpec | Tokenizer,
        *,
        precision: str = "float32",
        batch_tokens: int = 8192,
        fill_weights: FillWeights | None = None,
    ) -> None:
        expected = (len(vocabulary), model.config.projection_dim)
        if tuple(softmax.weight.shape) != expected:
            raise ConfigError(
                f"the softmax is {list(softmax.weight.shape)}, the vocabulary and the model ask for "
                f"{list(expected)}; use those that were trained together"
            )
        vocabulary.require_specials()
        self.vocabulary = vocabulary
        self.device = next(model.parameters()).device
        self.softmax = softmax.to(self.device)
        self.batch_tokens = batch_tokens
        recorded = tokenizer != UNRECORDED
        self.language: str | None = None
        if isinstance(tokenizer, TokenizerSpec):
            self.language = tokenizer.language
            tokenizer = make_tokenizer(tokenizer)
        self._reader = TextReader(
            tokenizer, model.config, recorded=recorded, known=known_scripts(vocabulary.tokens)
        )
        self._engine = InferenceBiLM(model, resolve(precision, self.device.type))
        self._type_vectors = TypeVectors(self._engine, vocabulary, self.device)
        self._dim = model.config.projection_dim
        self._gap_filler = GapFiller(self.softmax, self._is_word, fill_weights or FillWeights())

    @classmethod
    def load(
        cls,
        path: str | Path,
        weights: str | Path | None = None,
        *,
        precision: str = "float32",
        device: str = "cpu",
        tokenizer: TokenizerSpec | str | None = None,
        batch_tokens: int = 8192,
    ) -> "LanguageModel":
        """Load a model that has its softmax; the arguments are those of `elmokit.load`.

        Raises:
            ModelFileError: there is no model, or it has no softmax or no vocabulary.
        """
        bundle = load_model(path, weights)
        bundle.model.to(find_device(device))
        tokenizer = TokenizerSpec.parse(tokenizer) if isinstance(tokenizer, str) else tokenizer
        return cls.of_bundle(bundle, precision=precision, tokenizer=tokenizer, batch_tokens=batch_tokens)

    @classmethod
    def of_bundle(
        cls,
        bundle: ModelBundle,
        *,
        precision: str = "float32",
        tokenizer: TokenizerSpec | None = None,
        batch_tokens: int = 8192,
    ) -> "LanguageModel":
        """Make one of a loaded model, on the device where that is; the arguments are those of `load`."""
        if bundle.softmax is None:
            raise ModelFileError(
                f"{bundle.source}: has no softmax and is therefore no language model, like most published "
                "ELMos; put its softmax_weights.hdf5 and vocab.txt into its folder if you have them, or fit "
                "a new softmax by pretraining that starts from this model"
            )
        if bundle.vocabulary is None:
            raise ModelFileError(
                f"{bundle.source}: the softmax has {bundle.softmax.num_words} rows, but there is no "
                "vocabulary that names them; put the vocab.txt it was trained with into its folder"
            )
        return cls(
            bundle.model,
            bundle.softmax.read(),
            bundle.vocabulary,
            tokenizer or bundle.tokenizer,
            precision=precision,
            batch_tokens=batch_tokens,
            fill_weights=bundle.fill_weights,
        )

    def tokens(self, text: Text) -> list[str]:
        """Tokenise a string; return a list of tokens as it is."""
        return [token.text for token in self._reader(text)]

    def perplexity(self, sentences: Iterable[Text]) -> Perplexity:
        """Measure how well the model predicts sentences (strings or lists of tokens), in bounded memory.

        Raises:
            DataError: no sentence has a word.
        """
        return Perplexity.of(self.stream(sentences))

    def score(self, sentence: Text) -> SentenceScore:
        """Return the log-probabilities of a sentence's words, given as a string or as a list of tokens."""
        return next(self.stream([sentence]))

    def stream(self, sentences: Iterable[Text], *, latency: float | None = None) -> Iterator[SentenceScore]:
        """Score any number of sentences in order, holding only a few batches at a time.

        Args:
            sentences: strings or lists of tokens.
            latency: how many seconds a sentence may wait for others; see `Embedder.stream`.
        """

        def read(sentence: Text) -> tuple[Text, list[str]]:
            return sentence, self.tokens(sentence)

        def size(item: tuple[Text, list[str]]) -> int:
            return len(item[1]) + 2

        for window in windows(sentences, read, size, self.batch_tokens, latency=latency):
            yield from self._score_window(window)

    @torch.inference_mode()
    @whole_pieces()
    def _score_window(self, window: list[tuple[Text, list[str]]]) -> list[SentenceScore]:
        """Score sentences in batches of similar length; return them in the order given."""
        rows_of = list(batches_by_length([len(tokens) + 2 for _, tokens in window], self.batch_tokens))
        groups = [[window[row][1] for row in rows] for rows in rows_of]
        results: dict[int, SentenceScore] = {}
        unknown = self.vocabulary.id(UNKNOWN_TOKEN)
        layers_of = self._engine([self._batch(group) for group in groups], ends=False)
        for rows, group, (layers, _) in zip(rows_of, groups, layers_of, strict=True):
            forward, backward = self._log_probabilities(group, layers[-1])
            start = 0
            for row, tokens in zip(rows, group, strict=True):
                end = start + len(tokens)  # here the forward model predicts </S>; <S> is at `start`
                text = window[row][0]
                results[row] = SentenceScore(
                    text=text if isinstance(text, str) else " ".join(text),
                    tokens=tuple(tokens),
                    known=tuple(self.vocabulary.id(token) != unknown for token in tokens),
                    forward=tuple(forward[start:end]),
                    backward=tuple(backward[start + 1 : end + 1]),
                    end=forward[end],
                    begin=backward[start],
                )
                start = end + 1
        return [results[row] for row in range(len(window))]

    def _batch(self, group: list[list[str]]) -> Batch:
        tokens = list(chain.from_iterable(map(_bounded, group)))
        self._reader.truncated(tokens)  # warns
        return Batch(self._type_vectors(tokens), torch.tensor([len(tokens) + 2 for tokens in group]))

    def _log_probabilities(self, group: list[list[str]], top: Tensor) -> tuple[list[float], list[float]]:
        """Return the log-probabilities of a batch in text order, of words and `</S>` and of `<S>` and words.

        `top` (S, 2P) is the top layer of the sentences and their boundaries.
        """
        tokens = chain.from_iterable(map(_bounded, group))
        ids = torch.tensor([self.vocabulary.id(token) for token in tokens], device=self.device)  # (S,)
        ends = torch.tensor([len(tokens) + 2 for tokens in group], device=self.device).cumsum(0)  # (B,)
        has_next, has_previous = torch.ones(2, len(ids), dtype=torch.bool, device=self.device)  # (S,) each
        has_next[ends - 1] = False
        has_previous[0] = False
        has_previous[ends[:-1]] = False
        hidden = torch.cat([top[has_next, : self._dim], top[has_previous, self._dim :]])  # (2(S - B), P)
        targets = torch.cat([ids[has_previous], ids[has_next]])  # (2(S - B),)
        pieces = zip(*(torch.split(x, _ROWS_OF_A_PIECE) for x in (hidden, targets)), strict=True)
        logs = side_by_side(
            lambda piece: self.softmax.target_log_probabilities(*piece), list(pieces), self.device
        )
        forward, backward = torch.cat(logs).chunk(2)
        return forward.tolist(), backward.tolist()

    @torch.inference_mode()
    def fill(self, sentence: Text, *, top: int = 10, by: Side = "both") -> list[list[Candidate]]:
        """Find words for each `[MASK]` of a sentence.

        Each direction predicts the word of a gap from one side; `elmokit.language_model.gap_filling` combines
        them with weights that are stored with the model. With several gaps, the one whose best word is most
        probable is filled first and is then context for the others; gaps that are still open are read as
        `<UNK>`.

        Args:
            sentence: a string or a list of tokens, with at least one `[MASK]`.
            top: how many words to return for each gap, the most likely first.
            by: what has to make them likely: "both" sides, or the "forward" or "backward" model alone.

        Raises:
            ConfigError: there is no gap, `top` is below 1, or `by` is something else.
        """
        check_whole_number("top", top, least=1)
        check_option("by", by, get_args(Side))
        tokens = self._tokens_with_masks(sentence)
        gaps = [at for at, token in enumerate(tokens) if token == MASK]
        if not gaps:
            raise ConfigError(f"expected {MASK} in the sentence, found none: {shown(' '.join(tokens), 80)}")
        tokens = [UNKNOWN_TOKEN if token == MASK else token for token in tokens]
        found: dict[int, list[Candidate]] = {}
        field = attrgetter("probability" if by == "both" else by)
        while len(found) < len(gaps):
            still_open = [at for at in gaps if at not in found]
            candidates = self._candidates(tokens, still_open, top, by)
            at, best = max(zip(still_open, candidates, strict=True), key=lambda gap: field(gap[1][0]))
            found[at], tokens[at] = best, best[0].word
        return [found[at] for at in gaps]

    def _tokens_with_masks(self, sentence: Text) -> list[str]:
        if not isinstance(sentence, str):
            return self.tokens(sentence)
        first, *rest = (self.tokens(part) for part in sentence.split(MASK))
        return first + [token for part in rest for token in (MASK, *part)]

    def _candidates(self, tokens: list[str], gaps: list[int], top: int, by: Side) -> list[list[Candidate]]:
        ((layers, _),) = self._engine([self._batch([tokens])])
        at = torch.tensor(gaps, device=self.device) + 1  # position 0 is <S>
        left, right = layers[-1, at - 1, : self._dim], layers[-1, at + 1, self._dim :]  # (m, P) each
        both, forward, backward = self._gap_filler(left, right)  # (m, V) each
        order = {"both": both, "forward": forward, "backward": backward}[by]
        order = order.masked_fill(~self._is_word, -math.inf)
        rows = order.topk(min(top, int(self._is_word.sum())), dim=1).indices  # (m, top)
        numbers = (part.gather(1, rows) for part in (both, forward, backward))
        return [
            [
                Candidate(word=self.vocabulary.tokens[row], probability=p, forward=f, backward=b)
                for row, p, f, b in zip(*gap, strict=True)
            ]
            for gap in zip(rows.tolist(), *(x.exp().tolist() for x in numbers), strict=True)
        ]

    @torch.inference_mode()
    def gaps(self, sentences: Iterable[Text]) -> GapAccuracy:
        """Hide each word of each sentence in turn and measure how often `fill` would find it.

        Raises:
            DataError: no sentence has a word.
        """
        found = self._gap_filler.accuracy(self._gaps(sentences))
        if not found.words:
            raise DataError("the text has no words, expected at least one sentence; check the file")
        return found

    @torch.inference_mode()
    def fit_fill(self, sentences: Iterable[Text], *, most_words: int = 5000) -> FillWeights:
        """Fit how `fill` combines the directions, on a text that the model was not trained on.

        Args:
            sentences: strings or lists of tokens.
            most_words: words to look at; the weights are three, so a few thousand are enough.

        Returns:
            The weights, which `fill` and `gaps` use from now on.
        """
        self._gap_filler.weights = found = self._gap_filler.fit(self._gaps(sentences, most_words))
        return found

    def _gaps(
        self, sentences: Iterable[Text], most_words: float = math.inf
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield for the words of each batch: the states left and right of them, (n, P) each, and ids (n,)."""
        for window in windows(sentences, self.tokens, lambda tokens: len(tokens) + 2, self.batch_tokens):
            group = [tokens for tokens in window if tokens]
            if most_words <= 0:
                return
            if not group:
                continue
            most_words -= sum(map(len, group))
            ((layers, _),) = self._engine([self._batch(group)])
            top, start = layers[-1], 0  # (S, 2P)
            is_word = torch.ones(len(top), dtype=torch.bool, device=self.device)  # not <S> and </S>
            for tokens in group:
                is_word[[start, start + len(tokens) + 1]] = False
                start += len(tokens) + 2
            (at,) = torch.where(is_word)  # (n,)
            ids = [self.vocabulary.id(token) for token in chain.from_iterable(group)]
            targets = torch.tensor(ids, device=self.device)  # (n,)
            yield top[at - 1, : self._dim], top[at + 1, self._dim :], targets

    @torch.inference_mode()
    def generate(
        self,
        prompt: Text = (),
        *,
        generator: torch.Generator | None = None,
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int = 100,
        no_repeat: int = 0,
    ) -> list[str]:
        """Sample the continuation of a sentence from the forward model.

        Args:
            prompt: how the sentence begins, a string or a list of tokens; may be empty.
            generator: source of randomness, on the CPU; by default a new one, so that each call differs.
            temperature: below 1 for likelier words, 0 for the most likely; see `elmokit.decoding.sample`.
            top_p: sample among the most likely words whose probabilities sum to this much.
            max_tokens: how many tokens to sample at most.
            no_repeat: no run of so many new tokens occurs twice; 0 for no such rule.

        Returns:
            The tokens of the prompt and the new ones. `<UNK>` and `<S>` are never sampled; `</S>` stops.

        Raises:
            ConfigError: a number is out of range.
        """
        return sampled_continuation(
            *(self, prompt),
            generator=generator,
            temperature=temperature,
            top_p=top_p,
            max_tokens=max_tokens,
            no_repeat=no_repeat,
        )

    @torch.inference_mode()
    def predict_next(self, rows: Sequence[Sequence[str]], state: State | None = None) -> tuple[Tensor, State]:
        """Read rows of words on from a state; return log p (R, V) of the next words, and the new state."""
        flat = list(chain.from_iterable(rows))
        self._reader.truncated(flat)  # warns
        lengths = torch.tensor([len(row) for row in rows])
        ((layers, state),) = self._engine([Batch(self._type_vectors(flat), lengths, state)])
        top = layers[-1, lengths.cumsum(0) - 1, : self._dim]  # (R, P)
        return self.softmax.log_probabilities(top), state

    @cached_property
    def _is_word(self) -> Tensor:
        """(V,): false for special tokens, empty lines and repeated words."""
        return torch.tensor(words_in(self.vocabulary), device=self.device)


def _bounded(tokens: list[str]) -> list[str]:
    return [BEGIN_SENTENCE_TOKEN, *tokens, END_SENTENCE_TOKEN]
