"""The course: its pages show what its programs print, in both languages. `make course` runs all of it."""

import re
import runpy
from pathlib import Path

import pytest

COURSE = Path(__file__).parent.parent / "docs" / "course"
CHAPTERS = sorted(int(path.stem[-2:]) for path in (COURSE / "code").glob("chapter_*.py"))
QUICK = (1, 3, 4)  # the chapters that are run here

run = runpy.run_path(str(COURSE / "run.py"))


def page(chapter, language):
    (path,) = (COURSE / language).glob(f"{chapter:02}-*.md")
    return path.read_text(encoding="utf-8")


def shown(text):
    return re.findall(r"^```\{section\} (.+)$", text, re.MULTILINE)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_both_languages_show_every_section_in_order(chapter):
    code = run["sections"]((COURSE / "code" / f"chapter_{chapter:02}.py").read_text(encoding="utf-8"))
    expected = [name for name in code if name != "end" and not name.startswith("the picture")]
    assert shown(page(chapter, "en")) == shown(page(chapter, "zh")) == expected


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_recorded_output_has_the_sections_of_the_program(chapter):
    texts = [COURSE / "code" / f"chapter_{chapter:02}.py", COURSE / "output" / f"chapter_{chapter:02}.txt"]
    code, output = (list(run["sections"](text.read_text(encoding="utf-8"))) for text in texts)
    assert code == output


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_both_languages_show_the_pictures_and_formulas(chapter):
    english, chinese = page(chapter, "en"), page(chapter, "zh")
    drawn = {path.name for path in (COURSE / "pictures").glob(f"chapter_{chapter:02}_*.png")}
    pictures = [set(re.findall(r"\.\./pictures/(\S+)\)", text)) for text in (english, chinese)]
    assert drawn
    assert pictures == [drawn, drawn]
    formulas = [re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL) for text in (english, chinese)]
    assert [one.split() for one in formulas[0]] == [one.split() for one in formulas[1]]


@pytest.mark.parametrize("chapter", QUICK)
def test_a_chapter_prints_what_its_pages_show(chapter, tmp_path):
    assert not run["differences"](chapter, run["run"](chapter, tmp_path))
    assert len(list(tmp_path.glob("*.png"))) == len(
        list((COURSE / "pictures").glob(f"chapter_{chapter:02}_*"))
    )


@pytest.mark.parametrize(
    ("name", "found", "shown", "same"),
    [
        ("a", "loss 1.00", "loss 1.04", True),
        ("a", "loss 1.00", "loss 1.10", False),
        ("a", "cat 1.00", "dog 1.00", False),
        ("a", "-0.01 of 96", "0.00 of 96", True),
        ("a", "1 2", "1", False),
        ("b (trained)", "loss 1.00", "perplexity 1.20", True),
        ("b (trained)", "loss 1.00", "loss 1.50", False),
        ("c (varies)", "4 seconds", "nothing", True),
    ],
)
def test_how_exactly_a_section_has_to_agree(name, found, shown, same):
    assert run["alike"](name, found, shown) == same
