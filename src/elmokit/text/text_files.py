"""Read the sentences of a text file, or their tokens."""

import logging
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from elmokit.errors import ConfigError
from elmokit.text.lines import read_lines
from elmokit.text.sentences import has_several_sentences, sentences_from_lines
from elmokit.text.table_files import TextColumn, read_columns

logger = logging.getLogger(__name__)

Input: TypeAlias = str | list[str]  # a sentence, or its tokens
# A file, "-" for standard input, a column of a table, or lines.
TextSource: TypeAlias = str | Path | TextColumn | list[str] | tuple[str, ...]

_LOOKED_AT = 50  # lines, to find out whether a text is running text
_FEWEST = 3


def split_language(split: bool | str, language: str | None, *, tokens: bool) -> str | None:
    """Return the language whose rules split the text into sentences, or None if it is not split.

    Args:
        split: Whether to split; or the language of the text.
        language: The language of the model, which is used if `split` is True.
        tokens: Whether each line is a sentence of tokens, which cannot be split.

    Raises:
        ConfigError: The language is missing, or both `split` and `tokens` are given.
    """
    if not split:
        return None
    if tokens:
        raise ConfigError(
            "split is for running text, tokens for text that is split already; choose one of them"
        )
    language = split if isinstance(split, str) else language
    if language is None:
        raise ConfigError("the model does not say its language; pass that of the text, e.g. split='en'")
    return language


def read_texts(source: TextSource, *, tokens: bool = False, split: str | None = None) -> Iterator[Input]:
    """Read the sentences of a text; warn if lines are taken as sentences and most hold several.

    Args:
        source: The text.
        tokens: Return each line as a list of tokens, which are separated by white space.
        split: The language whose rules split running text; None if each line is a sentence.
    """
    lines: Iterator[str]
    if isinstance(source, list | tuple):
        lines = iter(source)
    else:
        lines = _one_column(source) if isinstance(source, TextColumn) else read_lines(source)
        lines = lines if tokens or split else _looked_at(lines)
    if tokens:
        return (line.split() for line in lines)
    return sentences_from_lines(lines, split) if split else lines


def read_documents(source: TextSource, *, tokens: bool = False) -> Iterator[str | list[list[str]]]:
    """Read documents: those of a file have blank lines between them, given texts and cells are one each.

    Args:
        source: The text.
        tokens: Return each document as a list of sentences, one a line, with white space between the tokens.
    """
    if isinstance(source, TextColumn):
        texts = _one_column(source)
    else:
        texts = iter(source) if isinstance(source, list | tuple) else _paragraphs(read_lines(source))
    return ([line.split() for line in text.splitlines()] for text in texts) if tokens else texts


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    for filled, group in groupby(lines, lambda line: bool(line.strip())):
        if filled:
            yield "\n".join(group)


def _one_column(source: TextColumn) -> Iterator[str]:
    return (text for (text,) in read_columns(source.path, text=source.name))


def _looked_at(lines: Iterator[str]) -> Iterator[str]:
    seen = several = 0
    for line in lines:
        if seen < _LOOKED_AT and line.strip():
            seen += 1
            several += has_several_sentences(line)
            if seen == _LOOKED_AT:
                _warn_of_running_text(seen, several)
        yield line
    if _FEWEST <= seen < _LOOKED_AT:
        _warn_of_running_text(seen, several)


def _warn_of_running_text(seen: int, several: int) -> None:
    if several > seen / 2:
        logger.warning(
            "%d of the first %d lines hold several sentences, and each line is taken as one; split=True "
            "splits them",
            several,
            seen,
        )
