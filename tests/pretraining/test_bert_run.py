"""From text to a BERT's folder, resumed and with several processes."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import elmokit
from elmokit.cli import main
from elmokit.encoders import open_encoder
from elmokit.errors import ConfigError
from elmokit.pretraining.bert import text_to_bert
from elmokit.pretraining.bert.bert_job import BertJob
from elmokit.training import read_metrics
from tests.small_runs import sentences

transformers = pytest.importorskip("transformers")

RECIPE = """
batch = 4
length = 32
vocabulary = 200
learning_rate = 0.01
warmup = 5
[model]
layers = 1
hidden = 8
heads = 2
inner = 16
"""
STEPS = 4 * 32 * 24  # pieces in 24 steps of full rows


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.setattr(text_to_bert, "training_precision", lambda device: "float32")
    documents = ["\n".join(sentences(12, seed)) for seed in range(12)]
    (tmp_path / "text.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    (tmp_path / "heldout.txt").write_text("\n".join(sentences(30, seed=99)) + "\n", encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def run(folder, out="model", **more):
    given = {
        "architecture": "bert", "tokens": STEPS, "recipe": folder / "recipe.toml", "workers": 1,
        "preparation": {"language": "en", "split_sentences": False, "heldout": [folder / "heldout.txt"]},
    }  # fmt: skip
    return elmokit.pretrain([folder / "text.txt"], out=folder / out, **given | more)


def weights(folder):
    return transformers.BertForPreTraining.from_pretrained(folder).state_dict()


def test_text_becomes_a_folder_that_transformers_and_elmokit_open(text):
    (found,) = run(text)
    out = text / "model"
    assert (found.text, found.pieces > 20) == ("held-out text", True)
    model = transformers.AutoModel.from_pretrained(out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    assert tokenizer.tokenize("the old cat") == ["the", "old", "cat"]
    assert tokenizer("the cat", "a dog")["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]
    encoder = open_encoder(f"bert:{out}")
    assert encoder.encode([["the", "old", "cat"]])[0].shape == (2, 3, 8)
    assert (model.config.hidden_dropout_prob, model.config.max_position_embeddings) == (0.1, 32)
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"Loss of a masked piece {found.loss:.3f}" in card
    assert "| nsp | True |" in card
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    records = read_metrics(out / "training")
    assert records[-1]["masked_loss"] < records[0]["masked_loss"]
    assert {"next_sentence_loss", "gradient_norm"} <= records[0].keys()


def test_a_run_that_was_stopped_goes_on_to_the_same_model(text, monkeypatch):
    run(text, "whole")
    compute = BertJob.compute

    def stops(self, step):
        if step == 13:
            os.kill(os.getpid(), 2)
        return compute(self, step)

    with monkeypatch.context() as patched:
        patched.setattr(BertJob, "compute", stops)
        with pytest.raises(KeyboardInterrupt, match="holds the model as it is now"):
            run(text, "parts")
    assert "The training was interrupted" in (text / "parts" / "README.md").read_text(encoding="utf-8")
    assert open_encoder(f"bert:{text / 'parts'}").dim == 8
    (text / "text.txt").unlink()  # what the run needs is in its folder
    elmokit.pretrain(out=text / "parts", resume=True)
    whole, parts = (weights(text / name) for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    first, second = (read_metrics(text / name / "training") for name in ("whole", "parts"))
    assert [record["masked_loss"] for record in first] == [record["masked_loss"] for record in second]


def test_two_processes_train_what_one_trains(text):
    run(text, "one")
    script = f"""
        import sys
        from pathlib import Path
        sys.path[:0] = [{str(Path(__file__).parents[2])!r}]
        from elmokit.pretraining.bert import text_to_bert
        from tests.pretraining.test_bert_run import run
        text_to_bert.training_precision = lambda device: "float32"
        run(Path({str(text)!r}), "two")
    """
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*launch, "--no-python", sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    one, two = (weights(text / name) for name in ("one", "two"))
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-3, atol=1e-4, msg=name)


def test_the_command_line_trains_without_next_sentences(text):
    given = ["pretrain", str(text / "text.txt"), "--language", "en", "--lines", "--architecture", "bert"]
    given += ["--recipe", str(text / "recipe.toml"), "--train-tokens", "400", "--no-nsp", "--whole-words"]
    done = CliRunner().invoke(main, [*given, "-o", str(text / "model"), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "try elmokit fill -m bert:" in done.output
    assert transformers.AutoConfig.from_pretrained(text / "model").architectures == ["BertForMaskedLM"]
    card = (text / "model" / "README.md").read_text(encoding="utf-8")
    assert "| nsp | False |" in card
    assert "| whole_words | True |" in card
    refused = CliRunner().invoke(
        main, ["pretrain", "--resume", str(text / "model"), "--architecture", "lstm"]
    )
    assert refused.exit_code == 1
    assert "another architecture: it is lstm, was bert" in " ".join(refused.output.split())


def test_the_paper_recipe_is_chosen_by_its_name(text):
    given = ["pretrain", str(text / "text.txt"), "--language", "en", "--lines", "--architecture", "bert"]
    given += ["--recipe", "paper", "--size", "tiny", "--batch", "4", "--length", "32"]
    done = CliRunner().invoke(
        main, [*given, "--train-tokens", "200", "-o", str(text / "model"), "--workers", "1"]
    )
    assert done.exit_code == 0, done.output
    assert "| dropout | 0.1 |" in (text / "model" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": "medium"}, "size must be one of tiny, mini, small, found 'medium'"),
        ({"teacher": "en"}, "teacher is for ELMo"),
        ({"changes": {"unroll": 5}}, "recipe: unknown setting 'unroll'"),
        (
            {"architecture": "bort"},
            "architecture must be one of lstm, .*bert, found 'bort'",
        ),
        ({"recipe": "characters"}, "recipe 'characters' is neither a file nor one of default, paper"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(text, given, message):
    with pytest.raises(ConfigError, match=message):
        run(text, **given)
    assert not (text / "model").exists()
