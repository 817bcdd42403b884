"""Read the sentences of a text file, or their tokens."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from elmokit.errors import ConfigError
from elmokit.text.lines import read_lines
from elmokit.text.sentences import sentences_from_lines

Input: TypeAlias = str | list[str]  # a sentence, or its tokens
TextSource: TypeAlias = str | Path | list[str] | tuple[str, ...]  # a file, "-" for standard input, or lines


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
    """Read the sentences of a text.

    Args:
        source: The text.
        tokens: Return each line as a list of tokens, which are separated by white space.
        split: The language whose rules split running text; None if each line is a sentence.
    """
    lines = iter(source) if isinstance(source, list | tuple) else read_lines(source)
    if tokens:
        return (line.split() for line in lines)
    return sentences_from_lines(lines, split) if split else lines
