"""The sentences of a text file, or their tokens."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from elmokit.errors import ConfigError
from elmokit.text.lines import read_lines
from elmokit.text.sentences import sentences_from_lines

Input: TypeAlias = str | list[str]  # a sentence, or its tokens
TextSource: TypeAlias = str | Path | list[str] | tuple[str, ...]  # a file, "-" for standard input, or lines


def split_language(split: bool | str, language: str | None, *, tokens: bool) -> str | None:
    """Whose rules split the text into sentences; None if it is not to be split.

    Args:
        split: whether to split, or a language code.
        language: that of the model, which is taken where `split` is True.
        tokens: whether lines are tokens between blanks, which are sentences already.

    Raises:
        ConfigError: the language is not known, or the lines are not to be split.
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
    """The sentences of a file (a line each, or by the rules of the language `split`), or their tokens."""
    lines = iter(source) if isinstance(source, list | tuple) else read_lines(source)
    if tokens:
        return (line.split() for line in lines)
    return sentences_from_lines(lines, split) if split else lines
