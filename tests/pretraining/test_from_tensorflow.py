"""Training that bilm-tf began goes on here."""

import json

from click.testing import CliRunner

from elmokit.cli import main
from elmokit.formats import load_model
from elmokit.language_model import LanguageModel
from tests.tf_files import bilm_names, with_training, write_checkpoint
from tests.tiny import WORDS, tiny_arrays, tiny_config, tiny_options


def test_a_checkpoint_of_bilm_tf_is_trained_further(tmp_path):
    config = tiny_config()
    options = tiny_options(config, n_characters=261) | {"bidirectional": True, "n_tokens_vocab": len(WORDS)}
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "options.json").write_text(json.dumps(options))
    (begun / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    variables = with_training(bilm_names(tiny_arrays(config)), len(WORDS), config.projection_dim)
    write_checkpoint(begun / "model.ckpt-2500", variables)

    words = list(WORDS[3:])
    text = tmp_path / "text.txt"
    text.write_text("\n".join([" ".join(words)] * 60), encoding="utf-8")
    command = ["pretrain", str(text), "--tokenizer", "whitespace", "--lines", "--heldout-share", "0"]
    command += [
        "--from",
        str(begun),
        "--out",
        str(tmp_path / "model"),
        "--train-tokens",
        "400",
        "--batch",
        "4",
    ]
    result = CliRunner().invoke(main, [*command, "--batch", "4", "--unroll", "5"])
    assert result.exit_code == 0, result.output
    after = LanguageModel.load(tmp_path / "model")
    assert after.vocabulary.tokens == load_model(begun).vocabulary.tokens
    before = LanguageModel.load(begun)
    assert after.perplexity([words]).mean < before.perplexity([words]).mean
