"""The head that writes a text: attention over the source, and beam search or sampling."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple
from zlib import crc32

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from elmokit.base import bounded
from elmokit.decoding import Constraints, FoundSequence, beam_search, sample_sequences
from elmokit.kernels import Dropout, combined_seed
from elmokit.tasks.core import (
    EncoderSettings,
    HeadSettings,
    Hidden,
    Item,
    TaskSettings,
    TrainingSettings,
    pad,
)
from elmokit.tasks.seq2seq.data import TextPair
from elmokit.tasks.seq2seq.decoder import AttentionDecoder, DecoderState, DecoderSteps, SourceMemory
from elmokit.tasks.seq2seq.target_vocabulary import (
    BLANK,
    END,
    UNKNOWN,
    TargetKind,
    TargetVocabulary,
    join,
    split,
)

_BEFORE = END  # what the decoder reads before the first piece


@dataclass(frozen=True, kw_only=True)
class Seq2SeqHeadSettings(HeadSettings):
    """The settings of the head that writes a text.

    Attributes:
        target: what a text is written with: subwords (byte-pair encoding), words or characters.
        vocabulary: the most of these; characters that occur are all in it for subwords.
        decoder: size of the decoder's LSTM layers.
        embedding: size of the vectors of its pieces.
        copy: whether words of the source may be copied.
        smoothing: share of the probability that label smoothing gives to all pieces alike.
        beam: how many beginnings a search keeps; 1 takes the most probable piece each time.
        length_penalty: 0 prefers short texts, 1 hardly does; see `elmokit.decoding.beam_search`.
        no_repeat: no run of so many pieces is written twice; 0 for no such rule.
        temperature: above 0 texts are sampled, not searched for; below 1 with likelier pieces.
        top_p: sample among the most likely pieces whose probabilities sum to this much.
        sampling_seed: of the random numbers for sampling; a source and a seed give the same text again.
    """

    rnn: int = bounded(256, least=0, most=100_000)
    dropout: float = bounded(0.3, least=0, most=1)
    target: TargetKind = "subwords"
    vocabulary: int = bounded(4000, least=3, most=1_000_000)
    decoder: int = bounded(400, least=1, most=100_000)
    embedding: int = bounded(256, least=1, most=100_000)
    copy: bool = False
    smoothing: float = bounded(0.1, least=0, most=1)
    beam: int = bounded(5, least=1, most=100)
    length_penalty: float = bounded(1.0, least=0, most=10)
    no_repeat: int = bounded(0, least=0)
    temperature: float = bounded(0.0, least=0)
    top_p: float = bounded(1.0, above=0, most=1)
    sampling_seed: int = bounded(0, least=0)


@dataclass(frozen=True, kw_only=True)
class Seq2SeqSettings(TaskSettings):
    """All settings for writing a text."""

    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    head: Seq2SeqHeadSettings = field(default_factory=Seq2SeqHeadSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(
            epochs=20, patience=3, batch=64, learning_rate=2e-3, clip_norm=1.0
        )
    )


class WrittenText(NamedTuple):
    """What the head writes for an item.

    Attributes:
        pieces: of the best text.
        attention: (U, T) how much each piece attends to each token of the source.
        score: of the best text, per `elmokit.decoding.beam_search`.
        others: the next best texts and their scores.
    """

    pieces: tuple[str, ...]
    attention: Tensor
    score: float
    others: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """The best text."""
        return join(self.pieces)


@dataclass(frozen=True)
class LengthLimit:
    """How long a text may be: so many pieces, and so many for each token of the source, plus ten."""

    longest: int
    ratio: float

    def __call__(self, tokens: int) -> int:
        """Return the most pieces for a source; none for an empty one."""
        return min(self.longest, 10 + math.ceil(self.ratio * tokens)) if tokens else 0


class Seq2SeqHead(nn.Module):
    """Writes texts.

    Args:
        dim: D.
        vocabulary: what texts are written with.
        limit: how long they may be.
        blanks: whether a source token that is copied has a blank before it.
        turns: the most texts that a source has.
        settings: sizes, dropout and search.
    """

    def __init__(
        self,
        dim: int,
        vocabulary: TargetVocabulary,
        *,
        limit: LengthLimit,
        blanks: bool,
        turns: int,
        settings: Seq2SeqHeadSettings,
    ) -> None:
        super().__init__()
        self.settings, self.vocabulary, self.limit = settings, vocabulary, limit
        self.memory = nn.Linear(dim, settings.decoder)
        self.turns = nn.Embedding(turns, settings.decoder) if turns > 1 else None
        self.dropout = Dropout(settings.dropout)
        self.decoder = AttentionDecoder(
            len(vocabulary),
            dim=settings.decoder,
            embedding=settings.embedding,
            dropout=settings.dropout,
            copy=settings.copy,
        )
        self._mark = BLANK if blanks else ""

    def loss(self, hidden: Hidden, examples: Sequence[TextPair]) -> Tensor:
        """Return the mean cross-entropy of the targets' pieces and ends."""
        memory = self._memory(hidden, examples)
        gold = [[*self.target_ids(example), END] for example in examples]
        found, known, wanted = self._forced(gold, memory)
        return self.decoder.loss(found, wanted, known, memory, self.settings.smoothing)

    @torch.no_grad()
    def decode(self, hidden: Hidden, items: Sequence[Any]) -> list[WrittenText]:
        """Return the text for each item; an output does not depend on the other items."""
        memory = self._memory(hidden, items)
        found = self._search(memory, items)
        steps, _, _ = self._forced([[*best[0].tokens, END] for best in found], memory)
        outputs = []
        for row, (item, sequences) in enumerate(zip(items, found, strict=True)):
            written = [tuple(self._piece(token, item) for token in one.tokens) for one in sequences]
            rows, columns = len(written[0]), int(memory.mask[row].sum())
            others = tuple(
                (join(pieces), one.score) for pieces, one in zip(written[1:], sequences[1:], strict=True)
            )
            weights = steps.attention[row, :rows, :columns].cpu()  # (U, T)
            outputs.append(WrittenText(written[0], weights, sequences[0].score, others))
        return outputs

    def target_ids(self, example: TextPair) -> list[int]:
        """Return the pieces of an example's target; a word to copy is V + its place in the source."""
        if not self.settings.copy:
            return self.vocabulary.encode(example.target)
        places = self._places(example)
        ids: list[int] = []
        for word in split(example.target, self.vocabulary.kind):
            copied = places.get(word)
            ids += self.vocabulary.encode_word(word) if copied is None else [copied]
        return ids

    def _places(self, item: Item) -> dict[str, int]:
        """Return what each source token is as a word of the target: a piece, or V + its first place."""
        places: dict[str, int] = {}
        for place, token in enumerate(chain.from_iterable(item.texts)):
            word = self._mark + token
            known = self.vocabulary.id(word)
            places.setdefault(word, len(self.vocabulary) + place if known is None else known)
        return places

    def _piece(self, token: int, item: Item) -> str:
        if token < len(self.vocabulary):
            return self.vocabulary.pieces[token]
        return self._mark + list(chain.from_iterable(item.texts))[token - len(self.vocabulary)]

    def _memory(self, hidden: Hidden, items: Sequence[Item]) -> SourceMemory:
        """Put the texts of each item into one row; a text knows its distance from the last one."""
        vectors = self.dropout(self.memory(hidden.vectors))  # (S, N)
        device = vectors.device
        if self.turns is not None:
            turns = [
                len(item.texts) - 1 - number
                for item in items
                for number, text in enumerate(item.texts)
                for _ in text
            ]
            vectors = vectors + self.turns(torch.tensor(turns, dtype=torch.long, device=device))
        lengths = torch.tensor([sum(map(len, item.texts)) for item in items])
        padded, mask = pad(vectors, lengths)  # (B, T, N), (B, T)
        copies = None
        if self.settings.copy:
            rows = []
            for item in items:
                places = self._places(item)
                said = [places[self._mark + token] for text in item.texts for token in text]
                rows.append(torch.tensor(said, dtype=torch.long))
            copies = pad_sequence(rows, batch_first=True, padding_value=UNKNOWN).to(device)  # (B, T)
        return SourceMemory(padded, mask, copies)

    def _forced(
        self, gold: Sequence[Sequence[int]], memory: SourceMemory
    ) -> tuple[DecoderSteps, Tensor, Tensor]:
        """Run the decoder over given pieces: its steps, where pieces are known (B, U), and these (B, U)."""
        device = memory.mask.device
        wanted = pad_sequence([torch.tensor(ids) for ids in gold], batch_first=True, padding_value=-1)
        wanted = wanted.to(device)  # (B, U)
        known = wanted >= 0
        before = torch.full_like(wanted[:, :1], _BEFORE)
        read = torch.cat([before, wanted[:, :-1].clamp(min=0)], dim=1)  # (B, U)
        return self.decoder(read, memory, self.decoder.begin(memory)), known, wanted

    def _search(self, memory: SourceMemory, items: Sequence[Any]) -> list[list[FoundSequence]]:
        def step(last: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
            return self.decoder.step(last, memory, state, beams=beams)

        settings, state = self.settings, self.decoder.begin(memory)
        beams = 1 if settings.temperature else settings.beam
        most = [self.limit(sum(map(len, item.texts))) for item in items]
        begun = [self.vocabulary.encode(getattr(item, "begin", "")) for item in items]
        rules = Constraints(banned=(UNKNOWN,), least=1, no_repeat=settings.no_repeat)
        if not settings.temperature:
            return beam_search(
                *(step, state),
                begin=_BEFORE,
                end=END,
                most=most,
                beam=settings.beam,
                length_penalty=settings.length_penalty,
                constraints=rules,
                prefixes=begun,
            )
        sampled = sample_sequences(
            *(step, state),
            begin=_BEFORE,
            end=END,
            most=most,
            generators=[_generator(item, settings.sampling_seed) for item in items],
            temperature=settings.temperature,
            top_p=settings.top_p,
            constraints=rules,
            prefixes=begun,
        )
        return [[one] for one in sampled]


def _generator(item: Item, seed: int) -> torch.Generator:
    """Return random numbers that depend on the source and the seed alone."""
    source = crc32(repr(item.texts).encode("utf-8", "surrogatepass"))
    return torch.Generator().manual_seed(combined_seed(seed, source))
