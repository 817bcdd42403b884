"""Measure a language model on a file: its perplexity, the score of each sentence, and filled gaps."""

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from elmokit.base import Advance, output_file, text_progress
from elmokit.embed import Text
from elmokit.errors import DataError
from elmokit.language_model.gap_filling import GapAccuracy
from elmokit.language_model.lm import LanguageModel
from elmokit.language_model.results import Perplexity, SentenceScore
from elmokit.text import TextSource, read_texts, split_language

_COLUMNS = ("sentence", "words", "forward", "backward", "perplexity", "tokens")


def perplexity_file(
    model: LanguageModel,
    source: TextSource,
    *,
    tokens: bool = False,
    split: bool | str = False,
    sentences: str | Path | None = None,
    progress: bool = False,
) -> Perplexity:
    """Measure how well a model predicts a text file.

    Args:
        model: the language model.
        source: a text file, plain or compressed, one sentence a line; "-" is standard input; or a list
            of lines. Blank lines are skipped.
        tokens: each line holds tokens separated by spaces, which are used as they are.
        split: the file holds running text, to be split into sentences first. A language code chooses the
            rules; True uses the language of the model's tokenizer.
        sentences: a file to write with one line per sentence and tab-separated columns, named in the first
            line: number (of the line, unless the text is split), words, log-probability forward and
            backward, perplexity, tokens.
        progress: show progress on standard error, if that is a terminal.

    Raises:
        ConfigError: both `split` and `tokens` are given, or the language is not known.
        DataError: the text cannot be read or has no words, or the file cannot be written.
    """
    text = None if isinstance(source, list | tuple) else Path(str(source)).resolve()
    if sentences is not None and Path(sentences).resolve() == text:
        raise DataError(f"{sentences} is the text itself; choose another file for its scores")
    language = split_language(split, model.language, tokens=tokens)
    texts = read_texts(source, tokens=tokens, split=language)
    with text_progress(source, shown=progress) as advance:
        scores = _watched(model.stream(texts), advance)
        if sentences is None:
            return Perplexity.of(scores)
        with output_file(Path(sentences)) as draft, draft.open("w", encoding="utf-8") as file:
            file.write("\t".join(_COLUMNS) + "\n")
            return Perplexity.of(_written(scores, file))


def gaps_file(
    model: LanguageModel,
    source: TextSource,
    *,
    tokens: bool = False,
    split: bool | str = False,
    progress: bool = False,
) -> GapAccuracy:
    """Measure how often the words of a text file are found again, each hidden in turn.

    The arguments are those of `perplexity_file`.

    Raises:
        ConfigError: both `split` and `tokens` are given, or the language is not known.
        DataError: the text cannot be read or has no words.
    """
    texts = read_texts(source, tokens=tokens, split=split_language(split, model.language, tokens=tokens))
    with text_progress(source, shown=progress) as advance:
        return model.gaps(_read(texts, advance))


def _read(texts: Iterator[Text], advance: Advance) -> Iterator[Text]:
    for text in texts:
        advance(text if isinstance(text, str) else " ".join(text), 0)
        yield text


def _watched(scores: Iterator[SentenceScore], advance: Advance) -> Iterator[SentenceScore]:
    for score in scores:
        advance(score.text, len(score.tokens))
        yield score


def _written(scores: Iterator[SentenceScore], file: TextIO) -> Iterator[SentenceScore]:
    for number, score in enumerate(scores, start=1):
        if score.tokens:
            totals = (score.forward_total, score.backward_total, score.perplexity)
            numbers = "\t".join(f"{value:.4f}" for value in totals)
            # No token contains white space, so the columns stay apart.
            file.write(f"{number}\t{len(score.tokens)}\t{numbers}\t{' '.join(score.tokens)}\n")
        yield score
