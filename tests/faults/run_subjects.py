"""Runs, task models, caches, spools and indexes: small examples of each, and what opens them."""

import contextlib
import gzip
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import elmokit
from elmokit.corpus import PreparedCorpus
from elmokit.doctor import describe, diagnose
from elmokit.embed import Embedder
from elmokit.encoders import CachedEncoder, CharacterEncoder
from elmokit.pretraining import pretrain, read_bert_recipe
from elmokit.pretraining.bilm.recipe import read_recipe
from elmokit.search import Document, Index, read_documents, read_judgements, read_queries, read_run, segments
from elmokit.search.index_arrays import file_record, file_records
from elmokit.tasks import train
from elmokit.training import Checkpoints
from elmokit.training.metrics import read_metrics
from elmokit.vectors import Layout, Row, Spool
from tests.faults.subject import GOLDEN, Subject, subject
from tests.small_runs import RECIPE, prepare, sentences
from tests.task_data import INPUTS, TEXTS, WRITERS, quick_settings
from tests.tiny import tiny_bundle

# Changes that make the models small, since each case writes and reads a file of them.
_SMALL_HEADS = {
    "entailment": ("head.compare=2",),
    "reading": ("head.modelling=2",),
    "roles": ("head.frame_rnn=2",),
    "coreference": ("head.size=2",),
    "translate": ("head.decoder=2", "head.embedding=2", "head.target=words"),
    "reply": ("head.decoder=2", "head.embedding=2", "head.target=words"),
}


def run_subjects(root: Path) -> dict[str, Subject]:
    """Write an example of everything that is continued, used after training, or searched."""
    root.mkdir(parents=True)
    corpus = prepare(root / "prepared", sentences(30), heldout=sentences(3)).path
    subjects = {"corpus": subject(corpus, _read_corpus)}
    for name in ("tagger-plain", "classifier", "intent"):
        folder = shutil.copytree(GOLDEN / "tasks" / name, root / name)
        subjects[f"task-{name}"] = subject(folder, _use_task)
    position = {"step": 3, "tokens": 9, "seconds": 1.5}
    Checkpoints(root / "run").save(3, {"position": position, "job": {"weight": torch.ones(5)}})
    subjects["checkpoint"] = subject(root / "run", _load_checkpoint)
    (root / "metrics").mkdir()
    (root / "metrics" / "metrics.jsonl").write_text('{"step": 1, "loss": 2.5}\n{"step": 2, "a": {"b": 1}}\n')
    subjects["metrics"] = subject(root / "metrics", read_metrics)
    (root / "recipe.toml").write_text('base = "paper"\nbatch = 4\ncutoffs = [4, 7]\n[model]\ncell_dim = 8\n'
        'projection_dim = 4\n[model.encoder]\nfilters = [[1, 4], [2, 4]]\nembedding_dim = 4\n')  # fmt: skip
    subjects["recipe"] = subject(root / "recipe.toml", _read_recipe)
    (root / "bert.toml").write_text("batch = 4\n[model]\nhidden = 8\n")
    subjects["recipe-bert"] = subject(root / "bert.toml", lambda path: read_bert_recipe(str(path)))
    cached = CachedEncoder(CharacterEncoder(), root / "cache")
    cached.fill([["a", "b"], ["c"]])
    for file in (root / "cache").rglob("*.npy"):  # with a name that is always the same
        file.rename(file.with_name("segment" + file.name[32:]))
    subjects["cache"] = subject(root / "cache", _read_cache)
    _open_spool(root / "spool", resume=False)
    subjects["spool"] = subject(root / "spool", partial(_open_spool, resume=True))
    pretrain(corpus, out=root / "model", tokens=60, recipe=RECIPE, workers=1)
    described = {"corpus": corpus, "model": root / "model", "task": root / "classifier", "run": root / "run"}
    for name, path in (described | {"spool": root / "spool" / "out.h5.part"}).items():
        subjects[f"describe-{name}"] = subject(path, describe)
    subjects["doctor-run"] = subject(root / "model", diagnose)
    return subjects | _task_models(root) | _resumed(root, corpus) | _searched(root)


def _task_models(root: Path) -> dict[str, Subject]:
    """Train a small model of each task that has texts of its own kind."""
    words = root / "words.vec"
    words.write_text("3 2\nAda 1 2\nsaw 3 1\nRome 2 2\n")
    subjects = {}
    for task, changes in _SMALL_HEADS.items():
        (root / f"data-{task}").mkdir()
        for part in ("train", "dev"):
            WRITERS[task](root / f"data-{task}", part)
        settings = quick_settings(task, "training.epochs=1", "head.rnn=2", *changes)
        arguments = {"encoder": f"glove:{words}", "out": root / task, "settings": settings}
        model = train(task, root / f"data-{task}", **arguments).model
        model.save(root / task, self_contained=True)
        subjects[f"task-{task}"] = subject(root / task, partial(_use_task, inputs=INPUTS[task]))
    return subjects


def _resumed(root: Path, corpus: Path) -> dict[str, Subject]:
    """Leave runs as a kill leaves them; each case continues a copy."""
    data = root / "data-roles"

    def cut(out: Path, **how: object) -> None:
        arguments = {"encoder": "glove:" + str(root / "words.vec"), "settings": settings}
        train("roles", data, out=out, **arguments, **how)

    settings = quick_settings("roles", "training.epochs=1", "head.rnn=2", *_SMALL_HEADS["roles"])
    interrupted = patch("elmokit.tasks.core.training.write_report", side_effect=KeyboardInterrupt)
    with contextlib.suppress(KeyboardInterrupt), interrupted:
        cut(root / "cut-task")
    shutil.copytree(root / "model", root / "cut-model")
    subjects = {
        "resume-pretrain": subject(
            root / "cut-model", _on_copy(lambda out: pretrain(out=out, resume=True, workers=1))
        ),
        "resume-train": subject(root / "cut-task", _on_copy(partial(cut, resume=True))),
    }
    return subjects


def _on_copy(run: Callable[[Path], object]) -> Callable[[Path], None]:
    """Return what continues a run in a folder of its own, so that each case begins with the same one."""

    def opened(path: Path) -> None:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="copy-") as folder:
            run(Path(shutil.copytree(path, Path(folder) / "out")))

    return opened


def _searched(root: Path) -> dict[str, Subject]:
    """Write an index with deleted documents, and one whose checksums do not reveal a change."""
    embedder = Embedder(tiny_bundle())
    documents = [Document(id=f"d{n}", text=f"the cat {n}. né sat", metadata={"n": n % 2}) for n in range(4)]
    with patch.object(segments, "GRAPH_FROM", 2):
        index = Index.build(documents, root / "index", model=embedder, language="en")
    index.delete(["d1"])
    forged = shutil.copytree(index.path, root / "forged")
    subjects = {
        "index": subject(index.path, partial(_search, embedder)),
        "index-forged": subject(forged, partial(_search_forged, embedder)),
    }
    (root / "queries.jsonl").write_text('{"_id": "1", "text": "a b"}\n{"id": 2, "text": "c"}\n')
    (root / "queries.tsv").write_text("1\ta b\n2\tc\n")
    (root / "qrels.txt").write_text("1 0 d1 2\n2 0 d2 1\n")
    (root / "run.txt").write_text("1 Q0 d1 1 2.5 x\n1 Q0 d2 2 1e-3 x\n")
    readers = {"queries.jsonl": read_queries, "queries.tsv": read_queries}
    readers |= {"qrels.txt": read_judgements, "run.txt": read_run}
    (root / "documents.jsonl").write_text('{"_id": "a", "title": "A", "text": "b c", "year": 1}\n' * 2)
    (root / "documents.csv").write_text('id,text,year\na,"b c",1\nb,d,2\n')
    (root / "documents").mkdir()
    for name in ("a.txt", "b.txt.gz"):
        content = b"one line\nand another\n"
        (root / "documents" / name).write_bytes(gzip.compress(content, mtime=0) if "gz" in name else content)
    readers |= dict.fromkeys(("documents.jsonl", "documents.csv", "documents"), _read_all_documents)
    return subjects | {f"search-{name}": subject(root / name, read) for name, read in readers.items()}


def _read_all_documents(path: Path) -> None:
    for _ in read_documents([path]):
        pass


def _search(embedder: Embedder, path: Path) -> None:
    index = Index.open(path, model=embedder)
    with patch.object(segments, "_FEW", 2):  # so that it searches by the graph
        index.search("the cat", where={"n": 0}, explain=True)
    list(index)


def _search_forged(embedder: Embedder, path: Path) -> None:
    """Search an index after its checksums were made to fit, as somebody would who means harm."""
    try:
        manifest = json.loads((path / "index.json").read_bytes())
        for segment in manifest["segments"]:
            segment["files"] = file_records(path / segment["name"])
            for name in segment["deleted"]:
                segment["deleted"][name] = file_record(path / name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return _search(embedder, path)  # the manifest itself was changed
    (path / "index.json").write_text(json.dumps(manifest))
    return _search(embedder, path)


def _read_corpus(path: Path) -> None:
    corpus = PreparedCorpus(path)
    assert len(corpus.vocabulary) == len(corpus.counts)
    for shard in (*corpus.train, *corpus.heldout):
        corpus.spellings(shard.tokens)


def _use_task(path: Path, inputs: Sequence[Any] = TEXTS) -> None:
    elmokit.load_task(path).predict(list(inputs))


def _load_checkpoint(path: Path) -> None:
    Checkpoints(path).load()


def _read_recipe(path: Path) -> None:
    read_recipe(str(path))


def _read_cache(path: Path) -> None:
    CachedEncoder(CharacterEncoder(), path).encode([["a", "b"], ["c"], ["d"]])


def _open_spool(folder: Path, *, resume: bool) -> None:
    folder.mkdir(exist_ok=True)
    spool = Spool(folder / "out.h5", Layout(shape=(-1, 2), dtype="float32"), {"layers": "top"}, resume=resume)
    if resume:
        for _ in spool.rows():
            pass
        return
    with spool:
        for tokens in (["a", "b"], [], ["c"]):
            offsets = [(0, 1)] * len(tokens)
            vectors = np.ones((len(tokens), 2), np.float32)
            spool.add(Row(text=" ".join(tokens), tokens=tokens, offsets=offsets, vectors=vectors))
