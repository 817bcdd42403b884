import json

import pytest

from elmokit.corpus import PreparedCorpus, preparation
from elmokit.text import TokenizerSpec

SENTENCES = [f"The bank number {number} is open today." for number in range(40)]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(SENTENCES))
    return path


def test_report_picture_and_what_comes_next(run, text, tmp_path):
    out = tmp_path / "corpus"
    done = run("prepare", text, "--language", "en", "--out", out)
    assert done.exit_code == 0, done.stderr
    rows = [line.replace("│", " ").split() for line in done.stdout.splitlines()]
    assert ["sentences", "39", "1"] in rows
    assert ["vocabulary,", "rows", "10"] in rows
    assert f"next: elmokit pretrain {out} --out my-elmo" in done.stderr
    assert (out / "lengths.png").read_bytes().startswith(b"\x89PNG")
    again = run("prepare", text, "--language", "en", "--out", out)
    assert (again.exit_code, again.stdout) == (0, done.stdout)
    assert run("prepare", text, "--language", "en", "--out", out, "--quiet").output == ""


def test_options_become_settings(run, text, tmp_path):
    out = tmp_path / "corpus"
    options = (
        "--tokenizer whitespace --lowercase --lines --min-tokens 3 --max-tokens 9 --deduplicate --min-count 1"
    )
    rest = (
        f"--max-vocab 20 --heldout-share 0 --json-field a --parquet-column b --json --workers 1 --out {out}"
    )
    done = run("prepare", text, *options.split(), *rest.split())
    assert done.exit_code == 0, done.stderr
    settings = PreparedCorpus(out).settings
    assert settings.tokenizer == TokenizerSpec(name="whitespace", lowercase=True)
    assert not settings.split_sentences
    assert settings.deduplicate
    assert (settings.min_tokens, settings.max_tokens, settings.min_count) == (3, 9, 1)
    assert (settings.max_vocabulary, settings.heldout_share) == (20, 0)
    assert (settings.json_field, settings.parquet_column) == ("a", "b")
    assert json.loads(done.stdout)["vocabulary_size"] == 20
    assert "nothing is held out" in done.stderr


def test_heldout_vocabulary_and_language_of_a_tokenizer(run, text, tmp_path):
    (tmp_path / "held.txt").write_text("A shop is open.")
    (tmp_path / "words.txt").write_text("<S>\n</S>\n<UNK>\nis\nopen\n")
    out = tmp_path / "corpus"
    files = ["--heldout", tmp_path / "held.txt", "--vocabulary", tmp_path / "words.txt"]
    done = run("prepare", text, "--tokenizer", "rules", "--language", "en", *files, "--out", out)
    assert done.exit_code == 0, done.stderr
    corpus = PreparedCorpus(out)
    assert corpus.tokenizer.language == "en"
    assert corpus.report["heldout"]["oov_rate"] == 0.6
    assert corpus.vocabulary.tokens[3:] == ("is", "open")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "the language of the text is needed, for example --language en"),
        ("--language en --vocabulary v --min-count 2", "leave out --min-count and --max-vocab"),
        ("--language en --heldout v --heldout-share 0.1", "leave out --heldout-share"),
    ],
)
def test_what_is_refused(run, text, tmp_path, options, message):
    refused = run("prepare", text, "--out", tmp_path / "corpus", *options.split())
    assert refused.exit_code == 1
    assert message in refused.stderr


def test_errors_are_one_message(run, tmp_path):
    refused = run("prepare", tmp_path / "none.txt", "--language", "en", "--out", tmp_path / "corpus")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"elmokit: {tmp_path}/none.txt: no file has this name")


def test_ctrl_c_is_exit_130_and_says_how_to_resume(run, text, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(preparation, "write_chunk", interrupted)
    stopped = run("prepare", text, "--language", "en", "--workers", 1, "--out", tmp_path / "corpus")
    assert stopped.exit_code == 130
    assert "corpus.part: run the same again to resume" in stopped.stderr
