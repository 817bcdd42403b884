"""Folders and files that version 0.1 saved open with the code of today and give the same numbers.

`make.py` says how they were made.
"""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file

import elmokit
from elmokit.language_model import LanguageModel
from elmokit.pretraining.bilm import text_to_model
from elmokit.tasks import load_task
from tests.small_runs import sentences

OLD = Path(__file__).parent / "v0_1"
EXPECTED = json.loads((OLD / "expected.json").read_text(encoding="utf-8"))
TOKENS = [text.split() for text in EXPECTED["texts"]]


RECIPE = """
batch = 4
unroll = 5
negatives = 8
[model]
cell_dim = 8
projection_dim = 4
[model.encoder]
filters = [[1, 4], [2, 4]]
embedding_dim = 4
max_characters = 12
"""


@pytest.fixture
def layers():
    with np.load(OLD / "layers.npz") as file:
        return dict(file)


@pytest.fixture(autouse=True)
def _in_the_folder(monkeypatch):
    """One of the task models names its encoder by a relative path."""
    monkeypatch.chdir(OLD)


@pytest.mark.parametrize("folder", [*sorted(path.name for path in (OLD / "models").iterdir()), "run"])
def test_a_model_gives_the_same_vectors(folder, layers):
    folder = folder if folder == "run" else f"models/{folder}"
    for number, sentence in enumerate(elmokit.load(folder).embed(TOKENS)):
        np.testing.assert_allclose(sentence.layers, layers[f"{folder}/{number}"], atol=1e-5)


@pytest.mark.parametrize("folder", EXPECTED["perplexity"])
def test_a_language_model_gives_the_same_perplexity(folder):
    found = LanguageModel.load(folder).perplexity(TOKENS)
    assert found.mean == pytest.approx(EXPECTED["perplexity"][folder], rel=1e-5)


@pytest.mark.parametrize("name", EXPECTED["predictions"])
def test_a_task_model_predicts_the_same(name):
    found, expected = (
        load_task(f"tasks/{name}").predict(EXPECTED["prompt"]),
        EXPECTED["predictions"][name],
    )
    of_all_tasks = {"tags": [], "labels": [], "scores": {}, "spans": []}  # in 0.1 each prediction had all
    found = SimpleNamespace(**of_all_tasks | vars(found))
    assert found.tags == expected["tags"]
    assert found.labels == expected["labels"]
    assert found.scores == pytest.approx(expected["scores"], abs=1e-5)
    for span, (label, start, end, probability) in zip(found.spans, expected["spans"], strict=True):
        assert (span.label, span.start, span.end) == (label, start, end)
        assert span.probability == pytest.approx(probability, abs=1e-5)


@pytest.mark.parametrize("ending", ["h5", "npz", "parquet", "arrow"])
def test_a_file_of_vectors_is_read(ending, layers):
    found = list(elmokit.read_vectors(f"vectors/all.{ending}"))
    assert len(found) == len(TOKENS)
    for number, sentence in enumerate(found):
        np.testing.assert_allclose(sentence.layers, layers[f"models/plain/{number}"], atol=1e-5)
        assert sentence.text is None or sentence.text == EXPECTED["texts"][number]
        assert sentence.tokens is None or sentence.tokens == TOKENS[number]


def test_a_file_of_sentence_vectors_is_read(layers):
    found = [sentence.vectors for sentence in elmokit.read_vectors("vectors/all.npy")]
    np.testing.assert_allclose(found[0], layers["models/plain/0"].mean(axis=(0, 1)), atol=1e-5)
    np.testing.assert_array_equal(found[2], 0)  # an empty line


@pytest.mark.parametrize("ending", ["h5", "parquet"])
def test_a_file_in_float16_is_read(ending, layers):
    for number, sentence in enumerate(elmokit.read_vectors(f"vectors/top-float16.{ending}")):
        np.testing.assert_allclose(sentence.vectors, layers[f"models/plain/{number}"][-1], atol=1e-3)


def test_an_old_corpus_is_refused_with_advice():
    with pytest.raises(elmokit.DataError, match="prepare"):
        elmokit.PreparedCorpus("corpus")


def test_what_transformers_saved(layers):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("elmokit.integrations.transformers")  # makes the Auto classes know ELMo
    model = transformers.AutoModel.from_pretrained("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained("transformers")
    found = model(**tokenizer(EXPECTED["texts"][:1], return_tensors="pt")).last_hidden_state
    np.testing.assert_allclose(found[0].detach().numpy(), layers["models/plain/0"][-1], atol=1e-5)


def test_what_sentence_transformers_saved(layers):
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer("sentence-transformers", device="cpu", trust_remote_code=True)
    expected = layers["models/plain/0"].mean(axis=(0, 1))
    np.testing.assert_allclose(model.encode(EXPECTED["texts"][0]), expected, atol=1e-5)


def test_what_spacy_saved(layers):
    spacy = pytest.importorskip("spacy")
    doc = spacy.load(OLD / "spacy")(EXPECTED["texts"][0])
    np.testing.assert_allclose(doc._.elmo, layers["models/plain/0"], atol=1e-5)


def test_an_interrupted_pretraining_resumes_to_the_same_weights(tmp_path, monkeypatch):
    """The corpus is prepared again, the run continues: the weights are those of 0.1, uninterrupted."""
    for name, lines in (("text", sentences(40)), ("heldout", sentences(5, seed=1))):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.copytree("interrupted", tmp_path / "run")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMOKIT_KERNEL", "torch")  # 0.1 had no other, and computed in bfloat16 there
    monkeypatch.setattr(text_to_model, "training_precision", lambda device: "bfloat16")
    settings = elmokit.PrepareSettings(
        tokenizer=elmokit.default_spec("en"), split_sentences=False, min_count=1, heldout=["heldout.txt"]
    )
    elmokit.prepare_corpus(["text.txt"], "corpus", settings, workers=1)
    elmokit.pretrain("corpus", out="run", recipe="recipe.toml", tokens=400, resume=True)
    new, old = (load_file(folder / "model.safetensors") for folder in (tmp_path / "run", OLD / "run"))
    for name, tensor in old.items():
        np.testing.assert_allclose(new[name], tensor, atol=1e-6)
