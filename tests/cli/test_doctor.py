import json


def test_a_whole_model(run, model):
    shown = run("doctor", model)
    assert shown.exit_code == 0
    first, *others = shown.stdout.splitlines()
    assert first.startswith("ok       a complete model: options ")
    assert "3 layers of 6 numbers per token" in first
    assert any(line.startswith("note     the files do not record the tokenizer") for line in others)


def test_no_model(run, tmp_path):
    shown = run("doctor", tmp_path, "--json")
    assert shown.exit_code == 1
    (finding,) = map(json.loads, shown.stdout.splitlines())
    assert finding["level"] == "error"
    assert "holds no options file" in finding["message"]


def test_a_text(run, model, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("Tom &amp; Jerry\n")
    shown = run("doctor", model, text)
    assert shown.exit_code == 0
    assert "warning  HTML entities: '&amp;' in line 1" in shown.stdout
    text.write_text("Tom , Jerry and a mouse .\n")
    assert "keep these tokens (--tokens)" in run("doctor", model, text).stdout
    assert "(tokens=True)" in run("doctor", model, text, "--json").stdout
    text.write_text("Tom and Jerry\n")
    assert "ok       1 line: none of the classic mistakes" in run("doctor", model, text).stdout
    nowhere = run("doctor", model, tmp_path / "nowhere.txt")
    assert nowhere.exit_code == 1
    assert "a complete model" in nowhere.stdout
    assert "nowhere.txt does not exist" in nowhere.stderr


def test_text_in_lower_case_is_right_for_a_model_of_it(run, model, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("all of it is in lower case , as some models want it .\n" * 100)
    assert "lower-cased" in run("doctor", model, text).stdout
    assert run("convert", model, "-o", tmp_path / "lower").exit_code == 0
    config = json.loads((tmp_path / "lower" / "config.json").read_text())
    config["tokenizer"]["lowercase"] = True
    (tmp_path / "lower" / "config.json").write_text(json.dumps(config))
    assert "lower-cased" not in run("doctor", tmp_path / "lower", text).stdout
