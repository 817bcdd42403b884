"""simple_elmo's `ElmoModel`, without the original's defects."""

import json

import numpy as np
import pytest

from elmokit import ConfigError, ModelFileError
from elmokit.compat.simple_elmo import ElmoModel
from tests.reference import Reference
from tests.tf_files import bilm_names, with_training, write_checkpoint
from tests.tiny import WORDS, tiny_arrays, tiny_config, tiny_options, write_folder, write_zip

SENTENCES = [["the", "cat", "sat", "."], ["bank"], []]


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "model", names=("options.json", "model.hdf5"), vocabulary=WORDS)


@pytest.fixture
def full_folder(tmp_path):
    """With a checkpoint, as the training leaves it."""
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "options.json").write_text(json.dumps(tiny_options(tiny_config(), n_characters=262)))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    write_checkpoint(folder / "model.ckpt", with_training(bilm_names(tiny_arrays(tiny_config())), 10, 3))
    return folder


@pytest.fixture
def model(folder):
    model = ElmoModel()
    assert model.load(str(folder)) == "The model is now loaded."
    return model


@pytest.fixture
def layers():
    """All layers of each sentence, by the oracle."""
    oracle = Reference(tiny_arrays(tiny_config()), tiny_options(tiny_config()))
    return [oracle.embed(tokens)[:, 1:-1] for tokens in SENTENCES]


def test_what_the_model_says_of_itself(model):
    assert (model.vector_size, model.n_layers, model.max_chars, model.batch_size) == (6, 3, 50, 32)


def test_vectors(model, layers):
    for choice, pick in {
        "average": lambda x: x.mean(axis=0),
        "top": lambda x: x[-1],
        "all": lambda x: x,
    }.items():
        vectors = model.get_elmo_vectors(SENTENCES, layers=choice)
        assert vectors.dtype == np.float64
        assert vectors.shape == ((3, 3, 4, 6) if choice == "all" else (3, 4, 6))
        for row, expected in zip(vectors, map(pick, layers), strict=True):
            length = expected.shape[-2]
            np.testing.assert_allclose(row[..., :length, :], expected, atol=1e-5)
            assert not row[..., length:, :].any()  # the original leaves numbers there


def test_nothing_changes_the_numbers_of_a_sentence(model):
    """In the original the first call warms up, batches carry state, and an average depends on the batch."""
    first = model.get_elmo_vectors(SENTENCES, warmup=True)
    np.testing.assert_allclose(model.get_elmo_vectors(SENTENCES, warmup=False), first, atol=1e-6)
    np.testing.assert_allclose(model.get_elmo_vectors(iter(SENTENCES)), first, atol=1e-6)
    mean = model.get_elmo_vector_average(SENTENCES)
    np.testing.assert_allclose(model.get_elmo_vector_average(SENTENCES[1:2])[0], mean[1], atol=1e-6)


def test_sentence_vectors(model, layers):
    for choice, pick in {
        "average": lambda x: x.mean(axis=0),
        "top": lambda x: x[-1],
        "all": lambda x: x,
    }.items():
        vectors = model.get_elmo_vector_average(SENTENCES, layers=choice)
        assert vectors.shape == ((3, 3, 6) if choice == "all" else (3, 6))
        for row, tokens in zip(vectors[:2], map(pick, layers[:2]), strict=True):
            mean = tokens.mean(axis=-2)
            np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-5)
        assert not vectors[2].any()


def test_zip_and_no_sentences(folder, tmp_path):
    model = ElmoModel()
    model.load(write_zip(tmp_path / "22.zip", folder))
    assert model.get_elmo_vectors([]).shape == (0, 0, 6)
    assert model.get_elmo_vectors([], layers="all").shape == (0, 3, 0, 6)
    assert model.get_elmo_vector_average([]).shape == (0, 6)


def test_261_characters_are_right_too(tmp_path):
    config = tiny_config()
    write_folder(tmp_path, config, options=tiny_options(config, n_characters=261))
    ElmoModel().load(tmp_path)


def expected_substitutes(sentence, delimiters):
    """Per word, the words by falling probability of each direction, and the logs, by the oracle."""
    variables = with_training({}, 10, 3)
    weight, bias = (variables[f"lm/softmax/{name}"].astype(np.float64) for name in ("W", "b"))
    top = Reference(tiny_arrays(tiny_config()), tiny_options(tiny_config())).embed(sentence)[-1]
    for place in range(1, len(top) - 1):
        answers = {}
        for name, hidden in (("forward", top[place - 1, :3]), ("backward", top[place + 1, 3:])):
            logits = weight @ hidden + bias
            logs = logits - np.log(np.exp(logits).sum())
            order = [row for row in np.argsort(-logs) if delimiters or row > 1]
            answers[name] = order, logs[order]
        yield answers


@pytest.mark.parametrize("nodelimiters", [True, False])
def test_substitutes_know_all_that_stands_before_and_after(full_folder, nodelimiters):
    model = ElmoModel()
    model.load(full_folder, full=True)
    answer = model.get_elmo_substitutes(["the zebra sat", "", "cat"], topn=3, nodelimiters=nodelimiters)
    assert [[word["word"] for word in sentence] for sentence in answer] == [
        ["the", "<UNK>", "sat"],
        [],
        ["cat"],
    ]
    for sentence, words in zip([["the", "zebra", "sat"], [], ["cat"]], answer, strict=True):
        expected = expected_substitutes(sentence, delimiters=not nodelimiters)
        for word, sides in zip(words, expected, strict=True):
            for name, (order, logs) in sides.items():
                assert word[name]["candidates"] == [int(row) for row in order[:3]]
                assert word[name]["candidate_words"] == [WORDS[row] for row in order[:3]]
                np.testing.assert_allclose(word[name]["logp"], logs[:3], atol=1e-5)


def test_full_goes_past_hdf5_weights(full_folder):
    write_folder(full_folder, names=("options.json", "model.hdf5"))
    model = ElmoModel()
    model.load(full_folder)
    with pytest.raises(ConfigError, match="load the model with full=True"):
        model.get_elmo_substitutes(["the"])
    model.load(full_folder, full=True)
    assert model.get_elmo_vectors([["the"]]).shape == (1, 1, 6)
    assert len(model.get_elmo_substitutes(["the"])[0]) == 1


def test_of_two_checkpoints_the_one_that_is_named(full_folder):
    write_checkpoint(full_folder / "model.ckpt-9", with_training({}, 10, 3))
    with pytest.raises(
        ModelFileError, match=r"holds the checkpoints model\.ckpt-9, model\.ckpt, and no file"
    ):
        ElmoModel().load(full_folder, full=True)
    (full_folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt"\n')
    ElmoModel().load(full_folder, full=True)


def test_misuse(model, folder, full_folder):
    with pytest.raises(ConfigError, match="call load"):
        ElmoModel().get_elmo_vectors(SENTENCES)
    with pytest.raises(ConfigError, match="no TensorFlow sessions"):
        model.get_elmo_vectors(SENTENCES, session=object())
    with pytest.raises(ConfigError, match="layers must be one of average, top, all, found 'mean'"):
        model.get_elmo_vectors(SENTENCES, layers="mean")
    for wrong in ("the cat", ["the cat"]):
        with pytest.raises(ConfigError, match="bare string 'the cat'"):
            model.get_elmo_vectors(wrong)
    with pytest.raises(ModelFileError, match="has no softmax, which full=True needs"):
        model.load(folder, full=True)
    (full_folder / "vocab.txt").unlink()
    with pytest.raises(ModelFileError, match=r"has no vocabulary \(vocab.txt\)"):
        model.load(full_folder, full=True)


def test_how_many_substitutes(full_folder):
    model = ElmoModel()
    model.load(full_folder, full=True)
    for topn, nodelimiters, most in ((0, True, 8), (9, True, 8), (11, False, 10)):
        with pytest.raises(ConfigError, match=f"topn is {topn}; it takes 1 to {most},"):
            model.get_elmo_substitutes(["the"], topn=topn, nodelimiters=nodelimiters)
    with pytest.raises(ConfigError, match="bare string"):
        model.get_elmo_substitutes("the cat")
