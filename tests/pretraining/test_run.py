"""From text to a model folder by the command line, and every way that it can go wrong."""

import datetime
import json
import os
import shlex
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from click.testing import CliRunner

import elmokit
from elmokit.cli import main
from elmokit.corpus import PreparedCorpus
from elmokit.language_model import LanguageModel
from elmokit.pretraining.bilm import bilm_job, text_to_model
from elmokit.pretraining.bilm.bilm_job import BiLMJob
from elmokit.pretraining.core import prepared_text
from elmokit.training import read_metrics
from tests.small_runs import RECIPE_TEXT, sentences


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(sentences(120)) + "\n", encoding="utf-8")
    (tmp_path / "heldout.txt").write_text("\n".join(sentences(15, seed=1)) + "\n", encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE_TEXT, encoding="utf-8")
    return tmp_path


def command(folder, *more, out="model", recipe="recipe.toml", source="text.txt"):
    return [
        "pretrain",
        str(folder / source),
        *("--language", "en", "--lines", "--min-count", "1", "--heldout", str(folder / "heldout.txt")),
        *("--recipe", str(folder / recipe) if recipe.endswith(".toml") else recipe),
        *("--out", str(folder / out), "--workers", "1"),
        *more,
    ]


def invoke(*arguments):
    return CliRunner().invoke(main, arguments)


def test_text_becomes_a_model(text):
    result = invoke(*command(text, "--train-tokens", "800"))
    assert result.exit_code == 0, result.output
    out = text / "model"
    elmo = elmokit.load(out)
    assert elmo.embed("the old cat sees a river .").layers.shape == (3, 7, 16)
    assert elmo.tokenizer_spec.language == "en"
    found = LanguageModel.load(out).perplexity(sentences(15, seed=1))
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"| held-out text | after | {found.forward:.1f} | {found.backward:.1f} |" in card
    assert "elmokit" in card
    assert "text.txt" in card
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert [record["step"] for record in read_metrics(out / "training")] == [10, 20, 30, 40]
    assert "forward" in result.output
    assert float("5e-324") > 0  # the process has its smallest numbers back


def test_no_table_of_perplexities_where_nothing_was_held_out(text):
    given = command(text, "--train-tokens", "200")
    place = given.index("--heldout")
    result = invoke(*given[:place], *given[place + 2 :])  # a text of one document
    assert result.exit_code == 0, result.output
    assert "try elmokit fill -m" in result.output
    assert "backward" not in result.output


def test_a_model_of_words_without_characters(text):
    settings = RECIPE_TEXT.partition("[model.encoder]")[0] + "[model.encoder]\nnum_words = {}\n"
    (text / "words.toml").write_text(settings.format(99), encoding="utf-8")
    refused = invoke(*command(text, "--train-tokens", "400", recipe="words.toml"))
    assert refused.exit_code == 1
    assert "the recipe's encoder has num_words = 99, the vocabulary has 17; set num_words = 17" in (
        " ".join(refused.output.split())
    )
    (text / "words.toml").write_text(settings.format(17), encoding="utf-8")
    result = invoke(*command(text, "--train-tokens", "400", recipe="words.toml", out="words"), "--hdf5")
    assert result.exit_code == 0, result.output
    for folder in (text / "words", text / "words" / "hdf5"):
        elmo = elmokit.load(folder, tokenizer="rules:en")
        known, other, unknown = elmo.embed(["the cat .", "the dog .", "the zebra ."])
        assert not np.allclose(known["cat"], other["dog"])
        (as_unknown,) = elmo.embed([["the", "<UNK>", "."]])
        np.testing.assert_allclose(unknown["zebra"], as_unknown[1], atol=1e-6)


def test_a_second_run_needs_resume_and_a_finished_one_stays(text):
    invoke(*command(text, "--train-tokens", "200"))
    again = invoke(*command(text, "--train-tokens", "200"))
    assert again.exit_code == 1
    assert "holds a model or a run already; continue it with" in again.output
    weights = (text / "model" / "model.safetensors").read_bytes()
    assert invoke(*command(text, "--train-tokens", "200", "--resume")).exit_code == 0
    assert (text / "model" / "model.safetensors").read_bytes() == weights
    nothing = invoke(*command(text, "--train-tokens", "200", "--resume", out="other"))
    assert "holds no run to resume" in nothing.output


def test_a_model_without_its_run_is_not_trained_over(text):
    invoke(*command(text, "--train-tokens", "200"))
    shutil.rmtree(text / "model" / "training")
    weights = (text / "model" / "model.safetensors").read_bytes()
    result = invoke(*command(text, "--train-tokens", "200", "--resume"))
    assert result.exit_code == 1
    assert "no longer the run that made it; to train it further" in " ".join(result.output.split())
    assert (text / "model" / "model.safetensors").read_bytes() == weights


def test_a_longer_budget_goes_on(text):
    invoke(*command(text, "--train-tokens", "200"))
    assert invoke(*command(text, "--train-tokens", "400", "--resume")).exit_code == 0
    assert [record["step"] for record in read_metrics(text / "model" / "training")] == [10, 20]


def run_interrupted(text, step, *arguments):
    """Run the command in a process of its own and press Ctrl-C at a step."""
    script = f"""
        import os, signal
        from elmokit.pretraining.bilm.bilm_job import BiLMJob
        compute = BiLMJob.compute
        def interrupted(self, step):
            if step == {step}:
                os.kill(os.getpid(), signal.SIGINT)
            return compute(self, step)
        BiLMJob.compute = interrupted
        from elmokit.cli import main
        main({list(arguments)!r})
    """
    script = textwrap.dedent(script)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_ctrl_c_leaves_a_model_and_resume_needs_only_its_folder(text):
    stopped = run_interrupted(text, 11, *command(text, "--train-tokens", "400"))
    assert stopped.returncode == 130, stopped.stderr
    assert "stopping after this step" in stopped.stderr
    out = text / "model"
    assert f"{out} holds the model as it is now, and elmokit pretrain --out {out} --resume continues" in (
        stopped.stderr
    )
    assert elmokit.load(out).embed("the old cat").layers.shape == (3, 3, 16)
    assert len(LanguageModel.load(out).fill("the [MASK] cat .")[0]) == 10
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "**The training was interrupted: 60% of it is done.**" in card
    found = [record["heldout"] for record in read_metrics(out / "training") if "heldout" in record]
    assert f"| held-out text | after | {found[-1]['forward']:.1f} |" in card
    (text / "text.txt").unlink()  # the corpus is prepared: its text is not needed any more
    result = invoke("pretrain", "--resume", str(out))
    assert result.exit_code == 0, result.output
    assert "interrupted" not in (out / "README.md").read_text(encoding="utf-8")
    (text / "text.txt").write_text("\n".join(sentences(120)) + "\n", encoding="utf-8")
    assert invoke(*command(text, "--train-tokens", "400", out="whole")).exit_code == 0
    read = [(text / name / "model.safetensors").read_bytes() for name in ("model", "whole")]
    assert read[0] == read[1]


def test_a_resumed_run_keeps_its_command_version_and_date(text, monkeypatch):
    given = command(text, "--train-tokens", "200")
    monkeypatch.setattr(sys, "argv", ["elmokit", *given])
    assert invoke(*given).exit_code == 0
    monkeypatch.setattr(sys, "argv", ["elmokit", "pretrain", "--resume", "model"])
    result = invoke("pretrain", "--resume", "-o", str(text / "model"), "--train-tokens", "400")
    assert result.exit_code == 0, result.output
    card = (text / "model" / "README.md").read_text(encoding="utf-8")
    assert shlex.join(["elmokit", *given]) in card
    assert "--resume" not in card
    assert f"; elmokit {elmokit.__version__}, {datetime.date.today()}." in card
    assert "400 tokens in 20 steps" in card


def test_an_interrupted_preparation_is_resumed_too(text, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt("interrupted")

    with monkeypatch.context() as patched:
        patched.setattr(prepared_text, "prepare_corpus", interrupted)
        assert invoke(*command(text, "--train-tokens", "200")).exit_code == 130
    assert not (text / "model" / "training" / "corpus").exists()
    result = invoke("pretrain", "--resume", str(text / "model"))
    assert result.exit_code == 0, result.output
    assert elmokit.load(text / "model").embed("the cat").layers.shape == (3, 2, 16)


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (["pretrain", "text.txt"], 2, "Missing -o/--out"),
        (["pretrain", "-o", "model"], 2, "Missing INPUT…"),
        (["pretrain", "--resume", "nowhere"], 1, "nowhere holds no run to resume"),
        (
            ["pretrain", "--resume", "model", "--size", "tiny"],
            1,
            "another recipe: size is tiny, was 16/8. Resume",
        ),
        (["pretrain", "--resume", "model", "--batch", "8"], 1, "another recipe: batch is 8, was 4. Resume"),
        (
            ["pretrain", "--resume", "model", "--lowercase"],
            1,
            "continues with the text that it was started with",
        ),
    ],
)
def test_what_cannot_be_resumed(text, monkeypatch, given, code, message):
    monkeypatch.chdir(text)
    assert invoke(*command(text, "--train-tokens", "200")).exit_code == 0
    refused = invoke(*given)
    assert refused.exit_code == code
    assert message in refused.output
    assert len(refused.output) < 400  # no settings in full


def test_a_run_of_an_older_version_has_no_record(text):
    assert invoke(*command(text, "--train-tokens", "200")).exit_code == 0
    record = text / "model" / "training" / "run.json"
    whole = json.loads(record.read_text())
    record.write_text("{")
    damaged = invoke("pretrain", "--resume", str(text / "model"))
    assert "run.json is damaged" in damaged.output
    record.write_text(json.dumps(whole | {"teacher": 1}))
    damaged = invoke("pretrain", "--resume", str(text / "model"))
    assert "run.json is damaged (expected a name or a path, found 1)" in " ".join(damaged.output.split())
    record.unlink()
    refused = invoke("pretrain", "--resume", str(text / "model"))
    assert refused.exit_code == 1
    assert "the text to train on is missing" in refused.output
    assert invoke(*command(text, "--train-tokens", "400", "--resume")).exit_code == 0


def test_text_by_character_gets_a_vector_for_each_character(text):
    lines = ["银行提高了利率。", "他坐在河岸上。", "银行在河边。", "利率提高了。"] * 40
    (text / "zh.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    given = ["pretrain", str(text / "zh.txt"), "--language", "zh", "--train-tokens", "40"]
    given += ["--batch", "2", "--unroll", "5", "--size", "tiny"]
    result = invoke(*given, "-o", str(text / "zh"))
    assert result.exit_code == 0, result.output
    assert "the recipe 'characters' gives each character a vector" in " ".join(result.output.split())
    elmo = elmokit.load(text / "zh")
    assert elmo.model.config.encoder.num_words == len(elmo.bundle.vocabulary)
    assert elmo.tokenizer_spec.name == "characters"
    assert "| words | True |" in (text / "zh" / "README.md").read_text(encoding="utf-8")
    again = invoke(
        *given, "--size", "tiny", "--recipe", "default", "-o", str(text / "bytes"), "--unroll", "5"
    )
    assert again.exit_code == 0, again.output
    assert elmokit.load(text / "bytes").model.config.encoder.reads == "bytes"


def test_the_card_names_what_the_curve_shows(text, monkeypatch):
    for module in (bilm_job, text_to_model):
        monkeypatch.setattr(module, "EVALUATED_TOKENS", 20)
    drawn = []
    monkeypatch.setattr(text_to_model, "draw_curve", lambda *given: drawn.append(given))
    result = invoke(*command(text, "--train-tokens", "800"))
    assert result.exit_code == 0, result.output
    assert "perplexity of the held-out text, first 20 tokens" in " ".join(result.output.split())
    records = read_metrics(text / "model" / "training")
    last = [record["heldout"] for record in records if "heldout" in record][-1]
    card = (text / "model" / "README.md").read_text(encoding="utf-8")
    rows = {line.split(" | ")[0]: line.split(" | ") for line in card.splitlines() if "held-out" in line}
    part, whole = rows["| held-out text, first 20 tokens"], rows["| held-out text"]
    ((_, _, measured, (tokens, end)),) = drawn  # the last point of the curve
    assert (measured, tokens >= 800) == ("held-out text, first 20 tokens", True)
    assert part[2] == f"{end.forward:.1f}"
    assert (part[-1], whole[-1]) == (f"{last['words']} |", "105 |")


@pytest.mark.parametrize("softmax", ["adaptive", "full"])
def test_other_softmaxes_train_and_are_kept(text, softmax):
    recipe = f'softmax = "{softmax}"\ncutoffs = [5, 10]\n{RECIPE_TEXT}'
    (text / "recipe.toml").write_text(recipe, encoding="utf-8")
    assert invoke(*command(text, "--train-tokens", "800")).exit_code == 0
    before, after = (
        read_metrics(text / "model" / "training")[i][f"{softmax}_loss"]["forward"] for i in (0, -1)
    )
    assert after < before
    model = LanguageModel.load(text / "model")
    assert len(model.softmax.cutoffs) == (2 if softmax == "adaptive" else 0)


def test_the_paper_recipe_writes_what_the_originals_read(text):
    settings = 'base = "paper"\n' + RECIPE_TEXT.replace("learning_rate = 0.01\n", "")
    (text / "paper.toml").write_text(settings, encoding="utf-8")
    result = invoke(*command(text, "--train-tokens", "400", "--hdf5", recipe="paper.toml"))
    assert result.exit_code == 0, result.output
    ours, theirs = (
        elmokit.load(text / "model" / name).embed([["the", "cat"]])[0].layers for name in (".", "hdf5")
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert "| optimizer | adagrad |" in (text / "model" / "README.md").read_text(encoding="utf-8")


def test_adaptation_goes_on_from_a_model_and_shows_both_domains(text):
    invoke(*command(text, "--train-tokens", "800"))
    other = text / "other"
    other.mkdir()
    lines = ["a young bank knows the green dog ." for _ in range(80)]
    (other / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    (other / "heldout.txt").write_text("\n".join(lines[:5]), encoding="utf-8")
    (other / "recipe.toml").write_text(RECIPE_TEXT, encoding="utf-8")
    given = command(
        other, "--train-tokens", "800", "--from", str(text / "model"), "--old-text", str(text / "heldout.txt")
    )
    given = [word for word in given if word not in ("--min-count", "1", "--workers")]
    result = invoke(*given)
    assert result.exit_code == 0, result.output
    card = (other / "model" / "README.md").read_text(encoding="utf-8")
    rows = {
        tuple(line.split(" | ")[:2]): line.split(" | ") for line in card.splitlines() if "text | " in line
    }
    new = [float(rows["| held-out text", when][2]) for when in ("before", "after")]
    assert new[1] < new[0]
    assert ("| old text", "before") in rows
    vocabularies = [(folder / "model" / "vocab.txt").read_bytes() for folder in (text, other)]
    assert vocabularies[0] == vocabularies[1]


def test_a_model_without_softmax_gets_one_first(text):
    invoke(*command(text, "--train-tokens", "400"))
    published = text / "published"
    assert invoke("convert", str(text / "model"), "-o", str(published), "--format", "hdf5").exit_code == 0
    (published / "softmax_weights.hdf5").unlink()
    (published / "vocab.txt").unlink()
    result = invoke(*command(text, "--train-tokens", "600", "--from", str(published), out="adapted"))
    assert result.exit_code == 0, result.output
    assert "has no softmax: one is fitted first" in result.output
    adapted = LanguageModel.load(text / "adapted").perplexity(sentences(15, seed=1))
    assert adapted.mean < 20
    fitted = read_metrics(text / "adapted" / "training" / "softmax")
    more = command(text, "--train-tokens", "1200", "--from", str(published), "--resume", out="adapted")
    assert invoke(*more).exit_code == 0
    assert read_metrics(text / "adapted" / "training" / "softmax") == fitted  # not again


def test_the_fitting_of_a_softmax_is_gone_on_with(text, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    invoke(*command(text, "--train-tokens", "400"))
    assert invoke("convert", str(text / "model"), "-o", str(text / "hdf5"), "--format", "hdf5").exit_code == 0
    (text / "hdf5" / "softmax_weights.hdf5").unlink()
    given = command(text, "--train-tokens", "600", "--from", str(text / "hdf5"), out="adapted")
    nowhere = invoke(*given, "--old-text", "nowhere.txt")
    assert nowhere.exit_code == 1
    assert "nowhere.txt is not a file" in nowhere.output
    begun = text / "adapted" / "training" / "softmax" / "checkpoints"
    monkeypatch.setattr(BiLMJob, "compute", interrupted)
    assert invoke(*given).exit_code != 0
    monkeypatch.undo()
    assert list(begun.iterdir())
    assert not (text / "adapted" / "training" / "checkpoints").exists()
    result = invoke(*given, "--resume")
    assert result.exit_code == 0, result.output


def test_words_keep_their_vectors_where_the_softmax_is_new(text):
    settings = RECIPE_TEXT.partition("[model.encoder]")[0] + "[model.encoder]\nnum_words = 17\n"
    (text / "words.toml").write_text(settings, encoding="utf-8")
    assert invoke(*command(text, "--train-tokens", "400", recipe="words.toml"), "--hdf5").exit_code == 0
    published = text / "model" / "hdf5"
    (published / "softmax_weights.hdf5").unlink()
    lines = ["zebra zebra the cat sees zebra ."] * 80
    (text / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    given = command(text, "--train-tokens", "400", "--from", str(published), out="adapted")
    given = [word for word in given if word not in ("--min-count", "1", "--workers")]
    result = invoke(*given)
    assert result.exit_code == 0, result.output
    names = ("model", "adapted")
    before, after = ((text / name / "vocab.txt").read_text(encoding="utf-8") for name in names)
    assert before == after
    (published / "vocab.txt").write_text(before.replace("<S>\n</S>", "</S>\n<S>"), encoding="utf-8")
    refused = invoke(*[*given, "--out", str(text / "other")])
    assert "begins with </S>, <S>, <UNK>; only a model whose" in " ".join(refused.output.split())


def test_a_lower_cased_model_is_trained_further_in_lower_case(text):
    lines = [line.capitalize() for line in sentences(120)]
    (text / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    assert invoke(*command(text, "--train-tokens", "200", "--lowercase")).exit_code == 0
    given = command(text, "--train-tokens", "200", "--from", str(text / "model"), out="further")
    left_out = ("--min-count", "1", "--workers")
    result = invoke(*(word for word in given if word not in left_out))
    assert result.exit_code == 0, result.output
    assert elmokit.load(text / "further").tokenizer_spec.lowercase
    assert PreparedCorpus(text / "further" / "training" / "corpus").report["train"]["oov_rate"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "text.txt").write_text(""), "the corpus is empty"),
        (lambda folder: (folder / "text.txt").write_bytes(b"\x7fELF\0\0\1"), "NUL byte"),
        (
            lambda folder: (folder / "text.txt").write_text("one two three\n"),
            "use more text or a smaller batch",
        ),
        (
            lambda folder: (folder / "recipe.toml").write_text("batchh = 3"),
            "unknown setting 'batchh'; did you mean",
        ),
        (lambda folder: (folder / "recipe.toml").write_text("batch = -3"), "batch must be a whole number"),
        (
            lambda folder: (folder / "recipe.toml").write_text("reset = 1.5"),
            "reset must be a finite number from 0 to 1",
        ),
        (
            lambda folder: (folder / "recipe.toml").write_text('join = 0.5\norder = "sentence"'),
            'join must be 0 if order = "sentence"',
        ),
        (lambda folder: (folder / "recipe.toml").write_text("seed = -1"), "seed must be a whole number"),
        (lambda folder: (folder / "recipe.toml").write_text("warmup = '9'"), "warmup must be a whole number"),
        (lambda folder: (folder / "recipe.toml").write_text("weight_decay = '0'"), "weight_decay must be"),
        (lambda folder: (folder / "recipe.toml").write_text("cutoffs = 4000"), "cutoffs must be a list"),
        (lambda folder: (folder / "recipe.toml").write_text("cutoffs = [9, 5]"), "each above the one before"),
        (
            lambda folder: (folder / "recipe.toml").write_text('softmax = "adaptive"\ncutoffs = []'),
            "an adaptive softmax needs cutoffs",
        ),
        (lambda folder: (folder / "recipe.toml").write_text("batch = "), "is not a TOML file"),
        (
            lambda folder: (folder / "recipe.toml").unlink(),
            "is neither a file nor one of default, characters",
        ),
        (
            lambda folder: (folder / "recipe.toml").write_text('softmax = "adaptive"\nbatch = 4'),
            "lie beyond the vocabulary",
        ),
    ],
)
def test_what_is_wrong_is_said(text, change, message):
    change(text)
    result = invoke(*command(text, "--train-tokens", "200"))
    assert result.exit_code == 1
    assert message in result.output
    assert not (text / "model" / "config.json").exists()


def test_a_vocabulary_needs_its_specials(text):
    (text / "vocab.txt").write_text("the\ncat\n", encoding="utf-8")
    given = [
        word
        for word in command(text, "--train-tokens", "200")
        if word not in ("--min-count", "1", "--workers")
    ]
    result = invoke(*given, "--vocabulary", str(text / "vocab.txt"))
    assert result.exit_code == 1
    assert "<S>" in result.output


def test_resume_with_other_settings_names_them(text):
    invoke(*command(text, "--train-tokens", "200"))
    result = invoke(*command(text, "--train-tokens", "400", "--resume", "--dropout", "0.4"))
    assert result.exit_code == 1
    assert "dropout is 0.4, was 0.1" in result.output


def test_two_processes_train_as_one(text):
    (text / "recipe.toml").write_text("dropout = 0.0\n" + RECIPE_TEXT, encoding="utf-8")
    assert invoke(*command(text, "--train-tokens", "400", out="one")).exit_code == 0
    script = text / "two.py"
    script.write_text(
        f"from elmokit.cli import main\nmain({command(text, '--train-tokens', '400', out='two')!r})\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*launch, str(script)], check=False, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    one, two = (read_metrics(text / name / "training") for name in ("one", "two"))
    for a, b in zip(one, two, strict=True):
        # Where products are in bfloat16, each process rounds its own half.
        assert a["sampled_loss"] == pytest.approx(b["sampled_loss"], abs=1e-3)
    found = [
        LanguageModel.load(text / name).perplexity(sentences(15, seed=1)).mean for name in ("one", "two")
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_a_prepared_corpus_is_taken_as_it_is(text):
    prepared = invoke(
        *("prepare", str(text / "text.txt"), "--language", "en", "--lines", "--out", str(text / "corpus"))
    )
    assert prepared.exit_code == 0, prepared.output
    given = ["pretrain", str(text / "corpus"), "--recipe", str(text / "recipe.toml"), "--train-tokens", "200"]
    assert invoke(*given, "--out", str(text / "model"), "--quiet").exit_code == 0
    refused = invoke(*given, "--out", str(text / "other"), "--lowercase", "--heldout-share", "0")
    assert refused.exit_code == 1
    assert "is prepared already; leave out --lowercase, --heldout-share 0.0, or" in " ".join(
        refused.output.split()
    )
    assert len(elmokit.load(text / "model").bundle.vocabulary) == len(
        PreparedCorpus(text / "corpus").vocabulary
    )
