"""A BERT wherever a model is named: `elmokit.load("bert:FOLDER")` and `elmokit embed -m bert:FOLDER`."""

import shutil

import numpy as np
import pytest
from click.testing import CliRunner

import elmokit
from elmokit.cli import main
from elmokit.encoders import open_encoder
from elmokit.errors import ConfigError, ModelFileError
from elmokit.formats import WORDS_SETTING
from tests.encoders.test_bert import (
    folder,  # noqa: F401 (a fixture)
    saved_as,
)

TEXTS = ["the riverbank .", "", "cat the cat", "the cat " * 12]


@pytest.fixture
def bert(folder):  # noqa: F811
    return elmokit.load(f"bert:{folder}", tokenizer="rules:en")


def test_words_offsets_and_all_layers(bert, folder):  # noqa: F811
    found = bert.embed(TEXTS)
    assert found[0].tokens == ["the", "riverbank", "."]
    assert found[0].offsets == [(0, 3), (4, 13), (14, 15)]
    assert [one.layers.shape for one in found] == [(3, len(one.tokens), 8) for one in found]
    expected = open_encoder(f"bert:{folder}").encode([one.tokens for one in found])
    for one, layers in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.layers, layers.numpy(), atol=1e-5)
        np.testing.assert_allclose(one.vectors, layers.mean(0).numpy(), atol=1e-5)
    assert (bert.dim, bert.num_layers, bert.engine) == (8, 3, "torch")
    assert bert.encode(TEXTS).shape == (4, 8)
    one_by_one = np.concatenate([bert.embed(text).vectors for text in TEXTS])
    np.testing.assert_allclose(one_by_one, np.concatenate([one.vectors for one in found]), atol=1e-5)


def test_the_mix_and_the_pooling_are_those_of_the_spec(folder):  # noqa: F811
    top = elmokit.load(f"bert-mean:{folder}", tokenizer="rules:en", mix="top").embed("the riverbank")
    np.testing.assert_array_equal(top.vectors, top.layers[-1])
    first = elmokit.load(f"bert:{folder}", tokenizer="rules:en").embed("the riverbank")
    assert not np.allclose(first.layers[:, 1], top.layers[:, 1])
    np.testing.assert_allclose(first.layers[:, 0], top.layers[:, 0], atol=1e-6)


def test_the_tokenizer_of_its_words_is_recorded(folder, tmp_path):  # noqa: F811
    spec = elmokit.TokenizerSpec(name="rules", language="en")
    encoder = saved_as(
        folder, tmp_path / "own", lambda m, _: setattr(m.config, WORDS_SETTING, spec.to_dict())
    )
    assert encoder.tokenizer == spec
    bert = elmokit.load(f"bert:{tmp_path / 'own'}")
    assert bert.tokenizer_spec == spec
    bert.save(tmp_path / "again")
    assert open_encoder(f"bert:{tmp_path / 'again'}").tokenizer == spec


def test_embed_writes_a_file_that_is_resumed(folder, tmp_path):  # noqa: F811
    (tmp_path / "text.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    given = ["embed", str(tmp_path / "text.txt"), "-m", f"bert:{folder}", "--tokenizer", "rules:en"]
    done = CliRunner().invoke(main, [*given, "-o", str(tmp_path / "out.h5")])
    assert done.exit_code == 0, done.output
    with elmokit.read_vectors(tmp_path / "out.h5") as file:
        assert [row.layers.shape[1] for row in file] == [3, 0, 3, 24]
        assert file.metadata["model"].startswith("bert:")
    again = CliRunner().invoke(main, [*given, "-o", str(tmp_path / "out.h5"), "--resume"])
    assert "nothing to resume" in again.output
    printed = CliRunner().invoke(main, ["embed", "-t", "the cat", *given[2:], "-o", "-"])
    assert printed.exit_code == 0, printed.output


def test_what_a_bert_does_not_have(folder, tmp_path):  # noqa: F811
    with pytest.raises(ConfigError, match="stateful is for ELMo"):
        elmokit.load(f"bert:{folder}", stateful=True)
    with pytest.raises(ConfigError, match="precision is for ELMo"):
        elmokit.load(f"bert:{folder}", precision="int8")
    with pytest.raises(ModelFileError, match="nowhere is not a folder"):
        elmokit.load("bert:nowhere")
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "config.json").unlink()
    with pytest.raises(ModelFileError, match="transformers cannot open it"):
        elmokit.load(f"bert:{broken}")
