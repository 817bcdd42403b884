"""Progress on a terminal, and silence elsewhere."""

import gzip
import io

import pytest
from rich.console import Console

from elmokit.base import progress, progress_display, text_progress


@pytest.fixture
def screen(monkeypatch):
    """What a terminal would show."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=120)
    monkeypatch.setattr(progress, "Console", lambda **_: console)
    return shown


def test_steps_have_a_name_a_share_and_a_note(screen):
    with progress_display(shown=True) as start:
        advance = start("reading", total=4)
        advance(3)
        advance(note="nearly")
        start("counting")()
    text = screen.getvalue()
    assert "reading" in text
    assert "100%" in text
    assert "nearly" in text
    assert "counting" in text


def test_nothing_is_shown_unless_asked_for(screen):
    with progress_display(shown=False) as start:
        start("reading", total=1)()
    assert "reading" not in screen.getvalue()


def test_nothing_is_shown_without_a_terminal(capsys):
    with progress_display(shown=True) as start:
        start("reading", total=1)()
    assert capsys.readouterr() == ("", "")


def test_a_text_file(screen, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("né\nab\n", "utf-8")
    with text_progress(path, shown=True) as advance:
        advance("né", 1)
        advance("ab", 2)
    assert "100%" in screen.getvalue()
    assert "3 tokens" in screen.getvalue()


def test_a_text_whose_length_is_unknown(screen, tmp_path):
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress(b"ab\n"))
    for source in (path, "-"):
        with text_progress(source, shown=True) as advance:
            advance("ab", 2)
    assert "2 tokens" in screen.getvalue()
    assert "100%" not in screen.getvalue()
