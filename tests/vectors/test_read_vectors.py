"""What is written is read back: every format, every shape, damaged and foreign files, bounded memory."""

import tracemalloc
import zipfile
from contextlib import nullcontext, suppress

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elmokit
from elmokit import DataError, MissingExtra, StoredSentence
from elmokit.vectors import ENDINGS, Layout, Row, arrow, read_vectors, spool, write_vectors, writers

TABLES, TEXTS = (".parquet", ".arrow"), (".csv", ".tsv")
DIM, LAYERS = 4, 3
SHAPES = {
    "all": (LAYERS, -1, DIM),
    "one": (-1, DIM),
    "pooled": (DIM,),
    "pooled, all": (LAYERS, DIM),
}

# Without lone surrogates, which UTF-8 (and so Parquet and Arrow) cannot hold, and NUL, which HDF5 cannot.
_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@st.composite
def _written(draw):
    """An ending, a layout it can hold, and rows."""
    ending = draw(st.sampled_from(ENDINGS))
    names = [name for name in SHAPES if ending != ".npy" or name.startswith("pooled")]
    dtype = "float32" if ending in TEXTS else draw(st.sampled_from(["float32", "float16"]))
    layout = Layout(shape=SHAPES[draw(st.sampled_from(names))], dtype=dtype)
    sentences = draw(st.lists(st.lists(_texts, max_size=4), max_size=6))
    return ending, layout, make_rows(sentences, layout)


def make_rows(sentences, layout):
    random = np.random.default_rng(len(sentences))
    rows = []
    for tokens in sentences:
        size = tuple(len(tokens) if number == -1 else number for number in layout.shape)
        starts = np.cumsum([0, *(len(token) + 1 for token in tokens)]).tolist()
        offsets = [(start, start + len(token)) for start, token in zip(starts, tokens, strict=False)]
        vectors = random.normal(size=size).astype(layout.dtype)
        rows.append(Row(text=" ".join(tokens), tokens=tokens, offsets=offsets, vectors=vectors))
    return rows


def in_file(row, ending, layout):
    """Whether a sentence is in the file: those without tokens have no row in a table of tokens."""
    return bool(row.tokens) or ending not in TEXTS or layout.unit != "token"


def write(path, rows, layout, ending):
    write_vectors(path, iter(rows), layout, ending=ending, count=len(rows))
    return path


def assert_same(found, row, ending, layout):
    stored = found.layers if layout.several else found.vectors
    assert (found.vectors is None) == layout.several
    assert (found.layers is None) == (not layout.several)
    assert stored.dtype == row.vectors.dtype
    assert stored.flags.writeable
    np.testing.assert_array_equal(stored, row.vectors)
    of_tokens = layout.unit == "token"
    assert found.text == (None if ending == ".npy" or (ending in TEXTS and of_tokens) else row.text)
    holds_tokens = of_tokens if ending in TEXTS else ending != ".npy"
    assert (found.tokens, found.offsets) == ((row.tokens, row.offsets) if holds_tokens else (None, None))


@given(written=_written(), batch_bytes=st.sampled_from([1, 60, 1 << 20]))
def test_what_is_written_is_read(tmp_path, written, batch_bytes):
    ending, layout, rows = written
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "BATCH_BYTES", batch_bytes)
        path = write(tmp_path / "vectors", rows, layout, ending)
    lines = [number for number, row in enumerate(rows, start=1) if in_file(row, ending, layout)]
    rows = [rows[number - 1] for number in lines]
    with read_vectors(path) as found:
        assert len(found) == len(rows)
        for sentence, row, line in zip(found, rows, lines, strict=True):
            assert_same(sentence, row, ending, layout)
            assert sentence.line == (None if ending == ".npy" else line)
        for number in reversed(range(len(rows))):  # out of order, and twice
            assert_same(found[number], rows[number], ending, layout)
            assert_same(found[number - len(rows)], rows[number], ending, layout)
        for number in (len(rows), -len(rows) - 1):
            with pytest.raises(IndexError, match=rf"there is no sentence {number}; .* has {len(rows)}"):
                found[number]


@pytest.mark.parametrize("ending", ENDINGS)
def test_many_parts_packed_by_the_spool(tmp_path, monkeypatch, ending):
    """Parts, row groups and record batches of a few rows, among them rows larger than any of these."""
    monkeypatch.setattr(spool, "PART_BYTES", 500)
    monkeypatch.setattr(arrow, "BATCH_BYTES", 500)
    layout = Layout(shape=SHAPES["pooled" if ending == ".npy" else "all"], dtype="float32")
    rows = make_rows([["word"] * (1000 if number % 50 == 7 else number % 5) for number in range(120)], layout)
    target = tmp_path / f"v{ending}"
    with spool.Spool(target, layout, {}) as made:
        for row in rows:
            made.add(row)
        made.pack()
    found = elmokit.read_vectors(target)
    rows = [row for row in rows if in_file(row, ending, layout)]
    assert len(found) == len(rows) > 90
    for sentence, row in zip(found, rows, strict=True):
        assert_same(sentence, row, ending, layout)


@pytest.mark.parametrize("ending", ENDINGS)
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(arrow, "BATCH_BYTES", 100_000)
    shape = (2000,) if ending == ".npy" else (2, -1, 1000)
    layout = Layout(shape=shape, dtype="float32")
    sentences = 300 if ending in (".csv", ".tsv") else 2000  # a number of a table takes more bytes, and time
    path = write(tmp_path / "vectors", make_rows([["a", "b"]] * sentences, layout), layout, ending)
    assert path.stat().st_size > 10e6
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    found = read_vectors(path)
    peak = 0
    for _ in found:
        peak = max(peak, pa.total_allocated_bytes() - before)
    peak += tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6


def test_allennlps_own_files(tmp_path):
    """Repeated sentences stand once in the index, and need not be in order there."""
    path = tmp_path / "allennlp.hdf5"
    with h5py.File(path, "w") as file:
        for number in range(3):
            file.create_dataset(str(number), data=np.full((3, 2, 4), number, "float32"))
        index = file.create_dataset("sentence_to_index", (1,), dtype=h5py.special_dtype(vlen=str))
        index[0] = '{"the \\"same\\"": "2", "caf\\u00e9": "1"}'
    found = read_vectors(path)
    assert [sentence.text for sentence in found] == [None, "café", 'the "same"']
    assert [sentence.layers[0, 0, 0] for sentence in found] == [0, 1, 2]


def test_bilm_tfs_dump_has_no_sentences(tmp_path):
    path = tmp_path / "bilm.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("0", data=np.ones((3, 2, 4), "float32"))
    (sentence,) = read_vectors(path)
    assert (sentence.text, sentence.layers.shape) == (None, (3, 2, 4))


def write_weights(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("char_embed", data=np.ones((261, 4)))


def link_elsewhere(path):
    write(path.with_name("other.h5"), make_rows([["a"]], LAYOUT), LAYOUT, ".h5")
    with h5py.File(path, "w") as file:
        file["0"] = h5py.ExternalLink("other.h5", "0")


LAYOUT = Layout(shape=SHAPES["all"], dtype="float32")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda path: path.write_bytes(b""),
            r"begins with b'', not as HDF5, npz, npy, Parquet, Arrow or",
        ),
        (lambda path: path.write_text("a text file"), "begins with b'a text f'"),
        (write_weights, "expected datasets '0', '1', …, found char_embed"),
        (link_elsewhere, "0 is a link"),
        (lambda path: np.savez(path.open("wb"), a=np.ones(3)), "no item named 'sentence_to_index.npy'"),
        (lambda path: np.save(path.open("wb"), np.ones(3)), r"found \[3\]"),
        (lambda path: np.save(path.open("wb"), np.ones((2, 3), int)), r"found int64 of shape \[3\]"),
        (lambda path: np.save(path.open("wb"), np.array([{}])), "cannot be read as a file of vectors"),
        (lambda path: pq.write_table(pa.table({"a": [1]}), path), r"found columns \['a'\]"),
        (
            lambda path: pq.write_table(
                pa.table({"text": ["a"], "tokens": [["a"]], "offsets": [[[0, 1]]], "vectors": ["no"]}), path
            ),
            "cannot be read as a file of vectors",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_foreign_files(tmp_path, make, message):
    path = tmp_path / "vectors"
    make(path)
    with pytest.raises(DataError, match=message) as caught:
        list(read_vectors(path))
    assert str(caught.value).startswith(f"{path}: ")


def test_missing_and_unfinished_files(tmp_path):
    with pytest.raises(DataError, match=r"v\.h5: no such file$"):
        read_vectors(tmp_path / "v.h5")
    (tmp_path / "v.h5.part").mkdir()
    with pytest.raises(DataError, match=r"v\.h5: only an interrupted run, .*v\.h5\.part: resume it"):
        read_vectors(str(tmp_path / "v.h5"))


@pytest.mark.parametrize("ending", TABLES)
def test_pyarrow_is_missing(tmp_path, monkeypatch, ending):
    path = write(tmp_path / "v", make_rows([["a"]], LAYOUT), LAYOUT, ending)
    monkeypatch.setattr(writers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"reading Parquet and Arrow files needs pyarrow"):
        read_vectors(path)


@pytest.mark.parametrize("layout", ["all", "pooled"])
@pytest.mark.parametrize("damaged", [False, True])
def test_a_npz_is_closed_whether_it_can_be_read_or_not(tmp_path, monkeypatch, layout, damaged):
    opened = []
    open_archive = zipfile.ZipFile

    def noted(path):
        opened.append(open_archive(path))
        return opened[-1]

    chosen = Layout(shape=SHAPES[layout], dtype="float32")
    path = write(tmp_path / "v", make_rows([["a"], ["b"]], chosen), chosen, ".npz")
    if damaged:
        with open_archive(path, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("metadata.json", "{")
    monkeypatch.setattr(zipfile, "ZipFile", noted)
    with pytest.raises(DataError) if damaged else nullcontext(), read_vectors(path) as found:
        assert len(list(found)) == 2
    (archive,) = opened
    assert archive.fp is None
    assert archive._fileRefCnt == 0


# Not .h5: HDF5's library may loop in a damaged file; tests/faults/test_fuzz.py tries it in limited processes.
@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if ending != ".h5"])
@given(data=st.data())
def test_damage_is_an_error_or_changes_numbers_only(tmp_path, ending, data):
    layout = Layout(shape=SHAPES["pooled" if ending == ".npy" else "all"], dtype="float32")
    path = write(tmp_path / "v", make_rows([["a", "b"], [], ["c"]], layout), layout, ending)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), label="cut short"):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
            content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with suppress(DataError), read_vectors(path) as file:
        assert len(list(file)) <= 3


def test_a_stored_sentence_prints_as_one_line():
    vectors = np.zeros((2, 300), np.float32)
    sentence = StoredSentence.of(vectors, {"text": "x" * 100, "tokens": ["a", "b"], "line": 3})
    assert repr(sentence) == f"StoredSentence('{'x' * 60}…', line 3, vectors of shape (2, 300))"
