"""Running text into sentences (first version; rules follow)."""

from collections.abc import Iterable, Iterator


def split_sentences(text: str, language: str) -> list[tuple[int, int]]:
    """Placeholder."""
    raise NotImplementedError


def sentences_from_lines(lines: Iterable[str], language: str) -> Iterator[str]:
    """Placeholder."""
    raise NotImplementedError
