"""What all tasks that write a text have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from elmokit.base import bounded
from elmokit.tasks.core import Scores
from elmokit.tasks.seq2seq.data import TextPair
from elmokit.tasks.seq2seq.head import LengthLimit, Seq2SeqHead, WrittenText
from elmokit.tasks.seq2seq.prediction import SourceInput, WrittenPrediction, present_written
from elmokit.tasks.seq2seq.scores import sacrebleu, text_scores
from elmokit.tasks.seq2seq.target_vocabulary import TargetVocabulary
from elmokit.text import Tokenizer, count_scripts

_SHARE = 0.99  # of the training targets are not longer than what is written at most
_LOOKED_AT = 1000
_MOST_PIECES, _MOST_RATIO = 10_000, 1000.0  # so that no search is without end, whatever a file says


@dataclass(frozen=True)
class WritingTask:
    """A source to read and a text to write; see `Task`.

    Attributes:
        settings: of encoders, head and training.
        pieces: what texts are written with; see `TargetVocabulary`.
        merges: how characters become subwords.
        blanks: whether the targets have blanks between their words.
        longest: pieces of the longest text that is written.
        ratio: pieces for each token of the source, at most, after the first ten.
        words: sacrebleu's tokenizer for these targets.
    """

    settings: Any  # of the task's own type, with a `Seq2SeqHeadSettings` as its head
    pieces: tuple[str, ...] = ()
    merges: str = ""
    blanks: bool = True
    longest: int = bounded(1, least=1, most=_MOST_PIECES)
    ratio: float = bounded(1.0, least=0, most=_MOST_RATIO)
    words: Literal["13a", "zh"] = "13a"

    @property
    def turns(self) -> int:
        """The most texts that a source has."""
        return 1

    @classmethod
    def fit(cls, settings: Any, examples: Sequence[TextPair]) -> tuple[Self, list[TextPair]]:  # noqa: ANN401
        """Make the vocabulary of the targets, and find out how long they are.

        Raises:
            MissingExtra: sacrebleu, by which each epoch is scored, or tokenizers is not installed.
        """
        sacrebleu()
        examples = cls(settings).prepare(examples, allow_unseen=False)
        targets = [example.target for example in examples]
        vocabulary = TargetVocabulary.fit(settings.head.target, targets, settings.head.vocabulary)
        lengths = np.array([len(vocabulary.encode(target)) for target in targets])
        sources = np.array([sum(map(len, example.texts)) for example in examples])
        ratios = np.maximum(lengths - 10, 0) / np.maximum(sources, 1)
        scripts = count_scripts("".join(targets[:_LOOKED_AT]))
        blanks = np.mean([len(target.split()) > 1 for target in targets])
        task = cls(
            settings,
            vocabulary.pieces,
            vocabulary.merges,
            blanks=bool(blanks >= 0.5),
            longest=min(int(np.quantile(lengths, _SHARE, method="higher")) + 10, _MOST_PIECES),
            ratio=min(float(np.quantile(ratios, _SHARE, method="higher")) + 1.0, _MOST_RATIO),
            words="zh" if scripts["Chinese"] > sum(scripts.values()) / 2 else "13a",
        )
        return task, examples

    def prepare(self, examples: Sequence[TextPair], *, allow_unseen: bool) -> list[TextPair]:
        """Leave out all but the last texts of each source."""
        return [example.last(self.turns) for example in examples]

    def make_head(self, dim: int, examples: Sequence[TextPair] = ()) -> Seq2SeqHead:
        """Build the decoder with its attention."""
        head = self.settings.head
        return Seq2SeqHead(
            dim,
            TargetVocabulary(head.target, self.pieces, self.merges),
            limit=LengthLimit(self.longest, self.ratio),
            blanks=self.blanks,
            turns=self.turns,
            settings=head,
        )

    def score(
        self, examples: Sequence[TextPair], outputs: Sequence[WrittenText], *, strict: bool = False
    ) -> Scores:
        """Return BLEU and chrF."""
        references = [example.target for example in examples]
        return text_scores([output.text for output in outputs], references, words=self.words)

    def describe(self, example: TextPair, output: WrittenText) -> tuple[str, str]:
        """Return the reference and what was written."""
        return example.target, output.text

    def read_input(self, given: Any, tokenize: Tokenizer) -> SourceInput:  # noqa: ANN401 (see `SourceInput`)
        """Return a source, with its last texts alone."""
        source = SourceInput.read(given, tokenize)
        return SourceInput(source.parts[-self.turns :], source.begin)

    def present(self, item: SourceInput, output: WrittenText) -> WrittenPrediction:
        """Return what was written beside its source."""
        return present_written(item, output)
