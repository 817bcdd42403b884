"""Everything that can be wrong with a model's files, each with the message that says so."""

import json

import h5py
import numpy as np
import pytest

from elmokit import ConfigError, ElmoError, ModelFileError
from elmokit.formats import load as load_module
from elmokit.formats import load_model
from tests.tiny import WORDS, tiny_arrays, tiny_config, tiny_options, write_folder, write_hdf5

KERNEL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"


def refuses(message, *arguments, error=ModelFileError):
    """Check that loading fails with a message that has all of these parts."""
    with pytest.raises(error) as caught:
        load_model(*arguments)
    for part in (message,) if isinstance(message, str) else message:
        assert part in str(caught.value)


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "model")


def cut(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


# What was given is no model


def test_nothing_there(tmp_path):
    refuses(["missing: no such file or folder; expected a path to a model"], tmp_path / "missing")
    refuses("weights", write_folder(tmp_path), tmp_path / "missing.hdf5")
    refuses(["expected a file, it is missing"], tmp_path, tmp_path / "missing.hdf5")
    refuses(["expected a file, it is a folder"], tmp_path, tmp_path)


def test_addresses_are_not_fetched():
    refuses("elmokit never downloads; fetch the files yourself", "https://example.org/elmo.zip")


def test_a_text_in_place_of_a_path():
    refuses("is not a path to a model", "The bank raised its rates. " * 400)
    refuses("no such file or folder", "a\0b")


def test_folders_without_a_model(tmp_path):
    refuses("holds no options file (found nothing else)", tmp_path)
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8")
    refuses("holds no options file (found photo.jpg); pass the folder or file of an ELMo model", tmp_path)
    (tmp_path / "encoder.pkl").write_bytes(b"\x80\x02")
    refuses("ELMoForManyLangs model without its config.json, char.dic", tmp_path)


def test_missing_weights(folder):
    (folder / "lm_weights.hdf5").unlink()
    refuses("holds no HDF5 file with the weights of a biLM", folder)
    write_hdf5(folder / "lm_weights.hdf5", {"0": np.zeros(3)})
    refuses("holds no HDF5 file with the weights of a biLM", folder)
    message = f"holds no biLM of both directions: expected '{KERNEL}', found 0; pass the weights file"
    refuses(message, folder, folder / "lm_weights.hdf5")


def test_missing_options(folder):
    (folder / "options.json").unlink()
    refuses("holds no options file", folder)
    refuses("holds no options file", folder / "lm_weights.hdf5")


def test_several_options_or_weights(folder):
    write_hdf5(folder / "more.hdf5", tiny_arrays(tiny_config()))
    message = (
        "more than one HDF5 file with the weights of a biLM: lm_weights.hdf5, more.hdf5; pass one of them"
    )
    refuses(message, folder)
    (folder / "options2.json").write_text((folder / "options.json").read_text())
    message = "more than one options file: options.json, options2.json; pass that file instead of the folder"
    refuses(message, folder)


PAGE = "a web page (the download gave an error page instead of the file)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n", "run git lfs pull"),
        (b"<!DOCTYPE html><html>Not found</html>", PAGE),
        (b"\n<!doctype html><html>Not found</html>", PAGE),
        (b"<HTML><body>Not found</body></HTML>", PAGE),
        (b"\x1f\x8b\x08\x00", "a gzip file"),
        (b"\x80\x02}q", "a Python pickle"),
        (b"PK\x03\x04", "a zip archive"),
        (b"{}", "a JSON or text file"),
        (b"abc", "a text file"),
        (b"\x00\xfe\xff", "of an unknown kind"),
    ],
)
def test_something_else_in_place_of_the_weights(folder, content, message):
    (folder / "lm_weights.hdf5").write_bytes(content)
    refuses(["cannot be read as HDF5 weights: it is", message], folder, folder / "lm_weights.hdf5")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!doctype html>", f"is {PAGE}; expected a model folder, an options.json"),
        (b"{}", "is a JSON or text file; expected a model folder"),
        (b'{"lstm": {"dim"', "is not valid JSON"),
        (b'{"lstm": "dim"}', "is a JSON or text file; expected a model folder"),
        (b"\x80\x02}q", "is a Python pickle; expected a model folder"),
        (b"{" * 100_000, "is not valid JSON"),
        (b'{"a": ' + b"[" * 100_000, "is not valid JSON"),
        (b'{"a": "\xff"}', "is not valid JSON"),
        (b'{"a": "' + b"x" * 17_000_000 + b'"}', "17,000,009 bytes are too many for a configuration"),
    ],
)
def test_something_else_in_place_of_the_options(folder, content, message):
    (folder / "options.json").write_bytes(content)
    refuses(message, folder / "options.json")
    with pytest.raises(ElmoError):
        load_model(folder)


# Damaged or hostile HDF5


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.99])
def test_truncated_hdf5(folder, share):
    cut(folder / "lm_weights.hdf5", share)
    refuses(["cannot be read as HDF5 weights: it is an HDF5 file", "do that again and compare"], folder)


def test_missing_dataset(folder):
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        del file["CNN_proj/b_proj"]
    refuses("weights and options do not fit: CNN_proj/b_proj is missing, expected [3]", folder)


def test_wrong_shapes(folder):
    """Every size wrong: the first three are told, the others counted."""
    write_hdf5(folder / "lm_weights.hdf5", tiny_arrays(tiny_config(cell_dim=7)))
    message = f"{KERNEL} is [6, 28], expected [6, 20]"
    refuses([message, "(and 9 more); pass the options file that came with these weights"], folder)


def test_more_layers_in_the_weights_than_in_the_options(folder):
    write_hdf5(folder / "lm_weights.hdf5", tiny_arrays(tiny_config(num_layers=3)))
    refuses("RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/B is [20], expected none", folder)
    write_hdf5(folder / "lm_weights.hdf5", tiny_arrays(tiny_config(num_highway=2)))
    refuses("CNN_high_1/W_carry is [9, 9], expected none", folder)


def test_fewer_layers_in_the_weights_than_in_the_options(folder):
    write_hdf5(folder / "lm_weights.hdf5", tiny_arrays(tiny_config(num_layers=1)))
    refuses("Cell1/LSTMCell/W_0 is missing, expected [6, 20]", folder)


def test_word_options_for_a_character_model(folder):
    options = json.loads((folder / "options.json").read_text())
    del options["char_cnn"]
    (folder / "options.json").write_text(json.dumps(options))
    message = "options have no char_cnn, but the weights have no word vectors ('embedding') either"
    refuses(message, folder, error=ConfigError)


def test_words_without_a_vocabulary(tmp_path):
    refuses(
        "a model of 10 word vectors needs the vocabulary that names them",
        write_folder(tmp_path, tiny_config(words=10)),
    )


def test_a_vocabulary_of_another_size(tmp_path):
    folder = write_folder(tmp_path / "a", tiny_config(words=9), vocabulary=WORDS)
    refuses("the vocabulary has 10 words, the weights have 9 rows", folder)
    folder = write_folder(tmp_path / "b", vocabulary=WORDS, softmax=True)
    (folder / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
    refuses("the vocabulary has 3 words, the weights have 10 rows", folder)


def test_a_softmax_of_another_model(folder):
    arrays = {"softmax/W": np.zeros((5, 4), np.float32), "softmax/b": np.zeros(5, np.float32)}
    write_hdf5(folder / "s.hdf5", arrays)
    refuses("softmax and model do not fit: softmax/W is [5, 4], expected [5, 3]", folder)
    write_hdf5(folder / "s.hdf5", {"softmax/W": np.zeros((5, 3)), "softmax/b": np.zeros(5)})
    write_hdf5(folder / "t.hdf5", {"softmax/W": np.zeros((5, 3)), "softmax/b": np.zeros(5)})
    refuses("holds more than one softmax: s.hdf5, t.hdf5; keep only one", folder)


def huge_folder(tmp_path, changes, **how):
    """Options and weights that agree on a huge size of which hardly a byte is stored."""
    config = tiny_config(**changes)
    folder = write_folder(tmp_path, config, arrays={})
    with h5py.File(folder / "lm_weights.hdf5", "w") as file:
        for name, array in tiny_arrays(tiny_config()).items():
            shape = tuple(config.cell_dim * (size // 5) if size % 5 == 0 else size for size in array.shape)
            if shape == array.shape:
                file[name] = array
            else:
                file.create_dataset(name, shape, np.float32, **how)
    return folder


@pytest.mark.parametrize(
    "how", [{}, {"chunks": True}, {"chunks": True, "compression": "gzip", "fillvalue": 1.0}]
)
def test_a_huge_shape_is_refused_before_memory_is_taken(tmp_path, how):
    """6 × 40,000,000 float32 are 960 MB a kernel; the check comes before any array of that size."""
    folder = huge_folder(tmp_path, {"cell_dim": 10_000_000}, **how)
    assert (folder / "lm_weights.hdf5").stat().st_size < 1_000_000
    refuses(
        ["LSTMCell/W_0 declares 960,000,000 bytes of float32, the file stores ", "damaged or not a weights"],
        folder,
    )


def test_a_huge_softmax_is_refused_before_memory_is_taken(folder):
    with h5py.File(folder / "s.hdf5", "w") as file:
        file.create_dataset("softmax/W", (10**12, 3), np.float32, chunks=(1024, 3))
        file.create_dataset("softmax/b", (10**12,), np.float32, chunks=(1024,))
    bundle = load_model(folder)
    with pytest.raises(ModelFileError, match=r"softmax/W declares 12,000,000,000,000 bytes"):
        bundle.softmax.read()


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        (
            "links are not followed",
            lambda file, other: file.__setitem__(KERNEL, h5py.ExternalLink(other, KERNEL)),
        ),
        ("soft links lead nowhere", lambda file, other: file.__setitem__(KERNEL, h5py.SoftLink("/nowhere"))),
        ("a group is no dataset", lambda file, other: file.create_group(KERNEL)),
    ],
)
def test_links_and_groups_in_place_of_a_dataset(folder, tmp_path, kind, make):
    other = write_hdf5(tmp_path / "other.hdf5", tiny_arrays(tiny_config()))
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        del file[KERNEL]
        make(file, str(other))
    refuses("holds no biLM", folder, folder / "lm_weights.hdf5")


def test_data_outside_of_the_file_are_refused(folder, tmp_path):
    """An external file may be any file of the machine."""
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(6 * 20 * 4))
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        del file[KERNEL]
        file.create_dataset(KERNEL, (6, 20), np.float32, external=[(str(secret), 0, 480)])
    refuses(f"/{KERNEL} declares 480 bytes of float32", folder)


@pytest.mark.parametrize("dtype", ["S4", "i4", "?", "c8"])
def test_what_are_no_floats(folder, dtype):
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        del file["char_embed"]
        file["char_embed"] = np.zeros((261, 4), dtype)
    refuses("/char_embed declares", folder)


def test_an_empty_dataset(folder):
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        del file["char_embed"]
        file["char_embed"] = h5py.Empty("f4")
    refuses("char_embed is [], expected [261, 4]", folder)


# Options that cannot be


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        (None, {"lsmt": {}}, "options: unknown setting 'lsmt'; did you mean 'lstm'?"),
        ("lstm", {"cel_clip": 3}, "options, lstm: unknown setting 'cel_clip'; did you mean 'cell_clip'?"),
        (
            "char_cnn",
            {"n_highways": 3},
            "options, char_cnn: unknown setting 'n_highways'; did you mean 'n_highway'",
        ),
        (None, {"zzz": 1}, "options: unknown setting 'zzz'; known are lstm, char_cnn, bidirectional"),
        (None, {"char_cnn": []}, "options: 'char_cnn' must be an object with settings, found []"),
        ("char_cnn", {"embedding": 4}, "'embedding' must be an object with settings, found 4"),
        ("char_cnn", {"embedding": {}}, "char_cnn.embedding: 'dim' is missing; it has nothing"),
        (
            "char_cnn",
            {"n_characters": 263},
            "n_characters is 263, expected 261 (training) or 262 (prediction)",
        ),
        ("char_cnn", {"activation": "gelu"}, "activation must be one of relu, tanh, found 'gelu'"),
        ("char_cnn", {"filters": [[1]]}, "filters must be a list of [width, number] pairs, found [1] in it"),
        (
            "char_cnn",
            {"max_characters_per_token": 10**9},
            "max_characters must be a whole number from 3 to 10000,",
        ),
        (
            "char_cnn",
            {"n_highway": 10**6},
            "num_highway must be a whole number from 0 to 100, found 1000000",
        ),
        ("lstm", {"n_layers": 10**6}, "num_layers must be a whole number from 1 to 100, found 1000000"),
        ("lstm", {"n_layers": None}, "num_layers must be a whole number from 1 to 100, found None"),
        ("lstm", {"dim": 10**12}, "cell_dim must be a whole number from 1 to 10000000, found 1000000000000"),
        ("lstm", {"dim": "5"}, "cell_dim must be a whole number from 1 to 10000000, found '5'"),
        (
            "lstm",
            {"cell_clip": "3"},
            "cell_clip must be a finite number above 0 and at most 1000000000.0",
        ),
        (
            "lstm",
            {"cell_clip": -3},
            "cell_clip must be a finite number above 0 and at most 1000000000.0",
        ),
        ("lstm", {"use_skip_connections": "false"}, "skip_connections must be true or false, found 'false'"),
    ],
)
def test_options_that_cannot_be(folder, section, change, message):
    options = tiny_options(tiny_config())
    (options if section is None else options[section]).update(change)
    (folder / "options.json").write_text(json.dumps(options))
    refuses(message, folder, error=ConfigError)


@pytest.mark.parametrize(("section", "name"), [("lstm", "projection_dim"), ("char_cnn", "activation")])
def test_options_that_lack_something(folder, section, name):
    options = tiny_options(tiny_config())
    del options[section][name]
    (folder / "options.json").write_text(json.dumps(options))
    refuses(f"options, {section}: '{name}' is missing; it has ", folder, error=ConfigError)


def test_huge_sizes_that_the_weights_do_not_have(folder):
    options = tiny_options(
        tiny_config(cell_dim=10_000_000, projection_dim=10_000_000, embedding_dim=10_000_000)
    )
    (folder / "options.json").write_text(json.dumps(options))
    refuses("weights and options do not fit: char_embed is [261, 4], expected [261, 10000000]", folder)


def test_a_file_beside_the_model_that_cannot_be_read(tmp_path, monkeypatch):
    folder = write_folder(tmp_path / "model")
    (folder / "private.key").write_text("secret")
    is_kind = load_module.file_kind

    def closed(path):
        if path.name == "private.key":
            raise ModelFileError(f"{path}: cannot be read (Permission denied)")
        return is_kind(path)

    monkeypatch.setattr(load_module, "file_kind", closed)
    load_model(folder)
    (folder / "lm_weights.hdf5").unlink()
    with pytest.raises(ModelFileError, match=r"private\.key: cannot be read"):
        load_model(folder)


def test_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    folder = write_folder(tmp_path / "model")

    def closed(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(load_module, "_survey", closed)
    with pytest.raises(ModelFileError, match=r"model: cannot be read \(Permission denied\)"):
        load_model(folder)
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_model(folder / "options.json", "w" * 400)
