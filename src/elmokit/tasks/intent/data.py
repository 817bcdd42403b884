"""Texts with an intent and slots, and their formats.

jsonl      one object per line: "text" or "tokens"; "intent" (or "label"); "tags", or "slots" by their values
seq        a folder with seq.in, seq.out and label
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import DataError
from elmokit.tasks.classifier import LabelledText, json_labels
from elmokit.tasks.core import Formats, Tokenize, json_lines, parallel_lines
from elmokit.tasks.tagger import TaggedText, json_tags, tagged_text


@dataclass(frozen=True)
class IntentText:
    """A text with the tags of its slots and with its intent."""

    slots: TaggedText
    intent: LabelledText

    @property
    def texts(self) -> tuple[tuple[str, ...]]:
        """The one text."""
        return self.slots.texts

    @property
    def where(self) -> str:
        """The file and line."""
        return self.slots.where


def _with_intent(slots: TaggedText, labels: Sequence[str]) -> IntentText:
    if len(labels) != 1:
        raise DataError(f"{slots.where}: expected one intent, found {', '.join(labels) or 'none'}")
    return IntentText(slots, LabelledText(slots.tokens, tuple(labels), slots.where))


def _read_jsonl(path: Path, tokenize: Tokenize) -> Iterator[IntentText]:
    for where, data, tokens in json_lines(path, tokenize):
        yield _with_intent(json_tags(data, tokens, where), json_labels(data, where))


def _read_seq(folder: Path, tokenize: Tokenize) -> Iterator[IntentText]:
    for where, (words, tags, label) in parallel_lines(folder, ("seq.in", "seq.out", "label")):
        if words.strip():
            labels = [label.strip()] if label.strip() else []
            yield _with_intent(tagged_text(words.split(), tags.split(), where), labels)


FORMATS = Formats({"jsonl": _read_jsonl, "seq": _read_seq}, {".jsonl": "jsonl", "/seq.in": "seq"})
