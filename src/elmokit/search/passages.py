"""Cut documents into sentences, and sentences into passages that overlap."""

from dataclasses import dataclass

from elmokit.errors import ConfigError
from elmokit.text import split_sentences

_LONGEST_SENTENCE = 2000  # characters; what is longer is no sentence and is cut at a space


@dataclass(frozen=True, kw_only=True)
class PassageSettings:
    """How documents are cut.

    Attributes:
        characters: A passage ends with the sentence that reaches so many characters, unless less than half as
            many are left.
        overlap: How many sentences at the end of a passage begin the next one, too.
    """

    characters: int = 1500
    overlap: int = 1

    def __post_init__(self) -> None:
        if self.characters < 1 or self.overlap < 0:
            raise ConfigError(f"passages need at least 1 character and an overlap of 0 or more, found {self}")


def cut_sentences(text: str, language: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences of a document; none is longer than 2,000 characters."""
    spans: list[tuple[int, int]] = []
    for start, end in split_sentences(text, language):
        while end - start > _LONGEST_SENTENCE:
            cut = text.rfind(" ", start + _LONGEST_SENTENCE // 2, start + _LONGEST_SENTENCE)
            cut = cut if cut > 0 else start + _LONGEST_SENTENCE
            spans.append((start, cut))
            start = cut
        spans.append((start, end))
    return spans


def group_passages(sentences: list[tuple[int, int]], settings: PassageSettings) -> list[tuple[int, int]]:
    """Return the first sentence of each passage, and the one after its last.

    Example:
        >>> group_passages([(0, 5), (6, 12), (13, 20), (21, 30)], PassageSettings(characters=10, overlap=1))
        [(0, 2), (1, 3), (2, 4)]
    """
    passages = []
    first = 0
    for number, (_, end) in enumerate(sentences):
        last = number + 1 == len(sentences)
        full = end - sentences[first][0] >= settings.characters
        if last or (full and sentences[-1][1] - end >= settings.characters / 2):
            passages.append((first, number + 1))
            if not last:
                first = max(first + 1, number + 1 - settings.overlap)
    return passages
