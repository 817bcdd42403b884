"""Write one small example of everything that version 0.1 saves, with the numbers it gave.

This script was run once with version 0.1 (commit 41f1007); its output is `tests/golden/v0_1`, and
`test_golden.py` opens that folder with the code of today. It stays here to show how the files were made. It
does not run with later versions: to add golden files for a newer format, write a new script and a new folder.

    PYTHONPATH=<a clone at 41f1007>/src:<that clone> python tests/golden/make.py tests/golden/v0_1
"""

import json
import os
import shutil
import sys
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import numpy as np
import spacy
import torch
from click.testing import CliRunner
from elmokit.pretrain.trainer import Trainer
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

import elmokit
from elmokit.cli import main as command_line
from elmokit.formats import load_model, save_model
from elmokit.formats.bundle import Softmax, SoftmaxFile
from elmokit.integrations.sentence_transformers import Elmo
from elmokit.integrations.transformers import ElmoModel, ElmoTokenizer
from elmokit.language_model import LanguageModel
from elmokit.tasks import Settings, TaskModel, train
from elmokit.text import TokenizerSpec
from tests.many_langs import write_folder as write_many_langs
from tests.tasks.conftest import sentences as labelled_sentences
from tests.tiny import WORDS, tiny_bundle, tiny_config, tiny_model
from tests.training import sentences

TEXTS = ["the cat sat", "né 中 by the river bank", "", "cat"]
PROMPT = "Grace Hopper left New York ."
QUICK = [
    *("head.rnn=6", "head.dropout=0", "encoder.dropout=0", "training.learning_rate=0.02"),
    *("training.epochs=20", "training.patience=20", "training.batch=9", "training.least_steps=1"),
]
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


def run(*arguments: str, exit_code: int = 0) -> None:
    """Run a command of `elmokit` in this process."""
    result = CliRunner().invoke(command_line, arguments)
    if result.exit_code != exit_code:
        raise SystemExit(f"{arguments}: {result.output}")


def write(path: str, *lines: str) -> None:
    """Write a small text file."""
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_models() -> None:
    """Model folders: with and without a softmax, in each stored type, of each kind of token encoder."""
    full = tiny_bundle(tokenizer="whitespace", vocabulary=True, softmax=True)
    save_model(full, "models/softmax")
    save_model(tiny_bundle(), "models/plain")
    save_model(tiny_bundle(), "models/float16", dtype="float16")
    save_model(full, "models/int8", dtype="int8", softmax_dtype="float16")
    save_model(full, "models/hdf5", format="hdf5")
    random = torch.Generator().manual_seed(3)
    shapes = {
        "weight": (len(WORDS), 3),
        "bias": (len(WORDS),),
        "cluster_weight": (2, 3),
        "cluster_bias": (2,),
    }
    drawn = {name: torch.randn(shape, generator=random) for name, shape in shapes.items()}
    adaptive = Softmax(**drawn, cutoffs=(4, 7))
    words = tiny_bundle(tiny_model(tiny_config(words=len(WORDS))), vocabulary=True)
    words = replace(words, softmax=SoftmaxFile(len(WORDS), lambda: adaptive))
    save_model(replace(words, tokenizer=TokenizerSpec(name="characters", language="zh")), "models/words")
    write_many_langs(Path("many-langs"))
    save_model(load_model("many-langs"), "models/lexicons")
    shutil.rmtree("many-langs")


def make_tasks() -> None:
    """A task model of each kind; encoders inside the folder or beside it, tuned or not."""
    Path("data").mkdir()
    rows = list(labelled_sentences())
    for part in ("train", "dev"):
        blocks = ("\n".join(map("\t".join, zip(words, tags, strict=True))) for words, tags, _ in rows)
        write(f"data/tagger-{part}.txt", "\n\n".join(blocks))
        texts = [f"{verb}\t{' '.join(words)}" for words, _, verb in rows]
        write(f"data/classes-{part}.tsv", "label\ttext", *texts)
        texts = [f"{verb}|{words[0]}\t{' '.join(words)}" for words, _, verb in rows]
        write(f"data/several-{part}.tsv", "label\ttext", *texts)
        intents = ({"tokens": words, "tags": tags, "intent": verb} for words, tags, verb in rows)
        write(f"data/intents-{part}.jsonl", *map(json.dumps, intents))
    numbers = np.random.default_rng(0).normal(size=(4, 3)).round(3)
    words = ("Ada", "saw", "Rome", ".")
    write(
        "data/static.txt",
        *(f"{word} {' '.join(map(str, row))}" for word, row in zip(words, numbers, strict=True)),
    )
    for name, task, encoder, data, changes, inside in (
        ("tagger", "tagger", "models/plain", "tagger-train.txt", [], False),
        ("tagger-tuned", "tagger", "models/plain", "tagger-train.txt", ["encoder.tune_from=1"], False),
        ("tagger-plain", "tagger", "models/plain", "tagger-train.txt", ["head.crf=false"], True),
        ("classifier", "classifier", "glove:data/static.txt+models/plain", "classes-train.tsv", [], True),
        ("multi-label", "classifier", "models/plain", "several-train.tsv", ["head.multi_label=true"], True),
        ("characters", "classifier", "chars", "classes-train.tsv", ["head.pooling=max"], False),
        ("intent", "intent", "models/plain", "intents-train.jsonl", [], True),
    ):
        settings = Settings().changed(QUICK + changes)
        dev = f"data/{data.replace('train', 'dev')}"
        train(task, f"data/{data}", dev=dev, encoder=encoder, out=f"tasks/{name}", settings=settings,
              self_contained=inside)  # fmt: skip
    for picture in Path("tasks").rglob("*.png"):
        picture.unlink()
    for file in Path("tasks").glob("*/*.json"):  # paths of the machine that ran this become relative
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(f"{Path.cwd()}/", ""), encoding="utf-8")
    shutil.rmtree("data")


def make_corpus_and_runs() -> None:
    """A prepared corpus, a finished pretraining run, and one that was interrupted."""
    Path("text.txt").write_text("\n".join(sentences(40)) + "\n", encoding="utf-8")
    Path("heldout.txt").write_text("\n".join(sentences(5, seed=1)) + "\n", encoding="utf-8")
    Path("recipe.toml").write_text(RECIPE, encoding="utf-8")
    prepare = (
        "--language",
        "en",
        "--lines",
        "--min-count",
        "1",
        "--heldout",
        "heldout.txt",
        "--workers",
        "1",
    )
    run("prepare", "text.txt", *prepare, "--out", "corpus")
    run("pretrain", "corpus", "--recipe", "recipe.toml", "--tokens", "400", "--out", "run")
    shutil.rmtree("run/training")  # the interrupted run has the same files
    once, original = iter([False] * 7), Trainer.run

    def interrupted(self: Trainer, report: object, stopped: object) -> bool:
        return original(self, report, lambda: next(once, True))  # type: ignore[arg-type]

    Trainer.run = interrupted  # type: ignore[method-assign,assignment]
    run(
        "pretrain",
        "corpus",
        "--recipe",
        "recipe.toml",
        "--tokens",
        "400",
        "--out",
        "interrupted",
        exit_code=130,
    )
    Trainer.run = original  # type: ignore[method-assign]
    for name in ("text.txt", "heldout.txt", "recipe.toml", "run/curve.png", "corpus/lengths.png"):
        Path(name).unlink(missing_ok=True)


def make_vectors() -> None:
    """Vector files of every format, and an embedding job that was interrupted."""
    Path("vectors").mkdir()
    write("vectors/text.txt", *TEXTS)
    for ending in ("h5", "npz", "parquet", "arrow", "npy"):
        run("embed", "vectors/text.txt", f"vectors/all.{ending}", "--model", "models/plain", "--tokens")
    for ending in ("h5", "parquet"):
        target = f"vectors/top-float16.{ending}"
        run("embed", "vectors/text.txt", target, "--model", "models/plain", "--tokens", "--layers", "top",
            "--dtype", "float16")  # fmt: skip


def make_integrations() -> None:
    """What other libraries save with elmokit inside."""
    ElmoModel.from_elmokit("models/plain").save_pretrained("transformers")
    ElmoTokenizer.from_elmokit("models/plain").save_pretrained("transformers")
    elmo = Elmo("models/plain")
    modules = [elmo, Pooling(elmo.get_embedding_dimension())]
    SentenceTransformer(modules=modules, device="cpu").save("sentence-transformers", create_model_card=False)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmokit", config={"model": "models/plain"})
    nlp.to_disk("spacy")


def record_numbers() -> None:
    """Write the numbers that version 0.1 gives for all of these."""
    arrays: dict[str, np.ndarray] = {}
    expected: dict[str, object] = {"version": elmokit.__version__, "texts": TEXTS, "prompt": PROMPT}
    for folder in [*sorted(Path("models").iterdir()), Path("run")]:
        embedder = elmokit.load(folder)
        for number, sentence in enumerate(embedder.embed([text.split() for text in TEXTS])):
            arrays[f"{folder}/{number}"] = sentence.layers
    expected["perplexity"] = {
        name: LanguageModel.load(name).perplexity([text.split() for text in TEXTS]).mean
        for name in ("models/softmax", "models/int8", "models/hdf5", "models/words", "run")
    }
    predictions = {}
    for folder in sorted(Path("tasks").iterdir()):
        found = TaskModel.load(folder).predict(PROMPT)
        spans = [[s.label, s.start, s.end, s.probability] for s in found.spans]
        predictions[folder.name] = {"tags": found.tags, "labels": found.labels, "spans": spans,
                                    "scores": found.scores}  # fmt: skip
    expected["predictions"] = predictions
    np.savez_compressed("layers.npz", **arrays)
    Path("expected.json").write_text(
        json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def main() -> None:
    """Write everything into the folder that the command line names."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    with chdir(folder):
        make_models()
        make_tasks()
        make_corpus_and_runs()
        make_vectors()
        make_integrations()
        record_numbers()


if __name__ == "__main__":
    main()
