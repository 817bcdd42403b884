"""Pictures: written whole, with Chinese, and with advice where a character is in no font."""

import logging

import pytest

from elmokit.base import drawing, figures


def draw(path, text):
    with drawing(path, width=3, height=2) as figure:
        figure.text(0.1, 0.5, text)


def test_only_our_own_font_is_enough_for_chinese(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(figures, "_CJK_FONTS", ())
    figures.fonts.cache_clear()
    try:
        assert figures.fonts() == ("DejaVu Sans", "elmokit Sans CJK")
        with caplog.at_level(logging.WARNING):
            draw(tmp_path / "common.png", "银行提高了利率，“苹果”上市。")
        assert caplog.records == []
        with caplog.at_level(logging.WARNING):
            draw(tmp_path / "rare.png", "\U0002a6d6")
        assert "1 characters of rare.png are in no font here" in caplog.text
        assert "apt install fonts-noto-cjk" in caplog.text
    finally:
        figures.fonts.cache_clear()


def test_a_failed_picture_leaves_the_old_one(tmp_path):
    path = tmp_path / "a.png"
    path.write_text("precious")
    with pytest.raises(ZeroDivisionError), drawing(path, width=3, height=2):
        raise ZeroDivisionError
    assert path.read_text() == "precious"
