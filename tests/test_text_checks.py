import pytest

from elmokit.text_checks import check_text

SENTENCE = "the quick brown fox jumps over the lazy dog and runs away"


@pytest.mark.parametrize(
    ("lines", "lowercase", "words"),
    [
        (
            ["Fine.", "Tom &#39;s", "A &LT; B"],
            False,
            "HTML entities, first '&#39;' in line 2 (2 lines in all)",
        ),
        ([SENTENCE] * 10, False, "0 capitals among 460 letters: the text seems to be lower-cased"),
        (["T h e c a t s a t o n"], False, "11 of 11 words are single letters: a bare string was taken"),
    ],
)
def test_the_classic_mistakes(lines, lowercase, words):
    (message,) = check_text(lines, lowercase=lowercase)
    assert message.startswith(words)


@pytest.mark.parametrize(
    ("lines", "lowercase"),
    [
        ([SENTENCE] * 10, True),
        ([SENTENCE], False),
        (["我 们 是 中 国 人 , 你 们 是 谁 ?"] * 50, False),
        (["AT&T; R&D", "I, a b."], False),
        ([], False),
    ],
)
def test_what_is_none(lines, lowercase):
    assert check_text(lines, lowercase=lowercase) == []
