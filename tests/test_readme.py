"""The ten lines of Python in both READMEs run, and give what their comments say."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_ten_lines(name):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, object] = {}
    checked = 0
    for line in code.replace('open("corpus.txt")', '["One line."]').splitlines():
        statement, _, comment = line.partition("#")
        exec(statement, names)
        if promised := re.match(r" (\[.*\]|\([\d, ]+\))", comment):
            if statement.strip().startswith("elmo."):
                statement += ".shape"
            assert eval(statement.strip(), names) == eval(promised.group(1))
            checked += 1
    assert checked == 5
