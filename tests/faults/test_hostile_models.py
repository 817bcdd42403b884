"""Small model files made to exhaust memory or time, or to load as something else than they are."""

import gzip
import json
import pickle
import struct
import sys
import zipfile
import zlib
from collections import Counter
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit import ModelFileError, read_vectors
from elmokit.formats import load_model, save_model
from elmokit.model import fit_statistics
from elmokit.training import Checkpoints
from tests.faults.limited import run_limited
from tests.many_langs import write_folder as write_many_langs
from tests.tf_files import MAGIC, _field, _varint, bilm_names, masked, table, write_checkpoint
from tests.tiny import (
    forget_digests,
    tiny_arrays,
    tiny_bundle,
    tiny_config,
    tiny_options,
    write_folder,
    write_zip,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
KERNEL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"


def load_all(path):
    bundle = load_model(path)
    if bundle.softmax is not None:
        bundle.softmax.read()


def size_of(path):
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def refused(message, path):
    found = run_limited(lambda: load_all(path), size=size_of(path))
    assert found.kind == "refused", found
    assert message in found.message


# TensorFlow checkpoints


@pytest.fixture
def checkpoint(tmp_path):
    config = tiny_config()
    (tmp_path / "options.json").write_text(json.dumps(tiny_options(config)))
    write_checkpoint(tmp_path / "model.ckpt-1", bilm_names(tiny_arrays(config)))
    return tmp_path


def write_index(path, blocks, handles):
    """Write a table of these blocks; `handles` gets their handles and lists those of the table."""
    out = bytearray()

    def add(block):
        handle = _varint(len(out)) + _varint(len(block))
        # The textbook's checksum takes a microsecond a bit: all blocks here begin with the same bytes.
        out.extend(block + b"\0" + struct.pack("<I", fast_masked(block + b"\0")))
        return handle

    finder = entries([(b"%06d" % n, h) for n, h in enumerate(handles([add(block) for block in blocks]))])
    footer = add(entries([])) + add(finder)
    path.write_bytes(bytes(out) + footer.ljust(40, b"\0") + struct.pack("<Q", MAGIC))


def fast_masked(data):
    from elmokit.formats.crc32c import masked_crc32c

    assert masked(data[:100]) == masked_crc32c(data[:100])
    return masked_crc32c(data)


def entries(items, shared=0):
    """Return a block; each key but the first repeats `shared` bytes of the one before."""
    out = bytearray()
    for number, (key, value) in enumerate(items):
        repeated = shared if number else 0
        out += _varint(repeated) + _varint(len(key)) + _varint(len(value)) + key + value
    return bytes(out) + struct.pack("<2I", 0, 1)


def test_names_that_repeat_each_other(checkpoint):
    """100,000 names share 100 KB: a table of 650 KB would need 10 GB."""
    block = entries([(b"a" * 100_000, b""), *((b"%05d" % n, b"") for n in range(70_000))], shared=100_000)
    write_index(checkpoint / "model.ckpt-1.index", [block], list)
    refused("its names repeat each other without end", checkpoint)


def test_many_handles_to_one_block(checkpoint):
    block = entries([(b"%05d" % n, b"x" * 20) for n in range(1000)])
    write_index(checkpoint / "model.ckpt-1.index", [block], lambda handles: handles * 1000)
    refused("its blocks overlap", checkpoint)


def test_variables_that_share_their_numbers(checkpoint, monkeypatch):
    """Twenty layers whose kernels are the same bytes of the data file."""
    monkeypatch.setattr("elmokit.formats.layout._SLACK", 0)
    config = tiny_config(cell_dim=64, projection_dim=32, num_layers=20)
    (checkpoint / "options.json").write_text(json.dumps(tiny_options(config)))
    records = {b"": _field(1, 1) + _field(3, _field(1, 1))}
    for name, array in bilm_names(tiny_arrays(config)).items():
        content = bytes(array.nbytes)
        records[name.encode()] = b"".join(
            [
                _field(1, 1),
                _field(2, b"".join(_field(2, _field(1, size)) for size in array.shape)),
                _field(5, len(content)),
                _varint(6 << 3 | 5) + struct.pack("<I", fast_masked(content)),
            ]
        )
    (checkpoint / "model.ckpt-1.data-00000-of-00001").write_bytes(bytes(1 << 17))
    (checkpoint / "model.ckpt-1.index").write_bytes(table(records, 7))
    refused("bytes of memory, but are stored in 131,072", checkpoint)


# HDF5


def add_bomb(file, name, shape):
    """Add a dataset whose only chunk is far larger than itself, and deflated twice."""
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk((1 << 13, 1 << 13))
    made.set_deflate(9)
    made.set_deflate(9)
    space = h5py.h5s.create_simple(shape, (h5py.h5s.UNLIMITED,) * 2)
    dataset = h5py.h5d.create(file.id, name.encode(), h5py.h5t.IEEE_F32LE, space, made)
    deflate = zlib.compressobj(9)
    zeros = bytes(1 << 20)
    once = b"".join(deflate.compress(zeros) for _ in range(256)) + deflate.flush()
    dataset.write_direct_chunk((0, 0), zlib.compress(once, 9))


def test_a_chunk_that_is_deflated_twice(tmp_path):
    """Some KB of HDF5 whose one chunk unpacks to 256 MB."""
    folder = write_folder(tmp_path / "model")
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        del file[KERNEL]
        add_bomb(file, KERNEL, (6, 20))
    assert size_of(folder) < 50_000
    refused("W_0 has the filters [1, 1]; unpack it with h5repack", folder)


def test_vectors_in_a_chunk_that_is_deflated_twice(tmp_path):
    path = tmp_path / "vectors.h5"
    with h5py.File(path, "w") as file:
        add_bomb(file, "0", (3, 4))
    found = run_limited(lambda: read_vectors(path)[0], size=size_of(path))
    assert found.kind == "refused"
    assert "has the filters [1, 1]" in found.message


def test_a_chunk_that_unpacks_to_more_than_it_is(tmp_path):
    """One deflate filter, an honest chunk size, and content that goes on for 256 MB."""
    folder = write_folder(tmp_path / "model")
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        del file[KERNEL]
        dataset = file.create_dataset(KERNEL, (6, 20), "<f4", chunks=(6, 20), compression="gzip")
        dataset.id.write_direct_chunk((0, 0), zlib.compress(bytes(1 << 28)))
    refused("a chunk of /RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0 has 481 bytes, expected 480", folder)


def test_datasets_that_are_one_and_the_same(tmp_path):
    config = tiny_config(cell_dim=256, projection_dim=128, num_layers=60)
    folder = write_folder(tmp_path / "model", config, arrays={})
    with h5py.File(folder / "lm_weights.hdf5", "w") as file:
        kept = {}
        for name, array in tiny_arrays(config).items():
            file[name] = kept.setdefault(array.shape, array if array.shape not in kept else None)
            kept[array.shape] = file[name]
    assert size_of(folder) < 2_000_000
    refused("bytes of memory, but are stored in", folder)


def test_groups_in_a_circle(tmp_path):
    folder = write_folder(tmp_path / "model")
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        file["CNN/circle"] = file["CNN"]
    refused("CNN/circle is [], expected none", folder)


def test_groups_with_many_names(tmp_path):
    """Nine groups within each other, each with two hundred names: 200⁹ paths in 190 KB."""
    folder = write_folder(tmp_path / "model")
    with h5py.File(folder / "lm_weights.hdf5", "a") as file:
        group = file["CNN"]
        for _ in range(9):
            inner = group.create_group("inner")
            for number in range(200):
                group[str(number)] = inner
            group = inner
    refused("(and 1797 more)", folder)


@pytest.mark.parametrize("filters", [{}, {"shuffle": True}, {"shuffle": True, "fletcher32": True}])
def test_compressed_weights_are_read_as_they_were(tmp_path, filters):
    arrays = tiny_arrays(tiny_config())
    folder = write_folder(tmp_path / "model", arrays={})
    with h5py.File(folder / "lm_weights.hdf5", "w") as file:
        for name, array in arrays.items():
            chunks = tuple(-(-size // 2) for size in array.shape)
            file.create_dataset(name, data=array, chunks=chunks, compression="gzip", **filters)
    kernel = load_model(folder).model.layers[0].state_dict()["projection"][0]
    np.testing.assert_array_equal(kernel.T, arrays[KERNEL.replace("W_0", "W_P_0")])


# Archives, vocabularies, configs


def test_a_vocabulary_that_is_compressed_by_content(tmp_path):
    """Ten KB of zip, a vocab.txt of gzip in it, 32 MB of words in that."""
    folder = write_folder(tmp_path / "model", softmax=True)
    (folder / "vocab.txt").write_bytes(gzip.compress(b"a\n" * (16 << 20), 9))
    archive = write_zip(tmp_path / "model.zip", folder)
    assert size_of(archive) < 20_000
    refused("'vocab.txt' in it is compressed once more", archive)
    refused("vocab.txt: refused: it unpacks to more than", folder)


def test_a_vocabulary_with_more_words_than_the_softmax(tmp_path):
    folder = write_folder(tmp_path / "model", softmax=True)
    (folder / "vocab.txt").write_bytes(b"".join(b"%x\n" % number for number in range(500_000)))
    refused("the vocabulary has 500000 words, the weights have 10 rows", folder)


def native(tmp_path, **how):
    save_model(tiny_bundle(vocabulary=True, softmax=True), tmp_path / "native", **how)
    return tmp_path / "native"


def change_config(folder, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_hundred_thousand_filters(tmp_path):
    folder = native(tmp_path)
    change_config(folder, lambda config: config["model"]["encoder"].update(filters=[[1, 1]] * 100_000))
    refused("filters must be at most 100 [width, number] pairs, found 100,000", folder)


def test_two_hundred_thousand_filters(tmp_path):
    folder = native(tmp_path)
    change_config(folder, lambda config: config["model"]["encoder"].update(filters=[[1, 1]] * 200_000))
    refused("bytes are too many for a configuration", folder)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("9" * 5000, "config.json: is not valid JSON (Exceeds the limit"),
        ("[" * 3000 + "]" * 3000, "config.json: is not valid JSON (brackets are nested"),
        ("[" * 500 + "]" * 500, "config.json: is not valid JSON (brackets are nested"),
        ("1" + "0" * 400, " must be "),
    ],
    ids=["digits", "brackets", "some brackets", "huge"],
)
@pytest.mark.parametrize("key", ["cell_dim", "cell_clip", "projection", "filters"])
def test_settings_beyond_all_bounds(tmp_path, key, value, message):
    folder = native(tmp_path)
    change_config(folder, lambda config: find(config, key).update({key: "HERE"}))
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"HERE"', value))
    refused(message, folder)


def find(settings, key):
    """Return the table that has a key."""
    inside = (value for value in settings.values() if isinstance(value, dict))
    return settings if key in settings else next(filter(None, (find(table, key) for table in inside)), None)


def test_more_symbols_than_a_lexicon_has(tmp_path):
    """A symbol of ten bytes takes more than a hundred in memory."""
    write_many_langs(tmp_path / "many-langs")
    save_model(load_model(tmp_path / "many-langs"), tmp_path / "native")
    forget_digests(tmp_path / "native")
    symbols = ",".join(f'"{number:x}":1' for number in range(1_500_000))
    (tmp_path / "native" / "lexicon.json").write_text(f'{{"characters":{{{symbols}}},"words":null}}')
    refused("characters hold too many values", tmp_path / "native")


# Weights of other types


@pytest.mark.parametrize("name", ["model.safetensors", "softmax.safetensors"])
def test_more_tensors_than_a_model_has(tmp_path, name):
    folder = native(tmp_path)
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"tensor {number}": entry for number in range(150_000)}).encode()
    (folder / name).write_bytes(struct.pack("<Q", len(header)) + header)
    forget_digests(folder)
    refused(f"its header has {len(header):,} bytes, expected at most 4,194,304", folder)


@pytest.mark.parametrize("name", ["model.safetensors", "softmax.safetensors"])
def test_int8_weights_without_a_scale(tmp_path, name):
    folder = native(tmp_path, dtype="int8")
    tensors = load_file(folder / name)
    scale = next(key for key in tensors if key.endswith(".scale"))
    del tensors[scale]
    save_file(tensors, folder / name)
    forget_digests(folder)
    refused(f"{name}: int8 weights and their scales do not fit: {scale} is missing", folder)


@pytest.mark.parametrize("value", [0.0, float("nan"), -1.0])
def test_scales_that_are_none(tmp_path, value):
    folder = native(tmp_path, dtype="int8")
    tensors = load_file(folder / "model.safetensors")
    tensors["layers.0.input_weight.scale"][0, 0] = value
    save_file(tensors, folder / "model.safetensors")
    forget_digests(folder)
    refused("layers.0.input_weight.scale has numbers that are no scales", folder)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8, torch.int8])
def test_weights_that_are_no_fractions(tmp_path, dtype):
    folder = native(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    tensors["layers.0.bias"] = tensors["layers.0.bias"].to(dtype)
    save_file(tensors, folder / "model.safetensors")
    forget_digests(folder)
    stored = "layers.0.bias.scale is missing" if dtype == torch.int8 else "layers.0.bias is stored as "
    refused(stored, folder)


@pytest.mark.parametrize("name", ["model.safetensors", "softmax.safetensors", "vocab.txt"])
def test_files_that_changed_since_they_were_saved(tmp_path, name):
    folder = native(tmp_path)
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 1
    (folder / name).write_bytes(content)
    refused(f"{name}: has changed since it was saved", folder)


@pytest.mark.parametrize("name", ["extra", "weight.scale", "extra.scale"])
def test_an_extra_tensor_in_the_softmax(tmp_path, name):
    folder = native(tmp_path)
    tensors = load_file(folder / "softmax.safetensors")
    tensors[name] = torch.zeros(())
    save_file(tensors, folder / "softmax.safetensors")
    forget_digests(folder)
    refused(f"{name} is [], expected none", folder)


# ELMoForManyLangs


def test_pickles_with_a_damaged_zip_directory(tmp_path):
    """Whatever field of the directory is wrong: the pickle is read as it was, or refused."""
    folder = write_many_langs(tmp_path / "model")
    path = folder / "encoder.pkl"
    whole = path.read_bytes()
    places = [
        (whole.find(mark) + place, width)
        for mark, fields in ((b"PK\1\2", "2 2 2 2 4 4 4 4 2 2 2 2 2 4 4"), (b"PK\6\6", "8 2 2 4 4 8 8 8 8"))
        for place, width in zip(*offsets(fields), strict=True)
    ]
    kinds = Counter()
    for place, width in places:
        path.write_bytes(whole[:place] + b"\x7f" * width + whole[place + width :])
        found = run_limited(lambda: load_all(folder), size=size_of(folder))
        assert found.kind in ("ok", "refused"), found
        kinds[found.kind] += 1
    assert kinds["refused"] > 7


def offsets(fields):
    widths = [int(width) for width in fields.split()]
    return [4 + sum(widths[:number]) for number in range(len(widths))], widths


# The empty tuple; then sixty times a pair of the last one and itself: to hash it takes 2⁶⁰ steps.
PAIRS = b")" + b"q\0h\0\x86" * 60


def test_pickles_that_repeat_themselves(tmp_path):
    folder = write_many_langs(tmp_path / "new")
    replace_pickle(folder / "encoder.pkl", b"\x80\x02}" + PAIRS + b"K\1s.")
    refused("it would grow by repeating its parts", folder)
    old = write_many_langs(tmp_path / "old", old_pickles=True)
    head = [pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {})]
    (old / "encoder.pkl").write_bytes(b"".join([*head, b"\x80\x02}" + PAIRS + b"K\1s.", pickle.dumps([], 2)]))
    refused("it would grow by repeating its parts", old)
    replace_pickle(folder / "encoder.pkl", b"\x80\x02]" + b"]a" * 500_000 + b".")
    refused("the description of its tensors has more than ", folder)


def test_checkpoints_that_repeat_themselves(tmp_path):
    Checkpoints(tmp_path).save(1, {"tied": [torch.ones(2)] * 3, "pairs": [(1, (2, 3))] * 3})
    assert len(Checkpoints(tmp_path).load()["pairs"]) == 3
    replace_pickle(tmp_path / "checkpoints" / "step-000000001.pt", b"\x80\x02}" + PAIRS + b"K\1s.")
    found = run_limited(Checkpoints(tmp_path).load, size=0)
    assert found.kind == "refused", found


def replace_pickle(path, content):
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, content if name.endswith("data.pkl") else part)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8, torch.complex64])
def test_pickled_weights_that_are_no_fractions(tmp_path, dtype):
    folder = write_many_langs(tmp_path / "model")
    state = torch.load(folder / "encoder.pkl", weights_only=True)
    name = next(iter(state))
    state[name] = state[name].to(dtype)
    torch.save(state, folder / "encoder.pkl")
    refused(f"encoder.pkl: {name} is stored as ", folder)


def test_a_number_of_five_thousand_digits_in_a_lexicon(tmp_path):
    folder = write_many_langs(tmp_path / "model")
    lines = (folder / "char.dic").read_text().split("\n")
    (folder / "char.dic").write_text("\n".join([f"a\t{'9' * 5000}", *lines[1:]]))
    refused("char.dic: line 1 is ", folder)


def test_a_lexicon_that_does_not_end(tmp_path):
    folder = write_many_langs(tmp_path / "model")
    content = b"".join(b"%x\t1\n" % number for number in range(500_000))
    (folder / "word.dic").write_bytes(gzip.compress(content))
    refused("word.dic: has more symbols than the weights have rows", folder)


# Statistics of sentence vectors


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("axes", lambda array: array.to(torch.int64), "numbers are of another type"),
        ("weights", lambda array: array > 0, "numbers are of another type"),
        ("words", lambda array: array.float(), "numbers are of another type"),
        ("words", lambda array: torch.full((3_000_000,), 10, dtype=torch.uint8), "more than 100,000 words"),
    ],
)
def test_statistics_that_are_none(tmp_path, name, change, message):
    bundle = tiny_bundle()
    layers, dim = bundle.model.config.num_layers + 1, bundle.model.config.output_dim
    means = np.random.default_rng(1).normal(size=(5, layers, dim)).astype(np.float32)
    ones = [1.0] * layers
    fitted = fit_statistics(["the"], np.ones(1, np.float32), means, layer_weights=ones, num_axes=2)
    save_model(replace(bundle, pooling=fitted), tmp_path / "model")
    path = tmp_path / "model" / "pooling.safetensors"
    tensors = load_file(path)
    save_file(tensors | {name: change(tensors[name])}, path)
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "model")
