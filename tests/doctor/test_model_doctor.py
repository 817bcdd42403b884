"""What the doctor says of models, whole and broken, and of texts."""

import json

import h5py
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit.doctor import Finding, diagnose, diagnose_text
from elmokit.formats import save_model
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


def said(findings, level):
    return [finding.message for finding in findings if finding.level == level]


def only(findings, level, *parts):
    """The one finding of that level, which has all the parts."""
    (message,) = said(findings, level)
    assert all(part in message for part in parts), message


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "model")


@pytest.fixture
def native(tmp_path):
    save_model(tiny_bundle(vocabulary=True, softmax=True), tmp_path / "native")
    return tmp_path / "native"


def test_a_whole_old_model(folder):
    findings = diagnose(folder)
    only(findings, "ok", "a complete model: options ", "3 layers of 6 numbers per token, 1,963 parameters")
    only(findings, "note", "do not record the tokenizer", "the tokenizer 'rules' is used")
    assert not said(findings, "warning") + said(findings, "error")


def test_a_whole_native_model(native):
    findings = diagnose(native)
    whole, model, softmax, vocabulary = said(findings, "ok")
    assert whole.startswith(f"a complete model: elmokit folder {native}; 3 layers of 6")
    assert model == f"{native / 'model.safetensors'}: unchanged (sha256)"
    assert softmax == f"{native / 'softmax.safetensors'}: unchanged (sha256)"
    assert vocabulary == f"{native / 'vocab.txt'}: unchanged (sha256)"
    assert not said(findings, "warning") + said(findings, "error")


def test_large_native_weights_that_changed(native, monkeypatch):
    """Loading checks only small files, the doctor all of them."""
    monkeypatch.setattr("elmokit.formats.native._CHECKED_BYTES", 0)
    tensors = load_file(native / "model.safetensors")
    tensors["layers.0.bias"][0, 0] += 1
    save_file(tensors, native / "model.safetensors")
    only(diagnose(native), "error", "model.safetensors: has changed: its sha256 differs")


def test_native_weights_that_changed(native):
    tensors = load_file(native / "model.safetensors")
    tensors["layers.0.bias"][0, 0] += 1
    save_file(tensors, native / "model.safetensors")
    only(diagnose(native), "error", "model.safetensors: has changed since it was saved: its sha256 differs")


@pytest.mark.parametrize("value", [None, 3, {}])
def test_native_without_checksums(native, value):
    config = json.loads((native / "config.json").read_text())
    (native / "config.json").write_text(json.dumps(config | {"sha256": value}))
    findings = diagnose(native)
    assert not said(findings, "error")
    assert value == {} or "config.json has no sha256" in "".join(said(findings, "note"))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none(tmp_path, number):
    arrays = tiny_arrays(tiny_config())
    arrays["char_embed"][3, 1] = number
    folder = write_folder(tmp_path, arrays=arrays, vocabulary=WORDS, softmax=True)
    only(diagnose(folder), "error", "encoder.embedding.weight holds NaN or infinite numbers")
    with h5py.File(folder / "softmax_weights.hdf5", "a") as file:
        file["softmax/b"][2] = number
    assert (
        said(diagnose(folder), "error")[1] == "softmax bias holds NaN or infinite numbers; get the file again"
    )


def test_a_softmax_that_cannot_be_read(folder):
    with h5py.File(folder / "s.hdf5", "w") as file:
        file.create_dataset("softmax/W", (10**9, 3), np.float32, chunks=(1024, 3))
        file.create_dataset("softmax/b", (10**9,), np.float32, chunks=(1024,))
    only(diagnose(folder), "error", "softmax/W declares 12,000,000,000 bytes")


def test_zips(folder, tmp_path):
    archive = write_zip(tmp_path / "model.zip", folder, under="193")
    archive_says, model = said(diagnose(archive), "ok")
    assert archive_says == f"{archive}: a zip archive that is not damaged"
    assert f"options {archive}/193/options.json" in model
    archive.write_bytes(archive.read_bytes()[:2000])
    only(diagnose(archive), "error", "the zip archive is damaged")


# Right for elmokit, wrong elsewhere


@pytest.mark.parametrize(("count", "notes"), [(261, 2), (262, 1)])
def test_261_characters(tmp_path, count, notes):
    folder = write_folder(tmp_path, options=tiny_options(tiny_config(), n_characters=count))
    found = said(diagnose(folder), "note")
    assert len(found) == notes
    text = "n_characters is 261, as bilm-tf's training writes it: elmokit reads it, but bilm-tf's"
    assert any(text in note for note in found) == (count == 261)


def test_what_allennlp_refuses(tmp_path):
    folder = write_folder(tmp_path, tiny_config(skip_connections=False, max_characters=20))
    notes = "\n".join(said(diagnose(folder), "note"))
    assert "no skip connections: elmokit reads it, but AllenNLP does not" in notes
    assert "20 characters per token: elmokit reads it, AllenNLP only 50" in notes
    notes = "\n".join(
        said(diagnose(write_folder(tmp_path / "words", tiny_config(words=10), vocabulary=WORDS)), "note")
    )
    assert "characters" not in notes


# Broken


def test_nothing_there():
    only(diagnose("no-such-model"), "error", "no such file or folder")
    only(diagnose("https://example.org/model"), "error", "elmokit never downloads")
    assert said(diagnose("x" * 5000), "error")


def test_options_that_do_not_fit(folder):
    config = tiny_config(projection_dim=4, cell_dim=6, num_layers=3, num_highway=2, embedding_dim=5)
    write_hdf5(folder / "lm_weights.hdf5", tiny_arrays(config))
    for arguments in ((folder,), (folder / "options.json",), (folder, folder / "lm_weights.hdf5")):
        first, *sizes = said(diagnose(*arguments), "error")
        assert "weights and options do not fit" in first
        assert sizes == [
            "the weights have lstm.n_layers 3, the options say 2",
            "the weights have lstm.projection_dim 4, the options say 3",
            "the weights have lstm.dim 6, the options say 5",
            "the weights have char_cnn.embedding.dim 5, the options say 4",
            "the weights have char_cnn.n_highway 2, the options say 1",
        ]


def test_filters_that_do_not_fit(folder):
    write_hdf5(folder / "lm_weights.hdf5", tiny_arrays(tiny_config(filters=((1, 2), (4, 7)))))
    message = "the weights have char_cnn.filters [[1, 2], [4, 7]], the options say [[1, 2], [2, 3], [3, 4]]"
    assert said(diagnose(folder), "error")[1:] == [message]


def test_missing_options(folder):
    (folder / "options.json").unlink()
    for path in (folder, folder / "lm_weights.hdf5"):
        findings = diagnose(path)
        only(findings, "error", "holds no options file")
        parts = (
            "lstm.n_layers 2, lstm.projection_dim 3, lstm.dim 5, char_cnn.embedding.dim 4",
            "get the options",
        )
        only(findings, "note", "the options file is missing; the weights have ", *parts)


def test_several_weights(folder):
    write_hdf5(folder / "more.hdf5", tiny_arrays(tiny_config()))
    only(diagnose(folder), "error", "holds more than one HDF5 file with the weights of a biLM")
    assert not said(diagnose(folder, folder / "more.hdf5"), "error")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer (the file itself was never"),
        (b"<!DOCTYPE html>", "is a web page (the download gave an error page"),
        (b"", "is empty"),
    ],
)
def test_downloads_that_failed(folder, content, message):
    (folder / "lm_weights.hdf5").write_bytes(content)
    first, second = said(diagnose(folder), "error")
    assert "holds no HDF5 file with the weights of a biLM" in first
    assert f"lm_weights.hdf5: {message}" in second
    assert any(message in text for text in said(diagnose(folder / "lm_weights.hdf5"), "error"))


def test_other_systems(tmp_path):
    (tmp_path / "model.ckpt-935588.index").write_bytes(b"\0\1")
    (tmp_path / "encoder.pkl").write_bytes(b"\x80\x02}q")
    write_hdf5(tmp_path / "vectors.hdf5", {"0": np.zeros((3, 2)), "1": np.zeros((3, 2))})
    notes, errors = ("\n".join(said(diagnose(tmp_path), level)) for level in ("note", "error"))
    assert "vectors.hdf5: vectors of 2 sentences, not weights" in notes
    assert "is an ELMoForManyLangs model without its config.json" in errors
    assert "model.ckpt-935588.index: the index of a TensorFlow checkpoint, truncated" in errors


def test_vocabularies(tmp_path):
    folder = write_folder(tmp_path, vocabulary=("the", "cat", "<S>"))
    only(diagnose(folder), "warning", "has no </S>, <UNK>; expected <S>, </S>, <UNK>")
    folder = write_folder(tmp_path, vocabulary=WORDS, softmax=True)
    (folder / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
    only(diagnose(folder), "error", "the vocabulary has 3 words, the weights have 10 rows")


def test_a_truncated_model(native):
    content = (native / "model.safetensors").read_bytes()
    (native / "model.safetensors").write_bytes(content[:-5])
    only(diagnose(native), "error", "cannot be read as safetensors")


def test_models_of_words(tmp_path):
    model = tiny_model(tiny_config(words=len(WORDS)))
    save_model(tiny_bundle(model, vocabulary=True), tmp_path / "model")
    assert not said(diagnose(tmp_path / "model"), "error")
    assert torch.isfinite(model.encoder.weight).all()


# Texts

ORDINARY = [
    "The bank raised its rates, and Tom's wife didn't like it.",
    "Éva said: “Yes!” São Paulo, Ângela & Co. cost $5 (or 3 €).",
    "他说银行在河边。",
    "",
]


def test_an_ordinary_text():
    assert diagnose_text(iter(ORDINARY)) == [Finding("ok", "4 lines: none of the classic mistakes")]


@pytest.mark.parametrize(
    ("line", "level", "message"),
    [
        (
            "Tom &amp; Jerry",
            "warning",
            "HTML entities: '&amp;' in line 5, 1 line in all; the model would read",
        ),
        ("It&#39;s", "warning", "HTML entities: '&#39;' in line 5"),
        ("['The', 'bank']", "warning", "printed Python lists: "),
        ('["The"]', "warning", "printed Python lists: "),
        ("caf\ufffd", "warning", "characters that could not be decoded (U+FFFD): "),
        ("cafÃ© ", "warning", "UTF-8 that was decoded as Latin-1: 'Ã©' in line 5"),
        ("itâ€™s", "warning", "UTF-8 that was decoded as Latin-1: 'â€™' in line 5"),
        ("it -LRB- was -RRB-", "warning", "treebank brackets: "),
        ("\ufeffThe bank", "warning", "byte order marks: "),
        ("T\0h\0e\0", "warning", "NUL bytes: '\\x00' in line 5, 1 line in all; the file is binary or UTF-16"),
        ("word " * 1001, "note", "lines of more than 5,000 characters: 'word word"),
    ],
)
def test_lines_with_a_classic_mistake(line, level, message):
    (finding,) = diagnose_text([*ORDINARY, line])
    assert finding.level == level
    assert finding.message.startswith(message)


def test_occurrences_are_counted():
    (finding,) = diagnose_text(["Tom &amp; Jerry", "Tom", "Bonnie &amp; Clyde &lt;3"])
    assert "'&amp;' in line 1, 2 lines in all" in finding.message


def test_lower_case():
    text = ["the bank raised its rates and the river rose over its banks"] * 10
    only(diagnose_text(text), "warning", "lower-cased: 0 capitals among 480 letters")
    assert diagnose_text(text, cased=False)[0].level == "ok"
    assert diagnose_text(text[:3])[0].level == "ok"  # too short to tell
    assert diagnose_text(["他说银行在河边。"] * 100)[0].level == "ok"


def test_a_bare_string_taken_for_tokens():
    only(diagnose_text(["T h e b a n k r a i s e d"]), "warning", "letters instead of words: 13 of 13 words")
    assert diagnose_text(["他 说 银 行 在 河 边 。 他 说 银 行"])[0].level == "ok"


def test_tokenised_already():
    text = ["The bank raised its rates , he said .", "It did n't ."]
    only(diagnose_text(text), "note", "tokenised already: in 2 lines punctuation is separated by blanks")


@pytest.mark.parametrize("text", [[], ["", "  "]])
def test_no_text(text):
    only(diagnose_text(text), "warning", "the text is empty")
