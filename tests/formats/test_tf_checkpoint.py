"""TensorFlow checkpoints: the same model as from HDF5, and what is refused."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import elmokit
from elmokit import ElmoError, ModelFileError
from elmokit.doctor import diagnose
from elmokit.formats import load_model, save_model
from elmokit.formats.crc32c import crc32c, masked_crc32c
from elmokit.formats.tf_checkpoint import TfCheckpoint
from tests.tf_files import bilm_names, masked, plain_crc, table, with_training, write_checkpoint
from tests.tiny import (
    WORDS,
    tiny_arrays,
    tiny_config,
    tiny_options,
    write_folder,
    write_hdf5,
    write_zip,
)

DIM = 3


def training_folder(folder, config=None, *, step=2500, variables=None, vocabulary=True, **settings):
    """A folder as bilm-tf's training leaves it."""
    config = config or tiny_config()
    folder.mkdir(parents=True, exist_ok=True)
    options = tiny_options(config, n_characters=261) | {"bidirectional": True, "n_tokens_vocab": len(WORDS)}
    (folder / "options.json").write_text(json.dumps(options))
    if vocabulary:
        (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    if variables is None:
        variables = with_training(bilm_names(tiny_arrays(config)), len(WORDS), DIM)
    write_checkpoint(folder / f"model.ckpt-{step}", variables, **settings)
    return folder


@pytest.fixture
def folder(tmp_path):
    return training_folder(tmp_path / "run")


def states(*bundles):
    return [bundle.model.state_dict() for bundle in bundles]


def assert_same_model(a, b):
    assert a.model.config == b.model.config
    ours, theirs = states(a, b)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_layers": 3, "skip_connections": False},
        {"cell_dim": 3, "projection": False},
        {"char_projection": False, "projection_dim": 9},
    ],
)
@pytest.mark.parametrize("settings", [{}, {"block_entries": 1, "shards": 2}, {"block_entries": 1000}])
def test_the_same_model_as_from_hdf5(tmp_path, changes, settings):
    config = tiny_config(**changes)
    arrays = tiny_arrays(config)
    hdf5 = write_folder(tmp_path / "hdf5", config, arrays=arrays)
    checkpoint = training_folder(tmp_path / "run", config, variables=bilm_names(arrays), **settings)
    assert_same_model(load_model(hdf5), load_model(checkpoint))


def test_a_model_of_one_layer(tmp_path):
    config = tiny_config(num_layers=1)
    arrays = tiny_arrays(config, one_cell=True)
    hdf5 = write_folder(tmp_path / "hdf5", config, arrays=arrays)
    checkpoint = training_folder(tmp_path / "run", config, variables=bilm_names(arrays))
    assert_same_model(load_model(hdf5), load_model(checkpoint))


def test_softmax_and_vocabulary(folder):
    bundle = load_model(folder)
    variables = with_training({}, len(WORDS), DIM)
    softmax = bundle.softmax.read()
    np.testing.assert_array_equal(softmax.weight, variables["lm/softmax/W"])
    np.testing.assert_array_equal(softmax.bias, variables["lm/softmax/b"])
    assert bundle.vocabulary.tokens == WORDS
    assert bundle.source.endswith("TensorFlow checkpoint " + str(folder / "model.ckpt-2500"))


def test_words_that_share_their_vectors_with_the_softmax(tmp_path):
    config = tiny_config(words=len(WORDS))
    variables = with_training(bilm_names(tiny_arrays(config)), len(WORDS), DIM)
    del variables["lm/softmax/W"]
    bundle = load_model(training_folder(tmp_path, config, variables=variables))
    np.testing.assert_array_equal(bundle.softmax.read().weight, variables["lm/embedding"])
    assert elmokit.Embedder(bundle).embed([["the", "zebra"]])[0].layers.shape == (3, 2, 6)


def test_saved_and_loaded_again(folder, tmp_path):
    bundle = load_model(folder)
    for format in ("native", "hdf5"):
        save_model(bundle, tmp_path / format, format=format)
        again = load_model(tmp_path / format)
        assert_same_model(bundle, again)
        assert torch.equal(again.softmax.read().weight, bundle.softmax.read().weight)


@pytest.mark.parametrize("name", ["model.ckpt-2500", "model.ckpt-2500.index"])
def test_by_prefix_or_index(folder, name):
    assert_same_model(load_model(folder), load_model(folder / name))
    assert_same_model(load_model(folder), load_model(folder / "options.json", folder / name))


def test_from_a_zip(folder, tmp_path):
    bundle = load_model(write_zip(tmp_path / "run.zip", folder, under="run"))
    assert bundle.softmax.read().weight.shape == (len(WORDS), DIM)


def test_of_two_checkpoints_the_one_that_is_named(folder):
    other = {name: array + 1 for name, array in bilm_names(tiny_arrays(tiny_config())).items()}
    write_checkpoint(folder / "model.ckpt-1250", other)
    with pytest.raises(ModelFileError, match=r"more than one TensorFlow checkpoint: model.ckpt-1250.index, "):
        load_model(folder)
    record = 'model_checkpoint_path: "/data/run/model.ckpt-{}"\nall_model_checkpoint_paths: "x"\n'
    for step in (2500, 1250):
        (folder / "checkpoint").write_text(record.format(step))
        assert_same_model(load_model(folder), load_model(folder / f"model.ckpt-{step}"))
    (folder / "checkpoint").write_text(record.format(9))
    with pytest.raises(ModelFileError, match="more than one TensorFlow checkpoint"):
        load_model(folder)


def test_hdf5_weights_go_first(folder):
    arrays = {name: array * 2 for name, array in tiny_arrays(tiny_config()).items()}
    write_hdf5(folder / "weights.hdf5", arrays)
    assert "HDF5" in load_model(folder).source
    assert "TensorFlow" in load_model(folder, folder / "model.ckpt-2500").source


def test_doctor(folder):
    levels = [finding.level for finding in diagnose(folder)]
    assert levels[0] == "ok"
    assert "error" not in levels


def test_half_and_double_precision(tmp_path):
    variables = {
        "half": np.arange(3, dtype=np.float16),
        "double": np.ones((2, 0, 3)),
        "scalar": np.array(2.5, np.float32),
    }
    checkpoint = TfCheckpoint(write_checkpoint(tmp_path / "x", variables))
    assert checkpoint.read("half").tolist() == [0, 1, 2]
    assert checkpoint.read("double").shape == (2, 0, 3)
    assert checkpoint.read("scalar").item() == 2.5


class TestDamage:
    def refuses(self, folder, message):
        with pytest.raises(ModelFileError, match=message):
            load_model(folder).softmax.read()

    def test_a_changed_number(self, folder):
        path = folder / "model.ckpt-2500.data-00000-of-00001"
        content = bytearray(path.read_bytes())
        place = content.find(tiny_arrays(tiny_config())["char_embed"].tobytes()[:40])
        content[place + 5] ^= 1
        path.write_bytes(content)
        self.refuses(folder, "the checksum of lm/char_embed is wrong")

    def test_a_changed_softmax_is_found_when_it_is_read(self, folder):
        path = folder / "model.ckpt-2500.data-00000-of-00001"
        content = bytearray(path.read_bytes())
        place = content.find(with_training({}, len(WORDS), DIM)["lm/softmax/W"].tobytes())
        content[place] ^= 1
        path.write_bytes(content)
        elmokit.load(folder)
        self.refuses(folder, "the checksum of lm/softmax/W is wrong")

    def test_data_cut_short(self, folder):
        path = folder / "model.ckpt-2500.data-00000-of-00001"
        path.write_bytes(path.read_bytes()[:1000])
        self.refuses(folder, "the file has 1,000; it is truncated")

    def test_data_missing(self, folder):
        (folder / "model.ckpt-2500.data-00000-of-00001").unlink()
        self.refuses(
            folder, "model.ckpt-2500.data-00000-of-00001: is missing; it belongs beside model.ckpt-2500"
        )

    def test_every_byte_of_the_index_counts(self, folder):
        """But for those of the footer and the empty block that nothing refers to."""
        path = folder / "model.ckpt-2500.index"
        whole = path.read_bytes()
        for place in range(0, len(whole) - 48 - 13, 97):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
            with pytest.raises(ModelFileError, match=r"checksum is wrong|do not fit|holds no|is missing"):
                load_model(folder)

    @pytest.mark.parametrize("keep", [0, 10, 47, 48, 500])
    def test_an_index_cut_short_is_none(self, folder, keep):
        path = folder / "model.ckpt-2500.index"
        path.write_bytes(path.read_bytes()[:keep])
        self.refuses(folder, "holds no HDF5 file with the weights")
        self.refuses(path, "expected a model folder")

    @given(st.binary(max_size=200), st.data())
    def test_nonsense_with_the_right_end(self, content, data):
        """Whatever stands in the index, the answer is an error of ours or a table."""
        handles = data.draw(st.binary(min_size=40, max_size=40))
        folder = self.scratch
        (folder / "model.ckpt-2500.index").write_bytes(
            content + handles + struct.pack("<Q", 0xDB4775248B80FB57)
        )
        with pytest.raises(ElmoError):
            load_model(folder)

    @given(st.binary(max_size=60))
    def test_nonsense_in_a_right_table(self, value):
        folder = self.scratch
        records = {b"": b"\x08\x01", b"lm/char_embed": value}
        (folder / "model.ckpt-2500.index").write_bytes(table(records, 7))
        with pytest.raises(ElmoError):
            load_model(folder)

    @pytest.fixture(autouse=True)
    def _scratch(self, tmp_path):
        self.scratch = training_folder(tmp_path / "scratch")

    def test_a_shape_that_would_fill_the_memory(self, folder):
        """The index says 2^40 numbers, the options too; the data file is small."""
        options = json.loads((folder / "options.json").read_text())
        del options["char_cnn"]
        (folder / "options.json").write_text(json.dumps(options))
        rows = 9_000_000
        variables = bilm_names(tiny_arrays(tiny_config(words=1)))
        index = write_checkpoint(folder / "model.ckpt-2500", variables)
        real, huge = b"\x12\x02\x08\x01\x12\x02\x08\x03", b"\x12\x05\x08" + bytes([0xC0, 0xA8, 0xA5, 0x04])
        content = index.read_bytes()
        assert content.count(real) == 1
        records = {}
        from elmokit.formats.tf_checkpoint import _read_table

        for key, value in _read_table(content):
            if key == b"lm/embedding":
                value = value.replace(b"\x12\x08" + real, b"\x12\x0b" + huge + real[4:])
            records[key] = value
        index.write_bytes(table(records, 7))
        assert TfCheckpoint(index).shapes()["lm/embedding"] == (rows, 3)
        self.refuses(folder, rf"takes {rows * 12:,} bytes, the index gives it 12 ")

    def test_compressed(self, folder):
        path = folder / "model.ckpt-2500.index"
        whole = bytearray(path.read_bytes())
        records = table({b"": b"\x08\x01"}, 1)
        block = records[: records.index(b"\0\0\0\0\x01\0\0\0") + 8]
        whole = bytearray(records)
        whole[len(block)] = 1  # Snappy
        whole[len(block) + 1 : len(block) + 5] = struct.pack("<I", masked(block + b"\1"))
        path.write_bytes(whole)
        self.refuses(folder, "it is compressed, which TensorFlow's checkpoints are not")

    def test_variables_in_slices_or_of_whole_numbers(self, tmp_path):
        checkpoint = TfCheckpoint(write_checkpoint(tmp_path / "x", {"step": np.array(3, np.int64)}))
        with pytest.raises(ModelFileError, match="not as floating point numbers"):
            checkpoint.read("step")
        checkpoint._variables["step"] = replace(checkpoint._variables["step"], dtype=1, in_slices=True)
        with pytest.raises(ModelFileError, match="step is stored in slices"):
            checkpoint.read("step")

    def test_an_index_that_is_no_index(self, folder):
        path = folder / "model.ckpt-2500.index"
        path.write_bytes(bytes(16 * 1024 * 1024) + path.read_bytes())
        self.refuses(folder, "too many for the index")

    def test_big_endian(self, folder):
        (folder / "model.ckpt-2500.index").write_bytes(table({b"": b"\x08\x01\x10\x01"}, 1))
        self.refuses(folder, "its numbers are big-endian")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.pop("lm/char_embed"), "lm/char_embed is missing, expected"),
        (lambda v: v.update({"lm/CNN/W_cnn_9": np.ones(2, np.float32)}), "expected none"),
        (
            lambda v: v.update({"lm/softmax/b": np.ones(2, np.float32)}),
            r"lm/softmax/b is \[2\], expected \[10\]",
        ),
        (lambda v: [v.pop(name) for name in list(v) if "RNN_0" in name], "holds no biLM of both directions"),
    ],
)
def test_checkpoints_that_do_not_fit(tmp_path, change, message):
    variables = with_training(bilm_names(tiny_arrays(tiny_config())), len(WORDS), DIM)
    change(variables)
    with pytest.raises(ModelFileError, match=message):
        load_model(training_folder(tmp_path, variables=variables))


def test_a_vocabulary_of_another_size(folder):
    (folder / "vocab.txt").write_text("<S>\n</S>\n")
    with pytest.raises(ModelFileError, match="the vocabulary has 2 words, the weights have 10 rows"):
        load_model(folder)


@given(st.binary(max_size=300), st.integers(0, 5000))
def test_checksums(data, zeros):
    """Short data byte by byte, long data by lanes: the textbook's either way."""
    for content in (data, data + bytes(zeros) + data[::-1]):
        assert crc32c(content) == plain_crc(content)
        assert masked_crc32c(content) == masked(content)


def test_checksum_of_more_than_one_round_of_lanes():
    data = np.random.default_rng(0).integers(0, 256, 70_001, np.uint8).tobytes()
    assert crc32c(data) == plain_crc(data)
