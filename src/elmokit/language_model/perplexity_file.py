"""The perplexity of a file, and on request the score of each of its sentences."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from elmokit.base import Advance, text_progress
from elmokit.errors import DataError
from elmokit.language_model.lm import LanguageModel
from elmokit.language_model.results import Perplexity, SentenceScore
from elmokit.text import read_texts, split_language

_COLUMNS = ("sentence", "words", "forward", "backward", "perplexity", "tokens")


def perplexity_file(
    model: LanguageModel,
    source: str | Path,
    *,
    tokens: bool = False,
    split: bool | str = False,
    sentences: str | Path | None = None,
    progress: bool = False,
) -> Perplexity:
    """How well a model predicts a text file.

    Args:
        model: the language model.
        source: a text file, plain or compressed, a sentence a line; "-" is standard input. Blank lines are
            passed over.
        tokens: lines are tokens between blanks, to be taken as they are.
        split: the text is running text, to be split into sentences first. A language code says by whose
            rules; True takes the language of the model's tokenizer.
        sentences: a file to write, one line for each sentence, columns parted by tabs and named in the first
            line: number (of the line, where the text is not split), words, log-probability forward and
            backward, perplexity, tokens.
        progress: show progress on standard error, if that is a terminal.

    Raises:
        ConfigError: `split` and `tokens` exclude each other, or the language is not known.
        DataError: the text cannot be read or has no words, or the file cannot be written.
    """
    if sentences is not None and str(source) != "-" and Path(sentences).resolve() == Path(source).resolve():
        raise DataError(f"{sentences} is the text itself; choose another file for its scores")
    language = split_language(split, model.language, tokens=tokens)
    texts = read_texts(source, tokens=tokens, split=language)
    with text_progress(source, shown=progress) as advance:
        scores = _watched(model.stream(texts), advance)
        if sentences is None:
            return Perplexity.of(scores)
        try:
            with _replaced_when_whole(Path(sentences)) as file:
                file.write("\t".join(_COLUMNS) + "\n")
                return Perplexity.of(_written(scores, file))
        except OSError as error:
            raise DataError(
                f"{sentences}: cannot be written ({error.strerror}); choose a file you may write"
            ) from error


@contextmanager
def _replaced_when_whole(path: Path) -> Iterator[TextIO]:
    """A file that takes the place of what is there once it is whole; a pipe is written as it goes."""
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as file:
            yield file
        return
    path = path.resolve()
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with aside.open("x", encoding="utf-8") as file:
        try:
            yield file
        except BaseException:
            aside.unlink()
            raise
    aside.replace(path)


def _watched(scores: Iterator[SentenceScore], advance: Advance) -> Iterator[SentenceScore]:
    for score in scores:
        advance(score.text, len(score.tokens))
        yield score


def _written(scores: Iterator[SentenceScore], file: TextIO) -> Iterator[SentenceScore]:
    for number, score in enumerate(scores, start=1):
        if score.tokens:
            file.write(_row(number, score))
        yield score


def _row(number: int, score: SentenceScore) -> str:
    numbers = f"{score.forward_total:.4f}\t{score.backward_total:.4f}\t{score.perplexity:.4f}"
    # A tokenizer's tokens hold no white space, those of `--tokens` neither: tabs stay where they belong.
    return f"{number}\t{len(score.tokens)}\t{numbers}\t{' '.join(score.tokens)}\n"
