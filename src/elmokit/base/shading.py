"""A text whose words have colours by a number from -1 to 1: for a terminal, and as HTML.

Blue speaks for something and orange against it: a pair of colours that nearly everybody can tell apart.
"""

from collections.abc import Callable, Iterable
from html import escape
from typing import NamedTuple

# Of the 256 colours of a terminal, from faint to strong.
_FOR, _AGAINST = (195, 153, 117, 75, 33), (230, 223, 216, 209, 202)
_FAINTEST = 0.1


class Shade(NamedTuple):
    """The part `text[start:end]` of a text, the strength of its colour (-1 to 1), and a note on it."""

    start: int
    end: int
    strength: float
    note: str = ""


def shaded_for_terminal(text: str, shades: Iterable[Shade]) -> str:
    r"""Return the text with colours of a terminal behind its words.

    Example:
        >>> shaded_for_terminal("a film", [Shade(2, 6, 1.0)])
        'a \x1b[48;5;33;38;5;16mfilm\x1b[0m'
    """

    def mark(word: str, shade: Shade) -> str:
        tints = _FOR if shade.strength > 0 else _AGAINST
        step = min(len(tints) - 1, int(abs(shade.strength) * len(tints)))
        return f"\x1b[48;5;{tints[step]};38;5;16m{word}\x1b[0m"

    return _marked(text, shades, mark, str)


def shaded_html(text: str, shades: Iterable[Shade]) -> str:
    """Return the text as HTML with colours behind its words; the note of a word shows when it is pointed at.

    Example:
        >>> shaded_html("a <b>", [Shade(2, 5, 0.5, "+1.2")])
        'a <span style="background:rgb(51 119 255/.50)" title="+1.2">&lt;b&gt;</span>'
    """

    def mark(word: str, shade: Shade) -> str:
        colour = "51 119 255" if shade.strength > 0 else "255 119 0"
        opacity = f"{min(1.0, abs(shade.strength)):.2f}".removeprefix("0")
        note = f' title="{escape(shade.note)}"' if shade.note else ""
        return f'<span style="background:rgb({colour}/{opacity})"{note}>{escape(word)}</span>'

    return _marked(text, shades, mark, escape)


def _marked(
    text: str, shades: Iterable[Shade], mark: Callable[[str, Shade], str], other: Callable[[str], str]
) -> str:
    """Return the text with its words marked; words without a visible colour are left as they are."""
    shown, at = [], 0
    for shade in sorted(shades):
        if abs(shade.strength) >= _FAINTEST and shade.start >= at:
            shown += [other(text[at : shade.start]), mark(text[shade.start : shade.end], shade)]
            at = shade.end
    return "".join([*shown, other(text[at:])])
