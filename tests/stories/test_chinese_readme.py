"""A Chinese reader follows README.zh.md line by line."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import elmokit
from elmokit.cli import main

README = (Path(__file__).parents[2] / "README.zh.md").read_text(encoding="utf-8")
SENTENCES = ["他每天吃一个苹果。", "树上的苹果成熟了。", "苹果发布了新手机。", "银行提高了利率。"]
QUICK = ("embed", "uses", "neighbours", "fill")  # the others need hours, or data of one's own


def commands():
    for line in re.findall(r"^\$ elmokit (.*)$", README, flags=re.MULTILINE):
        words = shlex.split(line, comments=True)
        if words[0] in QUICK:
            yield words


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_each_command(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES), encoding="utf-8")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    for option in ("-o", "--picture"):
        if option in words:
            assert (tmp_path / words[words.index(option) + 1]).stat().st_size > 1000
    if words[0] == "neighbours":  # the other fruit is nearer than the company
        assert "树上的苹果成熟了。" in done.stdout.splitlines()[1]


def test_the_apples_of_the_first_lines():
    """The vectors are as the README says of these sentences."""
    eaten, grown, company = re.findall("“([^”]*苹果[^”]+|[^”]+苹果)”", README)[:3]
    elmo = elmokit.load("zh")
    vectors = [elmo.embed(text)["苹果"] for text in (eaten, grown, company)]
    unit = [vector / np.linalg.norm(vector) for vector in vectors]
    assert unit[0] @ unit[1] > unit[0] @ unit[2]


def test_words_by_jieba():
    pytest.importorskip("jieba")
    s = elmokit.load("zh", words="jieba").embed("银行提高了利率。")
    assert s.tokens == ["银行", "提高", "了", "利率", "。"]
