"""What is read is what was written, bit for bit, through every format; and models are known by content."""

import gzip
import json
import shutil
import zipfile

import h5py
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from elmokit.formats import load_model, save_model
from elmokit.text import TokenizerSpec
from tests.tiny import (
    WORDS,
    tiny_arrays,
    tiny_bundle,
    tiny_config,
    tiny_model,
    tiny_options,
    write_folder,
    write_hdf5,
    write_zip,
)

SHAPES = {
    "as published": {},
    "one layer": {"num_layers": 1},
    "three layers": {"num_layers": 3},
    "no projections": {"cell_dim": 9, "projection_dim": 9, "projection": False, "char_projection": False},
    "no highway, no clips, no skips": {
        "num_highway": 0,
        "cell_clip": None,
        "projection_clip": None,
        "skip_connections": False,
    },
    "two highways, tanh": {"num_highway": 2, "activation": "tanh"},
    "words": {"words": len(WORDS)},
    "other tokens": {"max_characters": 20},
}


def datasets(path):
    """Every dataset of a file."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: found.update({name: item[...]}) if hasattr(item, "shape") else None
        )
    return found


def assert_same_arrays(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def assert_same_model(a, b):
    assert a.config == b.config
    assert a.state_dict().keys() == b.state_dict().keys()
    for name, tensor in a.state_dict().items():
        assert torch.equal(tensor, b.state_dict()[name]), name


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES.keys())
def test_hdf5_to_native_to_hdf5(changes, tmp_path):
    config = tiny_config(**changes)
    arrays = tiny_arrays(config)
    old = load_model(write_folder(tmp_path / "old", config, arrays=arrays, vocabulary=WORDS, softmax=True))
    save_model(old, tmp_path / "native")
    native = load_model(tmp_path / "native")
    save_model(native, tmp_path / "new", format="hdf5")
    assert old.model.config == native.model.config == config
    assert_same_model(old.model, native.model)
    assert_same_arrays(datasets(tmp_path / "new" / "weights.hdf5"), arrays)
    softmax = datasets(tmp_path / "old" / "softmax_weights.hdf5")
    assert_same_arrays(datasets(tmp_path / "new" / "softmax_weights.hdf5"), softmax)
    assert (tmp_path / "new" / "vocab.txt").read_bytes() == (tmp_path / "old" / "vocab.txt").read_bytes()
    options = json.loads((tmp_path / "new" / "options.json").read_text())
    assert options["lstm"] == tiny_options(config)["lstm"]
    assert options.get("char_cnn") == tiny_options(config).get("char_cnn")
    assert_same_model(load_model(tmp_path / "new").model, native.model)


@pytest.mark.parametrize("n_characters", [261, 262])
def test_both_counts_of_characters(n_characters, tmp_path):
    config = tiny_config()
    folder = write_folder(tmp_path, config, options=tiny_options(config, n_characters=n_characters))
    assert load_model(folder).model.config == config


def test_both_names_of_the_one_layer(tmp_path):
    config = tiny_config(num_layers=1)
    models = []
    for one_cell in (False, True):
        arrays = tiny_arrays(config, one_cell=one_cell)
        models.append(load_model(write_folder(tmp_path / str(one_cell), config, arrays=arrays)).model)
    assert_same_model(*models)


def test_options_may_leave_out_what_has_a_default(tmp_path):
    """n_layers is then 1, n_highway 0, and there are no clips and no skips, as bilm-tf has it."""
    changes = {"cell_clip": None, "projection_clip": None, "skip_connections": False}
    config = tiny_config(num_layers=1, num_highway=0, **changes)
    options = tiny_options(config)
    for name in ("n_layers", "cell_clip", "proj_clip", "use_skip_connections"):
        del options["lstm"][name]
    for name in ("n_characters", "max_characters_per_token", "n_highway"):
        del options["char_cnn"][name]
    options |= {"bidirectional": True, "n_epochs": 10, "reverse": False}  # seen in published files
    assert load_model(write_folder(tmp_path, config, options=options)).model.config == config


def test_a_clip_of_nought_is_none(tmp_path):
    config = tiny_config(cell_clip=None, projection_clip=None)
    options = tiny_options(config)
    options["lstm"] |= {"cell_clip": 0, "proj_clip": 0}
    assert load_model(write_folder(tmp_path, config, options=options)).model.config == config


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.dtype(">f4")])
def test_other_floating_types_are_read(dtype, tmp_path):
    config = tiny_config()
    arrays = {name: array.astype(dtype) for name, array in tiny_arrays(config).items()}
    bundle = load_model(write_folder(tmp_path, config, arrays=arrays))
    expected = arrays["CNN_proj/b_proj"].astype(np.float32)
    np.testing.assert_array_equal(bundle.model.encoder.projection.bias.detach(), expected)


def test_compressed_datasets_are_read(tmp_path):
    config = tiny_config()
    folder = write_folder(tmp_path, config)
    with h5py.File(folder / "lm_weights.hdf5", "w") as file:
        for name, array in tiny_arrays(config).items():
            file.create_dataset(name, data=array, compression="gzip", chunks=True)
    assert_same_model(load_model(folder).model, load_model(write_folder(tmp_path / "plain", config)).model)


def test_the_native_folder_holds_all(tmp_path):
    save_model(tiny_bundle(tokenizer="characters", vocabulary=True, softmax=True), tmp_path / "model")
    names = {"config.json", "model.safetensors", "vocab.txt", "softmax.safetensors", "README.md"}
    assert {path.name for path in (tmp_path / "model").iterdir()} == names
    bundle = load_model(tmp_path / "model")
    assert bundle.tokenizer == TokenizerSpec(name="characters")
    assert bundle.vocabulary.tokens == WORDS
    assert bundle.softmax.num_words == len(WORDS)
    softmax = bundle.softmax.read()
    assert softmax.bias.tolist() == list(range(len(WORDS)))
    assert softmax.weight.shape == (len(WORDS), 3)
    assert "# An ELMo model" in bundle.card
    assert not bundle.model.training


def test_a_card_is_kept(tmp_path):
    save_model(tiny_bundle(), tmp_path / "one")
    (tmp_path / "one" / "README.md").write_text("# Ours, 中文\n", encoding="utf-8")
    save_model(load_model(tmp_path / "one"), tmp_path / "two")
    assert (tmp_path / "two" / "README.md").read_text(encoding="utf-8") == "# Ours, 中文\n"


def test_float16_is_the_nearest_float16(tmp_path):
    model = tiny_model()
    save_model(tiny_bundle(model), tmp_path / "half", dtype="float16")
    loaded = load_model(tmp_path / "half").model
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor.half().float())
    stored = load_file(tmp_path / "half" / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}


def test_an_empty_folder_may_be_the_target(tmp_path):
    (tmp_path / "model").mkdir()
    save_model(tiny_bundle(), tmp_path / "model")
    load_model(tmp_path / "model")
    save_model(tiny_bundle(), tmp_path / "deep" / "er" / "model")
    load_model(str(tmp_path / "deep" / "er" / "model"))


# Known by content


@pytest.fixture
def expected():
    """The model that `write_folder` writes."""
    return tiny_arrays(tiny_config())["CNN_proj/b_proj"]


def loads(expected, *arguments):
    bundle = load_model(*arguments)
    np.testing.assert_array_equal(bundle.model.encoder.projection.bias.detach(), expected)
    return bundle


def test_odd_file_names(tmp_path, expected):
    loads(expected, write_folder(tmp_path, names=("my settings.txt", "weights.bin")))


def test_other_files_beside_the_weights(tmp_path, expected):
    folder = write_folder(tmp_path)
    write_hdf5(folder / "a_embeddings.hdf5", {"0": np.zeros((2, 3)), "sentence_to_index": np.zeros(1)})
    write_hdf5(folder / "z_tokens.hdf5", {"embedding": np.zeros((4, 3), np.float32)})
    (folder / "sentences.json").write_text('{"0": "a sentence"}')
    (folder / "broken.json").write_text('{"lstm":')
    (folder / "notes.md").write_text("notes")
    (folder / "more").mkdir()
    damaged = (folder / "lm_weights.hdf5").read_bytes()[:3000]
    (folder / "b_damaged.hdf5").write_bytes(damaged)
    loads(expected, folder)
    loads(expected, folder / "options.json")
    loads(expected, folder / "lm_weights.hdf5")


def test_several_weights_and_one_is_given(tmp_path, expected):
    folder = write_folder(tmp_path)
    other = write_hdf5(folder / "other.hdf5", tiny_arrays(tiny_config(), seed=9))
    loads(expected, folder, folder / "lm_weights.hdf5")
    assert not np.array_equal(load_model(folder, other).model.encoder.projection.bias.detach(), expected)


def test_options_and_weights_apart(tmp_path, expected):
    folder = write_folder(tmp_path / "weights")
    (tmp_path / "options").mkdir()
    options = shutil.move(folder / "options.json", tmp_path / "options" / "options.json")
    loads(expected, options, folder / "lm_weights.hdf5")
    loads(expected, str(tmp_path / "options"), str(folder / "lm_weights.hdf5"))


@pytest.mark.parametrize("under", ["", "193", "deep/er"])
def test_zips(tmp_path, expected, under):
    folder = write_folder(tmp_path / "193", vocabulary=WORDS, softmax=True)
    (folder / "meta.json").write_text('{"id": 193}')
    bundle = loads(expected, write_zip(tmp_path / "193.zip", folder, under=under))
    assert bundle.vocabulary.tokens == WORDS
    shutil.rmtree(folder)
    softmax = bundle.softmax.read()  # the unpacked file is gone by now
    assert softmax.weight.shape == (len(WORDS), 3)
    assert bundle.source == f"zip {tmp_path / '193.zip'}"


def test_a_zip_with_a_meta_file_above_the_model(tmp_path, expected):
    (tmp_path / "meta.json").write_text('{"id": 1}')
    write_folder(tmp_path / "model", names=("settings", "weights"))
    archive = write_zip(tmp_path / "a.zip", tmp_path / "model", under="model")
    with zipfile.ZipFile(archive, "a") as file:
        file.write(tmp_path / "meta.json", "meta.json")
    loads(expected, archive)


def test_a_zip_of_a_native_folder(tmp_path):
    save_model(tiny_bundle(softmax=True, vocabulary=True), tmp_path / "model")
    bundle = load_model(write_zip(tmp_path / "model.zip", tmp_path / "model", under="model"))
    assert_same_model(bundle.model, tiny_model())
    assert bundle.softmax.read().bias[3] == 3


def test_the_config_file_of_a_native_folder(tmp_path):
    save_model(tiny_bundle(), tmp_path / "model")
    assert_same_model(load_model(tmp_path / "model" / "config.json").model, tiny_model())


def test_a_compressed_vocabulary_is_preferred(tmp_path):
    folder = write_folder(tmp_path, vocabulary=("<S>", "</S>", "<UNK>"))
    (folder / "vocab.txt.gz").write_bytes(gzip.compress(b"<S>\n</S>\n<UNK>\ncat\n"))
    assert load_model(folder).vocabulary.tokens == ("<S>", "</S>", "<UNK>", "cat")


def test_options_with_a_byte_order_mark(tmp_path, expected):
    folder = write_folder(tmp_path)
    options = folder / "options.json"
    options.write_bytes(b"\xef\xbb\xbf" + options.read_bytes())
    loads(expected, folder)
