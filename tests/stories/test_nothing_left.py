"""Work that fails at its first look at the data leaves no folder behind."""

import pytest
from click.testing import CliRunner

from elmokit.cli import main

GBK = "银行提高了利率。".encode("gbk")


@pytest.mark.parametrize(
    "command",
    [
        "pretrain bad.txt --language zh --minutes 1 -o out",
        "pretrain bad.csv --language en --minutes 1 -o out",
        "pretrain good.txt --language en --minutes 1 --teacher nosuch -o out",
        "pretrain good.txt --language en --minutes 1 --from nosuch -o out",
        "index bad.txt -o out",
        "prepare bad.txt --language zh -o out",
        "train classifier bad.csv --encoder chars -o out",
        "compare classifier bad.csv --encoders chars -o out",
    ],
)
def test_no_folder_is_left(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.txt").write_bytes(GBK)
    (tmp_path / "good.txt").write_text("The bank raised its rates.\n" * 40)
    (tmp_path / "bad.csv").write_text("id,message\n1,free prize\n")
    refused = CliRunner().invoke(main, command.split())
    assert refused.exit_code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "bad.txt", "good.txt"]
