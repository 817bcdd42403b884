"""AllenNLP's `sentence_to_index`, JSON of {sentence: "number"}, without a dict of all sentences in memory."""

import io
import json
import re
from array import array

# A JSON string as key, a number in quotes as value, and what separates them from the next.
_PAIR = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*": "([0-9]{1,18})"(?:, |}\Z)')


class SentenceIndexWriter:
    """Builds the JSON as sentences come: a dict of them would take several times their size.

    A repeated sentence becomes a repeated key, of which JSON readers keep the last, as AllenNLP did.
    """

    def __init__(self) -> None:
        self._json = io.BytesIO()  # getvalue does not copy

    def add(self, text: str, number: int) -> None:
        """Add the next sentence."""
        self._json.write(f'{", " if number else "{"}{json.dumps(text)}: "{number}"'.encode())

    def finish(self) -> bytes:
        """Return the JSON."""
        self._json.write(b"}" if self._json.tell() else b"{}")
        return self._json.getvalue()


class SentenceIndex:
    """The sentences of an index by their numbers, repeated keys included; decoded only when asked for."""

    def __init__(self, content: bytes, num_sentences: int) -> None:
        self._json = content.decode()
        self._starts = array("q", [-1]) * num_sentences
        end = 1
        # One after another: to search for the next would take time that grows with the square of the size.
        while pair := _PAIR.match(self._json, end):
            end = pair.end()
            if int(pair[1]) < num_sentences:
                self._starts[int(pair[1])] = pair.start()
        if self._json and end != len(self._json) and self._json != "{}":
            raise ValueError(f"its list of sentences is damaged at character {end:,}")

    def text(self, number: int) -> str | None:
        """Return a sentence; None if the index does not list its number."""
        start = self._starts[number]
        return None if start < 0 else str(json.JSONDecoder().raw_decode(self._json, start)[0])
