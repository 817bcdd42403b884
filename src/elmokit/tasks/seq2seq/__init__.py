"""Sequence to sequence: read one text, write another. What translation and replies share."""

from elmokit.tasks.seq2seq.data import FORMATS, HEADINGS, TextPair, language_of, read_pair
from elmokit.tasks.seq2seq.decoder import AttentionDecoder, DecoderState, DecoderSteps, SourceMemory
from elmokit.tasks.seq2seq.head import (
    LengthLimit,
    Seq2SeqHead,
    Seq2SeqHeadSettings,
    Seq2SeqSettings,
    WrittenText,
)
from elmokit.tasks.seq2seq.prediction import (
    SourceInput,
    WrittenAlternative,
    WrittenPrediction,
    present_written,
    turns_of,
)
from elmokit.tasks.seq2seq.scores import sacrebleu, text_scores
from elmokit.tasks.seq2seq.target_vocabulary import TargetVocabulary, join, split
from elmokit.tasks.seq2seq.writing_task import WritingTask

__all__ = [
    "FORMATS", "HEADINGS", "AttentionDecoder", "DecoderState", "DecoderSteps", "LengthLimit",
    "Seq2SeqHead", "Seq2SeqHeadSettings", "Seq2SeqSettings", "SourceInput", "SourceMemory",
    "TargetVocabulary", "TextPair", "WritingTask", "WrittenAlternative", "WrittenPrediction",
    "WrittenText", "join", "language_of", "present_written", "read_pair", "sacrebleu", "split",
    "text_scores", "turns_of",
]  # fmt: skip
