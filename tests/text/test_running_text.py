"""Lines that hold several sentences are noticed, where each line is taken as one."""

import pytest

from elmokit.text import has_several_sentences, read_texts

PARAGRAPH = "The bank opened. It was late in the evening. Nobody came."


@pytest.fixture
def warned(tmp_path, caplog):
    def warned(lines, **settings):
        (tmp_path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        caplog.clear()
        list(read_texts(tmp_path / "text.txt", **settings))
        return [record.getMessage() for record in caplog.records]

    return warned


def test_running_text_is_noticed_once(warned):
    (message,) = warned([PARAGRAPH, ""] * 200)
    assert message.startswith("50 of the first 50 lines hold several sentences")
    assert "split=True" in message
    assert len(warned([PARAGRAPH] * 3)) == 1


@pytest.mark.parametrize("settings", [{"split": "en"}, {"tokens": True}])
def test_a_text_that_is_split_or_tokenised_is_not(warned, settings):
    assert warned([PARAGRAPH] * 100, **settings) == []


def test_sentences_are_not(warned):
    assert warned(["The bank opened.", "Dr. Smith came in.", PARAGRAPH] * 30) == []
    assert warned([PARAGRAPH]) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("He left early! “Nobody came.”", True),
        ("银行开门了。没有人来。", True),
        ("银行开门了。", False),
        ("“银行开门了。”", False),
        ("Mr. and Mrs. Smith, e.g. No. 3, U.S. Army", False),
        ("", False),
    ],
)
def test_what_counts(line, expected):
    assert has_several_sentences(line) == expected
