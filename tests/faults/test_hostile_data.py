"""Small data files made to exhaust memory or time, and files that promise more than they hold."""

import gzip
import json
import lzma
import shutil
import struct
import sys
import zipfile

import h5py
import numpy as np
import pytest
import torch
import zstandard
from safetensors.torch import load_file, save_file

from elmokit import DataError, ElmoError, load_task, read_vectors
from elmokit.corpus import PreparedCorpus, PrepareSettings
from elmokit.corpus.sources import read_documents
from elmokit.encoders import CharacterEncoder
from elmokit.encoders.vector_file import WordVectors, read_word_vectors, write_word_vectors
from elmokit.pretraining.bilm.recipe import read_recipe
from elmokit.tasks.classifier import Classifier, ClassifierSettings, ClassifierTask
from elmokit.tasks.classifier.data import FORMATS as LABELLED
from elmokit.tasks.coreference.data import FORMATS as DOCUMENTS
from elmokit.tasks.reading.data import FORMATS as QUESTIONS
from elmokit.tasks.tagger.data import FORMATS as TAGGED
from elmokit.text import TokenizerSpec, read_lines
from tests.faults.limited import run_limited
from tests.small_runs import prepare, sentences

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def refused(message, path, read):
    found = run_limited(lambda: read(path), size=path.stat().st_size if path.is_file() else 0)
    assert found.kind == "refused", found
    assert message in found.message


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# Compressed text


ZSTD = zstandard.ZstdCompressor()


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, ZSTD.compress], ids=["gz", "xz", "zst"])
def test_a_line_that_does_not_end(tmp_path, pack):
    path = write(tmp_path / "text", pack(b"one\n" + bytes([97]) * (40 << 20)))
    refused("line 2: has more than 16,777,217 bytes", path, lambda path: sum(1 for _ in read_lines(path)))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, ZSTD.compress], ids=["gz", "xz", "zst"])
def test_a_long_text_is_streamed(tmp_path, pack):
    """However far it unpacks: what is not kept needs no limit."""
    path = write(tmp_path / "text", pack((b"a" * 99 + b"\n") * 300_000))
    found = run_limited(lambda: sum(1 for _ in read_lines(path)), size=path.stat().st_size)
    assert found.kind == "ok"
    assert found.memory < 20 << 20


def test_xz_that_asks_for_too_much_memory(tmp_path):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28}]
    path = write(tmp_path / "text.xz", lzma.compress(b"a\n" * 100, filters=filters))
    refused("is damaged: Memory usage limit exceeded", path, lambda path: list(read_lines(path)))


def test_xz_with_padding_between_its_streams(tmp_path):
    one = lzma.compress(b"a\n")
    assert list(read_lines(write(tmp_path / "text.xz", one + bytes(8) + one + bytes(4)))) == ["a", "a"]


@pytest.mark.parametrize("format", ["tsv", "at", "jsonl", "csv"])
def test_labelled_texts_that_unpack_without_end(tmp_path, format):
    text = b'{"text": "a@b"}\n' if format == "jsonl" else b"a\tb@c\n"
    path = write(tmp_path / f"data.{format}.gz", gzip.compress(text * (1 << 19)))
    with pytest.raises(DataError, match=r"refused: it unpacks to more than|line 1"):
        LABELLED.read(path, tokenize=str.split, format=format)


# Word vectors


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.vec", "5 2\na 1 2\nb 3 4\n", "its first line promises 5 words, it has 2"),
        ("v.vec", "1 2\na 1 2\nb 3 4\n", "its first line promises 1 words, it has 2"),
        ("v.vec", f"5 {'9' * 5000}\na 1 2\n", "line 1: expected a word and its numbers, or how many"),
        ("v.vec", f"{'9' * 5000} 2\na 1 2\n", "line 1: expected a word and its numbers, or how many"),
        ("v.vec", "2 -3\na 1\n", "or how many words and dimensions there are, found '2 -3'"),
        ("v.vec", "5 99999999999\na 1 2\n", "line 2: expected a word and 99999999999 numbers"),
        ("v.vec", "² ²\n", "line 1: expected a word and 1 numbers, found '² ²'"),
        ("v.bin", b"-3 2\n", "two numbers, found b'-3 2"),
        ("v.bin", b"3 -2\n", "two numbers, found b'3 -2"),
        ("v.bin", b"0 0\n", "two numbers, found b'0 0"),
        ("v.bin", b"9999999999 300\na " + bytes(1200), "is truncated at b''"),
        ("v.bin", b"3 99999999999999\na " + bytes(1200), "two numbers, found"),
        ("v.bin", b"3 " + b"9" * 5000 + b"\n", "two numbers, found"),
        ("v.bin.gz", gzip.compress(b"1 2\na " + bytes(8), mtime=0)[:-9], "is incomplete: the compressed"),
        ("v.bin.gz", b"\x1f\x8b\x08\xff" + bytes(30), "v.bin.gz"),
        ("v.bin.gz", gzip.compress(b"9 2\na " + bytes(1 << 26), mtime=0), "refused: it unpacks to more than"),
        ("v.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order'", "cannot be read"),
    ],
)  # fmt: skip
def test_word_vectors_that_promise_something_else(tmp_path, name, content, message):
    write(tmp_path / "v.json", "[]")
    refused(message, write(tmp_path / name, content), read_word_vectors)


# Labelled texts, corpora, recipes


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 3000 + "]" * 3000, "[" * 3000, "[" * 500 + "]" * 500])
def test_json_lines_beyond_all_bounds(tmp_path, value):
    path = write(tmp_path / "data.jsonl", f'{{"text": "a", "label": {value}}}\n')
    refused("data.jsonl, line 1", path, lambda path: LABELLED.read(path, tokenize=str.split))
    settings = PrepareSettings(tokenizer=TokenizerSpec(name="whitespace"), split_sentences=False)
    refused("data.jsonl, line 1", path, lambda path: list(read_documents(path, settings)))


def test_json_that_is_full_of_small_values(tmp_path):
    """An empty list has two letters, and takes sixty bytes in memory."""
    lists = ",".join(["[]"] * 2_000_000)
    path = write(tmp_path / "data.jsonl", f'{{"text": "a", "label": [{lists}]}}\n')
    refused("characters hold too many values", path, lambda path: LABELLED.read(path, tokenize=str.split))
    np.save(tmp_path / "v.npy", np.ones((2, 3), np.float32))
    write(tmp_path / "v.json", f"[{lists}]")
    refused("characters hold too many values", tmp_path / "v.npy", read_word_vectors)


def test_long_texts_in_json_are_read(tmp_path):
    settings = PrepareSettings(tokenizer=TokenizerSpec(name="whitespace"), split_sentences=False)
    text = 'He said: "Well, [sic] then." ' * 200_000
    path = write(tmp_path / "data.jsonl", json.dumps({"text": text}) + "\n")
    assert "".join(read_documents(path, settings)).startswith("He said")


def test_long_lists_that_are_expected_are_read(tmp_path):
    words = {f"word {number}": number for number in range(300_000)}
    write_word_vectors(WordVectors(words, np.ones((len(words), 1), np.float32)), tmp_path / "v.npy")
    assert read_word_vectors(tmp_path / "v.npy").rows == words


WORD = "1\tA\ta\tDET\t_\t_\t0\troot\t_\t_\n"


def test_conllu(tmp_path):
    text = f"# text = A\n1-2\tAa\n{WORD}1.1\tempty\n\n{WORD}"
    found = TAGGED.read(write(tmp_path / "a.conllu", text), tokenize=str.split)
    assert [example.tokens for example in found] == [("A",), ("A",)]


@pytest.mark.parametrize("line", [WORD.replace("\t", " ", 1), "x\tA\n", "Some text\n", f"²{WORD[1:]}"])
def test_conllu_lines_that_are_none(tmp_path, line):
    path = write(tmp_path / "a.conllu", f"{WORD}{line}{WORD}")
    with pytest.raises(DataError, match=r"a\.conllu, line 2: expected ten columns separated by tabs"):
        TAGGED.read(path, tokenize=str.split)


@pytest.mark.parametrize(
    "text",
    ["batch = " + "[" * 2000, "learning_rate = 0x" + "f" * 5000, "base = [1]", "size = {}",
     "a" + ".a" * 40_000, "learning_rate = 1" + "0" * 400, "model = 3", "[model]\nencoder = 3",
     "cutoffs = [[]]", b"\xff"],
    ids=range(10),
)  # fmt: skip
def test_recipes_beyond_all_bounds(tmp_path, text):
    refused("", write(tmp_path / "recipe.toml", text), lambda path: read_recipe(str(path)))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("corpus"), sentences(20)).path


@pytest.mark.parametrize(
    "change",
    [{"job": None}, {"shards": {}}, {"num_types": "3"}, {"report": []}, {"num_types": 10**30}, {"job": {}},
     {"shards": {"train": [{"tokens": 1}], "heldout": []}}, {"shards": {"train": [[]], "heldout": []}}],
)  # fmt: skip
def test_corpora_with_other_facts(tmp_path, corpus, change):
    copy = shutil.copytree(corpus, tmp_path / "corpus")
    facts = json.loads((copy / "corpus.json").read_text())
    (copy / "corpus.json").write_text(json.dumps(facts | change))
    refused("", copy, PreparedCorpus)


# Task models


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("task") / "model"
    settings = ClassifierSettings().changed(["head.rnn=4"])
    made = ClassifierTask(settings, ("a", "b"))
    Classifier(made, [CharacterEncoder()], tokenizer=TokenizerSpec(name="whitespace")).save(folder)
    load_task(folder)
    return folder


@pytest.mark.parametrize("value", [None, 3, [], {}, [3], "x", [{"spec": 3}], {"a": {"b": 1}}, "missing"])
@pytest.mark.parametrize("key", ["encoders", "settings", "labels", "tokenizer", "task"])
def test_task_folders_that_are_not_whole(tmp_path, task, key, value):
    folder = shutil.copytree(task, tmp_path / "task")
    config = json.loads((folder / "config.json").read_text())
    config[key] = value
    if value == "missing":
        del config[key]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ElmoError):
        load_task(folder)


@pytest.mark.parametrize(
    ("group", "change"),
    [("head", {"rnn": 90_000}), ("head", {"rnn_layers": 100}), ("head", {"rnn": 10**30}), ("head", 3)],
)
def test_a_task_of_another_size(tmp_path, task, group, change):
    """90,000 units of an LSTM would take 260 GB; the weights tell that there are four."""
    folder = shutil.copytree(task, tmp_path / "task")
    config = json.loads((folder / "config.json").read_text())
    settings = config["settings"]
    settings[group] = settings[group] | change if isinstance(change, dict) else change
    (folder / "config.json").write_text(json.dumps(config))
    refused("", folder, load_task)


@pytest.mark.parametrize("labels", [["a"] * 50_000, ["a", 3], "ab", [["a"], "b"]])
def test_labels_that_are_none(tmp_path, task, labels):
    folder = shutil.copytree(task, tmp_path / "task")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"labels": {"labels": labels}}))
    refused("", folder, load_task)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
def test_task_weights_that_are_no_fractions(tmp_path, task, dtype):
    folder = shutil.copytree(task, tmp_path / "task")
    weights = load_file(folder / "model.safetensors")
    name = next(iter(weights))
    save_file(weights | {name: weights[name].to(dtype)}, folder / "model.safetensors")
    refused(f"{name} is stored as ", folder, load_task)


# Vector files


def all_vectors(path):
    with read_vectors(path) as file:
        for _ in file:
            pass


def test_a_list_of_sentences_that_takes_its_time(tmp_path):
    """To look for the next pair from each quote on would take the square of 400,000 steps."""
    path = tmp_path / "vectors.h5"
    with h5py.File(path, "w") as file:
        file["0"] = np.ones((3, 4), np.float32)
        file.create_dataset("sentence_to_index", data=['{"' + '\\"' * 200_000], dtype=h5py.string_dtype())
    refused("its list of sentences is damaged", path, all_vectors)


def test_vectors_of_no_size(tmp_path):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 0), }"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    refused("expected an array of shape", write(tmp_path / "v.npy", content), all_vectors)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_npz_whose_array_is_larger_than_it_is(tmp_path, method):
    path = tmp_path / "v.npz"
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (100000000, 4), }"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("0.npy", array + bytes(1 << 26 if method else 16))
        np.lib.format.write_array(archive.open("sentence_to_index.npy", "w"), np.array([b"{}"]))
    refused("0.npy has another size" if not method else "is compressed, which", path, all_vectors)


@pytest.mark.parametrize("damage", ["endless", "long", "elsewhere", "sequence"])
def test_strings_of_hdf5_that_would_crash_it(tmp_path, damage):
    """HDF5 loops over free space of size 0, allocates what a length claims, crashes for other sequences."""
    path = tmp_path / "vectors.h5"
    with h5py.File(path, "w") as file:
        file["0"] = np.ones((3, 4), np.float32)
        file.attrs["elmokit"] = "{}"
        file.create_dataset("sentence_to_index", data=['{"a": "0"}'], dtype=h5py.string_dtype())
    all_vectors(path)
    content = bytearray(path.read_bytes())
    heap = content.find(b"GCOL")
    if damage == "endless":
        content[heap + 16 : heap + 32] = bytes(16)
    elif damage in ("long", "elsewhere"):
        places = [at for at in range(heap) if content[at : at + 8] == struct.pack("<Q", heap)]
        content[places[0] - 4 : places[0]] = b"\xff\xff\xff\x7f"
        content[places[0]] ^= 8 if damage == "elsewhere" else 0  # in what is no heap
    else:
        kind = content.find(b"\x19\x01", content.find(b"elmokit"))
        content[kind + 1] = 0
    path.write_bytes(content)
    messages = {"endless": "a heap of its strings", "sequence": "is not one string"}
    refused(messages.get(damage, "of it is longer than it can be"), path, all_vectors)


# Readers of tasks


def read_coreference(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    tokenize = DOCUMENTS.tokenizer(TokenizerSpec(name="whitespace"))
    return DOCUMENTS.read(tmp_path / name, tokenize=tokenize)


@pytest.mark.parametrize(
    ("offset", "name"), [("9" * 5000, "Ada"), ("-1", "Ada"), ("²", "Ada"), ("4", ""), ("3", " ")]
)
def test_names_of_gap_that_are_nowhere(tmp_path, offset, name):
    header = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\n"
    row = f"1\tAda saw her\ther\t8\t{name}\t{offset}\tTRUE\tAda\t0\tFALSE\n"
    with pytest.raises(DataError, match=r"line 2: A .* is not at .* in the text"):
        read_coreference(tmp_path, "a.tsv", header + row)


def test_brackets_without_end(tmp_path):
    """Each mention is compared with those that are open: a hundred thousand would take hours."""
    opened = "".join(f"0\tword\t({number}\n" for number in range(100_000))
    with pytest.raises(DataError, match="line 102: more than 100 mentions are open"):
        read_coreference(tmp_path, "a.conll", f"#begin document x\n{opened}")


def test_answers_that_are_nowhere(tmp_path):
    """Each answer is searched for near its place: in all of a long text it would take hours."""
    answer = {"text": "zz", "answer_start": 5}
    asked = {"id": "1", "question": "Who ?", "answers": [answer] * 20_000}
    paragraph = {"context": "za" * 2_000_000, "qas": [asked]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    tokenize = QUESTIONS.tokenizer(TokenizerSpec(name="whitespace"))
    outcome = run_limited(lambda: QUESTIONS.read(path, tokenize=tokenize), size=path.stat().st_size)
    assert outcome.kind == "ok"
    assert outcome.seconds < 10
