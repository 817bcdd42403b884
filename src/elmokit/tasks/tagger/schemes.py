"""Tag schemes: spans of tokens written as one tag per token, and back.

scheme   a span of three  of one   "O" is outside; the kind follows the letter and a "-"
BIO      B I I            B
IOB1     I I I            I        B only directly after another span of the same kind
BIOES    B I E            S
BMES     B M E            S
plain    tags without spans, such as parts of speech
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

SpanScheme = Literal["BIO", "IOB1", "BIOES", "BMES"]
Scheme = Literal[SpanScheme, "plain"]

OUTSIDE = "O"
SPAN_SCHEMES: tuple[SpanScheme, ...] = get_args(SpanScheme)

_INSIDE = {"BIO": "I", "IOB1": "I", "BIOES": "I", "BMES": "M"}


class Span(NamedTuple):
    """Tokens [start, end) of one kind."""

    start: int
    end: int
    label: str


def find_spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans in tags of any scheme, legal or not, by conlleval's rules.

    A span starts at B or S, and at any other tag that does not continue the span before it; it ends after E
    or S, before another kind, before O and where the next span starts.

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
    """Return the tags of `length` tokens with these spans, which must be in order and not overlap.

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
    """Convert tags from one scheme to another; plain tags stay as they are."""
    if "plain" in (source, target) or source == target:
        return list(tags)
    return write_spans(find_spans(tags), len(tags), target)


def fitting_schemes(tags: Sequence[str], schemes: Iterable[Scheme]) -> list[Scheme]:
    """Return the schemes that write the spans of these tags in exactly this way."""
    spans = find_spans(tags)
    return [scheme for scheme in schemes if write_spans(spans, len(tags), scheme) == list(tags)]


def has_kind(tag: str) -> bool:
    """Return whether a tag is of a span scheme: O, or a letter, "-" and a kind."""
    letter, dash, kind = tag.partition("-")
    return tag == OUTSIDE or (letter in ("B", "I", "M", "E", "S") and bool(dash and kind))


def is_legal(previous: str, following: str, scheme: Scheme) -> bool:
    """Return whether one tag may follow another; "O" stands before the first and after the last token.

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
    continues = after in ("E", _INSIDE[scheme])
    return continues == is_open and (same or not is_open)


def kind_of(tag: str, scheme: Scheme) -> str:
    """Return the kind of the span that a tag belongs to, or the tag itself where there are no spans."""
    return tag if scheme == "plain" or tag == OUTSIDE else tag.partition("-")[2]
