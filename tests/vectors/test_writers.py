import json
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elmokit.errors import ConfigError, MissingExtra
from elmokit.vectors import ENDINGS, Layout, Row, check_ending, write_vectors, writers

TEXTS = ["The cat sat", "", 'A "quoted" café / 中文', "The cat sat"]
DIM, LAYERS = 4, 3
ALL, ONE, POOLED = (LAYERS, -1, DIM), (-1, DIM), (DIM,)


def rows(shape, dtype="float32"):
    random = np.random.default_rng(7)
    made = []
    for text in TEXTS:
        tokens = text.split()
        offsets = [(text.index(token), text.index(token) + len(token)) for token in tokens]
        size = tuple(len(tokens) if number == -1 else number for number in shape)
        vectors = random.normal(size=size).astype(dtype)
        made.append(Row(text=text, tokens=tokens, offsets=offsets, vectors=vectors))
    return made


def write(folder, ending, shape, dtype="float32"):
    made = rows(shape, dtype)
    path = folder / "vectors"  # the ending is told apart: the spool packs under another name
    write_vectors(path, iter(made), Layout(shape=shape, dtype=dtype), ending=ending, count=len(made))
    return path, made


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [ALL, ONE])
def test_hdf5_is_as_allennlp_wrote_it(tmp_path, shape, dtype):
    path, made = write(tmp_path, ".h5", shape, dtype)
    with h5py.File(path) as file:
        assert set(file) == {"0", "1", "2", "3", "sentence_to_index"}
        for number, row in enumerate(made):
            np.testing.assert_array_equal(file[str(number)][...], row.vectors)
            assert file[str(number)].dtype == dtype
        assert file["1"].shape == tuple(0 if size == -1 else size for size in shape)
        index = file["sentence_to_index"]
        assert index.shape == (1,)
        assert h5py.check_string_dtype(index.dtype).length is None
        # The last of equal sentences wins.
        assert json.loads(index[0]) == {"The cat sat": "3", "": "1", TEXTS[2]: "2"}


def test_npz_has_the_same_keys(tmp_path):
    path, made = write(tmp_path, ".npz", ALL)
    with np.load(path) as file:
        assert set(file) == {"0", "1", "2", "3", "sentence_to_index", "sentences.jsonl", "metadata.json"}
        first = json.loads(file["sentences.jsonl"].splitlines()[0])
        assert (first["line"], first["tokens"]) == (1, ["The", "cat", "sat"])
        for number, row in enumerate(made):
            np.testing.assert_array_equal(file[str(number)], row.vectors)
        assert json.loads(file["sentence_to_index"][0])["The cat sat"] == "3"


def test_index_of_no_sentences_is_json(tmp_path):
    path = tmp_path / "empty"
    write_vectors(path, iter([]), Layout(shape=ONE, dtype="float32"), ending=".npz", count=0)
    assert zipfile.ZipFile(path).namelist()[0] == "sentence_to_index.npy"
    with np.load(path) as file:
        assert json.loads(file["sentence_to_index"][0]) == {}


def read_arrow(path, ending):
    if ending == ".parquet":
        return pq.read_table(path)
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_tables_have_a_column_for_each_layer(tmp_path, ending, dtype):
    path, made = write(tmp_path, ending, ALL, dtype)
    table = read_arrow(path, ending)
    assert table.column_names == ["line", "text", "tokens", "offsets", "layer_0", "layer_1", "layer_2"]
    assert table["line"].to_pylist() == [1, 2, 3, 4]
    assert table["text"].to_pylist() == TEXTS
    assert table["tokens"].to_pylist() == [row.tokens for row in made]
    assert table["offsets"].to_pylist() == [[list(pair) for pair in row.offsets] for row in made]
    assert table["layer_1"].type.value_type.list_size == DIM
    for number, row in enumerate(made):
        got = np.array(table["layer_1"][number].as_py(), dtype=dtype).reshape(-1, DIM)
        np.testing.assert_array_equal(got, row.vectors[1])


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_tables_of_one_vector_a_token_and_many_batches(tmp_path, ending, monkeypatch):
    monkeypatch.setattr("elmokit.vectors.arrow.BATCH_BYTES", 1)
    path, made = write(tmp_path, ending, ONE)
    table = read_arrow(path, ending)
    assert table.column_names == ["line", "text", "tokens", "offsets", "vectors"]
    assert table["line"].to_pylist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(np.array(table["vectors"][2].as_py(), "float32"), made[2].vectors)


def test_npy_can_be_mapped(tmp_path):
    path, made = write(tmp_path, ".npy", POOLED, "float16")
    got = np.load(path, mmap_mode="r")
    assert isinstance(got, np.memmap)
    np.testing.assert_array_equal(got, np.stack([row.vectors for row in made]))


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_rows_make_the_same_bytes(tmp_path, ending):
    shape = POOLED if ending == ".npy" else ONE
    first = write(tmp_path, ending, shape)[0].read_bytes()
    assert write(tmp_path, ending, shape)[0].read_bytes() == first


@pytest.mark.parametrize("name", ["vectors.txt", "vectors"])
def test_unknown_ending_lists_the_known_ones(tmp_path, name):
    with pytest.raises(
        ConfigError, match=r"names no format; use one of \.h5, \.hdf5, \.npz, \.parquet, \.arrow, \.npy"
    ):
        check_ending(tmp_path / name)


def test_a_spreadsheet_is_csv_and_a_folder_is_no_file(tmp_path):
    with pytest.raises(ConfigError, match=r"v\.xlsx has the ending '\.xlsx'.*for a spreadsheet use \.csv"):
        check_ending(tmp_path / "v.xlsx")
    with pytest.raises(ConfigError, match="is a folder"):
        check_ending(tmp_path)


def test_missing_pyarrow_is_named_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"writing \.parquet files needs pyarrow.*elmokit\[arrow\]"):
        check_ending(tmp_path / "vectors.parquet")
