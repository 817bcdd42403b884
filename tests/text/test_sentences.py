import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError
from elmokit.text import sentences_from_lines, split_sentences

HARD = [
    "Dr. J. R. Smith Jr. of Acme Inc. paid $3.50 to Mr. Jones at 5 p.m. on Jan. 5.",
    "He works in the U.S. Senate.",
    "She lives in the U.S.",
    "The rate rose by 2.5 percent (see Fig. 3 and No. 7).",
    '"Is it true?" he asked.',
    "“It is.”",
    "Well... maybe not!",
    "What?!",
    "It ended in 1999.",
    "The site example.com is down, e.g. for repairs, etc. but it will be back.",
    "He said (quietly.)",
    "Wikipedia says so.[1]",
    "Thanks :)",
    "And then... nothing.",
]
HARD_LINES = [
    "The committee, chaired by Prof. A. B. Lee, met at 10 a.m. in St. Louis.",
    "It heard from Gen. Grant et al. about the costs vs. the benefits.",
    "“Why now?” asked one member.",
    "Nobody knew.",
]


def sentences(text, language="en"):
    return [text[start:end] for start, end in split_sentences(text, language)]


@pytest.mark.parametrize("paragraph", [HARD, HARD_LINES])
def test_hard_english_paragraphs(paragraph):
    assert sentences(" ".join(paragraph)) == paragraph


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", ["Am 3. Oktober kam Dr. Maier bzw. Frau Kurz.", "„Wo?“, fragte er.", "Ende."]),
        ("fr", ["M. Dupont est là.", "« Oui ! »", "Il part."]),
        ("ru", ["В 1990 г. Москва выросла.", "Почему?", "Никто не знает."]),
        ("hi", ["यह एक वाक्य है।", "यह दूसरा है।"]),
        ("el", ["Τι κάνεις;", "Καλά."]),
        ("es", ["¿Qué tal?", "¡Bien!", "La Sra. López salió."]),
    ],
)
def test_other_languages(language, expected):
    assert sentences(" ".join(expected), language) == expected


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("zh", ["他说：“走吧！”", "然后走了……", "真的？！", "价格是3.5元；", "好。", "（完。）"]),
        ("zh", ["“你好！”，他说。", "再见"]),
        ("ja", ["「はい。」", "そうです。", "本当？"]),
    ],
)
def test_chinese_and_japanese(language, expected):
    assert sentences("".join(expected), language) == expected


def test_only_a_blank_line_ends_a_paragraph():
    assert sentences("A heading\n \nIt goes\non. And\r\n\r\nends") == [
        "A heading",
        "It goes\non.",
        "And",
        "ends",
    ]


@given(
    st.text(st.sampled_from("aB1 .!?\"')(\n。！…：”中'[]:"), max_size=80),
    st.sampled_from(["en", "de", "zh", "th"]),
)
def test_nothing_but_white_space_is_left_out(text, language):
    position = 0
    for start, end in split_sentences(text, language):
        assert text[position:start].strip() == ""
        assert start < end
        assert text[start:end] == text[start:end].strip()
        position = end
    assert text[position:].strip() == ""


def test_unknown_language():
    with pytest.raises(ConfigError, match="'xx' is not known"):
        split_sentences("a", "xx")
    with pytest.raises(ConfigError, match="'xx' is not known"):
        list(sentences_from_lines([], "xx"))


@pytest.mark.parametrize(
    "piece", [". ", ".", "a. ", "A. ", '." ', "etc. A", "。”", "\n", " ", "\n\n", " :)", "x.[1] "]
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_long_runs_come_back(piece, language):
    """Work that grows with the square of the length would take hours here."""
    text = "x" + piece * (200_000 // len(piece))
    spans = split_sentences(text, language)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())


def test_wrapped_lines_are_joined():
    lines = [
        "The rain fell on\n",
        "Mr.\n",
        "Smith. It did\n",
        "not stop.\n",
        "\n",
        "A heading\n",
        "\n",
        "End.\n",
    ]
    assert list(sentences_from_lines(lines, "en")) == [
        "The rain fell on Mr. Smith.",
        "It did not stop.",
        "A heading",
        "End.",
    ]


def test_chinese_lines_are_joined_without_a_blank():
    assert list(sentences_from_lines(["今天天", "气很好。使用 deep", "learning 的", "人"], "zh")) == [
        "今天天气很好。",
        "使用 deep learning 的人",
    ]


def test_a_text_without_blank_lines_streams():
    given_out = []

    def endless():
        for number in range(100_000):
            assert number < 10_000, "nothing came out of the first ten thousand lines"
            yield f"This is the sentence with number {number}. It goes"
            yield "on here."

    for sentence in sentences_from_lines(endless(), "en"):
        given_out.append(sentence)
        if len(given_out) == 2000:
            break
    assert given_out[:2] == ["This is the sentence with number 0.", "It goes on here."]
    assert given_out[-1] == "It goes on here."


def test_a_text_without_any_sentence_end_stays_bounded():
    pieces = list(sentences_from_lines(("word " * 20 for _ in range(5_000)), "en"))
    assert max(map(len, pieces)) < 110_000
    assert sum(piece.count("word") for piece in pieces) == 100_000
