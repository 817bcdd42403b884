import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.corpus.cleaning import clean


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("AT&amp;T &quot;x&quot; &#233; &#xE9; &eacute;", 'AT&T "x" é é é'),
        ("a&nbsp;b &#8217;", "a b ’"),
        ("AT&T, R&D; ?a=1&copy=2 &nosuch;", "AT&T, R&D; ?a=1&copy=2 &nosuch;"),  # no entities
        ("&amp;lt;", "&lt;"),  # escaped twice: once is undone
        ("a&#10;b", "a b"),  # would end a line
        ("cafe\u0301", "café"),
        ("a\tb\u3000c\u2028d\x85e\rf", "a b c d e f"),
        ("a\x00b\x07c\x7fd\x9fe\ufefff\ud800g", "abcdefg"),
        ("क\u200dष", "क\u200dष"),  # joiners are part of the spelling
        ("two\nlines", "two\nlines"),
    ],
)
def test_clean(raw, cleaned):
    assert clean(raw) == cleaned


@given(st.text(alphabet=st.characters(), max_size=40))
def test_clean_text_has_no_controls_and_as_many_lines(text):
    cleaned = clean(text)
    assert cleaned.count("\n") == text.count("\n")
    assert all(unicodedata.category(character) not in ("Cc", "Cs") for character in cleaned.replace("\n", ""))
    assert unicodedata.is_normalized("NFC", cleaned)
    if "&" not in cleaned:
        assert clean(cleaned) == cleaned
