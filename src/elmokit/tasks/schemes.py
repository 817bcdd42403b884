"""Tag schemes: spans of tokens written as one tag a token, and back.

scheme   a span of three  of one   "O" is outside; a kind follows the letter after a "-"
BIO      B I I            B
IOB1     I I I            I        B only where a span follows at once on another of its kind
BIOES    B I E            S
BMES     B M E            S
plain    tags without spans, such as parts of speech
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Scheme = Literal["BIO", "IOB1", "BIOES", "BMES", "plain"]

OUTSIDE = "O"
SPAN_SCHEMES: tuple[Scheme, ...] = ("BIO", "IOB1", "BIOES", "BMES")

_INSIDE = {"BIO": "I", "IOB1": "I", "BIOES": "I", "BMES": "M"}


class Span(NamedTuple):
    """Tokens [start, end) of one kind."""

    start: int
    end: int
    label: str


def find_spans(tags: Sequence[str]) -> list[Span]:
    """The spans in tags of any scheme, legal or not, by conlleval's rules.

    A span begins at B or S, and at any other tag that does not go on with the span before it; it ends after E
    or S, before another kind, before O and where the next begins.

    Example:
        >>> [tuple(span) for span in find_spans(["I-PER", "I-PER", "I-LOC", "O", "B-LOC", "B-LOC"])]
        [(0, 2, 'PER'), (2, 3, 'LOC'), (4, 5, 'LOC'), (5, 6, 'LOC')]
    """
    spans: list[Span] = []
    start, label, open_ = 0, "", False
    for place, tag in enumerate([*tags, OUTSIDE]):
        letter, _, kind = tag.partition("-")
        if open_ and not (letter in "IME" and kind == label):
            spans.append(Span(start, place, label))
            open_ = False
        if letter == OUTSIDE:
            continue
        if not open_:
            start, label = place, kind
        open_ = letter in "BIM"
        if not open_:
            spans.append(Span(start, place + 1, label))
    return spans


def write_spans(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """The tags of `length` tokens with these spans, which do not overlap and are in order.

    Example:
        >>> write_spans([Span(0, 1, "X"), Span(1, 3, "X")], 4, "BIOES")
        ['S-X', 'B-X', 'E-X', 'O']
    """
    tags = [OUTSIDE] * length
    for start, end, label in spans:
        inside = _INSIDE[scheme]
        letters = ["B"] + [inside] * (end - start - 1)
        if scheme == "IOB1":
            follows = start > 0 and tags[start - 1].partition("-")[2] == label
            letters[0] = "B" if follows else "I"
        elif scheme != "BIO":
            letters[-1] = "S" if end - start == 1 else "E"
        tags[start:end] = [f"{letter}-{label}" for letter in letters]
    return tags


def convert(tags: Sequence[str], source: Scheme, target: Scheme) -> list[str]:
    """Tags of one scheme in another; plain ones stay as they are."""
    if "plain" in (source, target) or source == target:
        return list(tags)
    return write_spans(find_spans(tags), len(tags), target)


def fitting_schemes(tags: Sequence[str], schemes: Iterable[Scheme]) -> list[Scheme]:
    """Those of the schemes that would write these tags so."""
    spans = find_spans(tags)
    return [scheme for scheme in schemes if write_spans(spans, len(tags), scheme) == list(tags)]


def has_kind(tag: str) -> bool:
    """Whether it is a tag of a span scheme: O, or a letter, "-" and a kind."""
    letter, dash, kind = tag.partition("-")
    return tag == OUTSIDE or (letter in ("B", "I", "M", "E", "S") and bool(dash and kind))


def is_legal(previous: str, following: str, scheme: Scheme) -> bool:
    """Whether one tag may follow another; before the first and after the last token stands "O".

    Example:
        >>> is_legal("O", "I-PER", "BIO"), is_legal("O", "I-PER", "IOB1"), is_legal("B-PER", "O", "BIOES")
        (False, True, False)
    """
    if scheme == "plain":
        return True
    (before, _, kind_before), (after, _, kind_after) = previous.partition("-"), following.partition("-")
    same = kind_before == kind_after and before != OUTSIDE
    if scheme == "BIO":
        return after != "I" or same
    if scheme == "IOB1":
        return after != "B" or same
    is_open = before in ("B", _INSIDE[scheme])
    goes_on = after in ("E", _INSIDE[scheme])
    return goes_on == is_open and (same or not is_open)
