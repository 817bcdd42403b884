"""The ten lines of Python in both READMEs run, and give what their comments say."""

import re
from pathlib import Path

import pytest

from elmokit.formats import save_model
from tests.tiny import tiny_bundle

ROOT = Path(__file__).parent.parent
DIM = 6  # of the tiny model; the READMEs show the published 1024


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_ten_lines(name, tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)
    save_model(tiny_bundle(), tmp_path / "path" / "to" / "model", format="hdf5")
    (tmp_path / "corpus.txt").write_text("One line.\nAnother line.\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    checked = 0
    for line in code.replace('open("corpus.txt")', '["One line."]').splitlines():
        statement, _, comment = line.partition("#")
        exec(statement, names)
        if promised := re.match(r" (\[.*\]|\([\d, ]+\))", comment):
            if statement.strip().startswith("elmo."):
                statement += ".shape"
            assert eval(statement.strip(), names) == eval(promised.group(1).replace("1024", str(DIM)))
            checked += 1
    assert checked == 5
