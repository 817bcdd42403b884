"""The pages of docs/ and both READMEs: examples run, commands exist, the picture is that of today."""

import doctest
import re
import runpy
import shlex
from pathlib import Path

import click
import pytest

import elmokit
from elmokit.cli import main

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*DOCS, ROOT / "README.md", ROOT / "README.zh.md"]


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("page", [page for page in DOCS if blocks(page, "pycon")], ids=name)
def test_sessions_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = "\n".join(blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(session, {}, name(page), str(page), 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_python_can_be_compiled(page):
    for code in blocks(page, "python"):
        compile(code, str(page), "exec")


def commands(page):
    """Every `elmokit …` line of the page's shell sessions and inline code, as words."""
    text = page.read_text(encoding="utf-8")
    sessions = "\n".join(blocks(page, "console")).replace("\\\n", " ")
    lines = [*sessions.splitlines(), *re.findall(r"`(elmokit [a-z].*?)`", text)]
    for line in lines:
        if found := re.search(r"(?:^|\s)(?:-m )?elmokit(?:\.cli)? ([a-z].*)", line):
            yield shlex.split(found[1], comments=True)


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=name)
def test_commands_and_their_options_exist(page):
    for verb, *words in commands(page):
        assert verb in main.commands, f"elmokit {verb}"
        options = [option for option in main.commands[verb].params if isinstance(option, click.Option)]
        known = {spelling for option in options for spelling in (*option.opts, *option.secondary_opts)}
        for word in words:
            if re.fullmatch(r"--?[a-z][a-z-]*", word):
                assert word in known | {"--help", "-h"}, f"elmokit {verb} {word}"


def formulas(page):
    """The formulas of a page, displayed and within a line; code is no formula."""
    text = re.sub(
        r"^```.*?^```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return [one or other for one, other in re.findall(r"\$\$(.+?)\$\$|\$(\S[^$\n]*)\$", text, re.DOTALL)]


@pytest.mark.parametrize("page", [page for page in DOCS if formulas(page)], ids=name)
def test_formulas_can_be_drawn(page):
    """The site draws them with matplotlib, which does not know all of LaTeX."""
    mathtext = pytest.importorskip("matplotlib.mathtext")
    for tex in formulas(page):
        mathtext.MathTextParser("path").parse(f"${' '.join(tex.split())}$")


def test_the_reference_has_every_public_name():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    assert set(re.findall(r"^\.\. auto\w+:: elmokit\.(\w+)$", pages, re.MULTILINE)) == set(elmokit.__all__)


@pytest.mark.parametrize("page", ["architecture.md", "theory.md"])
def test_the_map_names_files_that_exist(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_/]+/(?:[a-z_]+\.py)?)`", text)) - {"src/elmokit/model/"}
    assert len(named) > 3
    places = (ROOT, ROOT / "src" / "elmokit")
    assert not [path for path in named if not any((place / path).exists() for place in places)]


def test_the_picture_shows_the_floors_of_today():
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_house.py"))["draw"]()
    assert (ROOT / "docs" / "pictures" / "house.svg").read_text(encoding="utf-8") == drawn
