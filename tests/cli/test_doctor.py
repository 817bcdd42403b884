import json


def test_a_whole_model(run, model):
    shown = run("doctor", model)
    assert shown.exit_code == 0
    first, *others = shown.stdout.splitlines()
    assert first.startswith("ok       a whole model: options ")
    assert "3 layers of 6 numbers a token" in first
    assert any(line.startswith("note     the files do not say how the text was tokenised") for line in others)


def test_no_model(run, tmp_path):
    shown = run("doctor", tmp_path, "--json")
    assert shown.exit_code == 1
    (finding,) = map(json.loads, shown.stdout.splitlines())
    assert finding["level"] == "error"
    assert "holds no options file" in finding["message"]


def test_a_text(run, model, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("Tom &amp; Jerry\n")
    shown = run("doctor", model, "--text", text)
    assert shown.exit_code == 0
    assert "warning  HTML entities: '&amp;' in line 1" in shown.stdout
    text.write_text("Tom and Jerry\n")
    assert "ok       1 line: none of the classic mistakes" in run("doctor", model, "--text", text).stdout
