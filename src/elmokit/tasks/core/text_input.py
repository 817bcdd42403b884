"""One text to predict labels for, and predictions as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from elmokit.embed import Text, refuse_unless
from elmokit.text import Token, Tokenizer, tokens_from_list


@dataclass(frozen=True)
class TextInput:
    """A text with its tokens and their places."""

    text: str
    tokens: list[Token]

    @classmethod
    def read(cls, given: Text, tokenize: Tokenizer) -> "TextInput":
        """Tokenise a string; a list of tokens is taken as it is, and joined by blanks.

        Raises:
            ConfigError: it is neither.
        """
        if isinstance(given, str):
            return cls(given, tokenize(given))
        refuse_unless(given, Sequence, "a string or a list of tokens")
        tokens = tokens_from_list(given)
        return cls(" ".join(given), tokens)

    @property
    def texts(self) -> list[list[str]]:
        """The tokens of the one text."""
        return [[token.text for token in self.tokens]]

    def fields(self) -> dict[str, Any]:
        """Return text, tokens and offsets, which most predictions have."""
        offsets = [(token.start, token.end) for token in self.tokens]
        return {"text": self.text, "tokens": self.texts[0], "offsets": offsets}


def plain_data(prediction: Any) -> dict[str, Any]:  # noqa: ANN401 (any dataclass)
    """Return the fields of a dataclass for JSON, numbers rounded to four places."""
    return {name: _rounded(value) for name, value in asdict(prediction).items()}


def _rounded(value: Any) -> Any:  # noqa: ANN401 (plain data)
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value
