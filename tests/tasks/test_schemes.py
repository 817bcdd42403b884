"""Tag schemes: spans to tags and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.tasks.tagger.schemes import (
    SPAN_SCHEMES,
    Span,
    convert,
    find_spans,
    fitting_schemes,
    has_kind,
    is_legal,
    write_spans,
)

SPANS = [Span(0, 1, "X"), Span(1, 4, "X"), Span(4, 6, "Y"), Span(7, 8, "Y")]
WRITTEN = {
    "BIO": "B-X B-X I-X I-X B-Y I-Y O B-Y",
    "IOB1": "I-X B-X I-X I-X I-Y I-Y O I-Y",
    "BIOES": "S-X B-X I-X E-X B-Y E-Y O S-Y",
    "BMES": "S-X B-X M-X E-X B-Y E-Y O S-Y",
}


@st.composite
def spans(draw):
    """Spans of a sentence of ten tokens."""
    cuts = sorted(draw(st.sets(st.integers(0, 10), max_size=8)))
    kinds = draw(st.lists(st.sampled_from(["X", "Y", "Z-1", None]), min_size=8, max_size=8))
    pairs = zip(cuts[:-1], cuts[1:], kinds, strict=False)
    return [Span(start, end, kind) for start, end, kind in pairs if kind is not None]


@pytest.mark.parametrize("scheme", SPAN_SCHEMES)
def test_by_hand(scheme):
    assert write_spans(SPANS, 8, scheme) == WRITTEN[scheme].split()
    assert find_spans(WRITTEN[scheme].split()) == SPANS


@pytest.mark.parametrize("scheme", SPAN_SCHEMES)
@given(spans=spans())
def test_what_is_written_is_read_and_legal(scheme, spans):
    tags = write_spans(spans, 10, scheme)
    assert find_spans(tags) == spans
    assert scheme in fitting_schemes(tags, SPAN_SCHEMES)
    assert all(is_legal(*pair, scheme) for pair in zip(["O", *tags], [*tags, "O"], strict=True))
    assert all(map(has_kind, tags))


@pytest.mark.parametrize("scheme", SPAN_SCHEMES)
@given(data=st.data())
def test_tags_are_legal_if_and_only_if_they_are_written_so(scheme, data):
    letters = sorted({tag[0] for tag in WRITTEN[scheme].split()} - {"O"})
    known = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
    tags = data.draw(st.lists(st.sampled_from(known), max_size=6))
    legal = all(is_legal(*pair, scheme) for pair in zip(["O", *tags], [*tags, "O"], strict=True))
    assert legal == (scheme in fitting_schemes(tags, SPAN_SCHEMES))


@given(spans=spans(), source=st.sampled_from(SPAN_SCHEMES), target=st.sampled_from(SPAN_SCHEMES))
def test_convert(spans, source, target):
    assert convert(write_spans(spans, 10, source), source, target) == write_spans(spans, 10, target)


def test_plain_tags_stay():
    assert convert(["NOUN", "X"], "plain", "BIOES") == ["NOUN", "X"]
    assert is_legal("NOUN", "VERB", "plain")


@pytest.mark.parametrize("tag", ["B", "B-", "X-PER", "NOUN", "", "-PER", "o"])
def test_tags_of_no_scheme(tag):
    assert not has_kind(tag)
