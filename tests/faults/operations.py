"""Everything in elmokit that writes, as operations that can be interrupted anywhere. Add new writers here."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.base import locked, write_errors
from elmokit.compat.bilm import dump_bilm_embeddings
from elmokit.corpus import prepare_corpus
from elmokit.embed import embed_file, store_pooling
from elmokit.embed import load_elmo as load_embedder
from elmokit.encoders import CachedEncoder, open_encoder
from elmokit.errors import DataError
from elmokit.formats import load_model, save_model
from elmokit.graph import KnowledgeGraph
from elmokit.integrations.storage import store
from elmokit.language_model import LanguageModel, perplexity_file
from elmokit.model import fit_statistics
from elmokit.pretraining import pretrain
from elmokit.search import Document, Index, find_uses, write_run
from elmokit.tasks import compare, evaluate, load_task, train
from elmokit.tasks.core import comparison
from elmokit.training import Checkpoints
from elmokit.vectors import ENDINGS, Spool, read_vectors, spool
from tests.faults.operation import Operation, files, hidden, show_matplotlib
from tests.small_outputs import small_graph, write_shards
from tests.small_runs import CONFIG, RECIPE, SETTINGS, sentences
from tests.task_data import quick_settings, write_labelled
from tests.tiny import tiny_bundle, tiny_config, tiny_model, wide_bundle

DOCUMENTS = [Document(id=name, text=f"the cat {name}. né sat") for name in "abc"]
CHANGED = [Document(id="b", text="another cat"), Document(id="d", text="a new one")]
FORMATS = [ending for ending in ENDINGS if ending != ".hdf5"]  # which is .h5


class Inputs:
    """What the operations read, made once."""

    def __init__(self, folder: Path) -> None:
        spool.PART_BYTES = 20_000  # a few parts
        comparison._in_own_process = comparison._measure  # a new process would not be armed
        self.text = folder / "text.txt"
        self.text.write_text("\n".join(sentences(40)) + "\n")
        self.lines = sentences(10)
        self.wide, self.tiny, self.language = (folder / name for name in ("wide", "tiny", "language"))
        save_model(wide_bundle(), self.wide)
        save_model(tiny_bundle(vocabulary=True, softmax=True), self.tiny)
        self.published = folder / "published"
        save_model(tiny_bundle(), self.published, format="hdf5")
        other = tiny_bundle(tiny_model(tiny_config(), seed=5), vocabulary=True, softmax=True)
        save_model(other, self.language)
        self.data = folder / "data"
        self.data.mkdir()
        for part in ("train", "dev"):
            write_labelled(self.data, part)
        changes = ("training.epochs=2", "training.batch=14", "head.rnn=4")
        self.settings = quick_settings("classifier", *changes)
        self.tuned = quick_settings("classifier", *changes, "encoder.tune_from=0")
        self.task = folder / "task"
        self.train(self.task, "chars")
        self.corpus = folder / "corpus"
        self.prepare(self.corpus)
        self.small = folder / "small"
        recipe = replace(RECIPE, model=replace(CONFIG, cell_dim=12, projection_dim=6))
        pretrain(self.corpus, out=self.small, tokens=40, recipe=recipe, workers=1)

    def train(self, out: Path, encoder: str | None = None, settings: Any = None, **how: bool) -> None:
        settings = settings or self.settings
        train("classifier", self.data, encoder=encoder or str(self.tiny), out=out, settings=settings, **how)

    def prepare(self, out: Path) -> None:
        prepare_corpus([self.text], out, replace(SETTINGS, heldout_share=0.0), workers=1)

    def operations(self) -> list[Operation]:
        return [
            *(self._embed(ending, old=old) for ending in FORMATS for old in (False, True)),
            *(self._convert(format, dtype) for format, dtype in (("native", "int8"), ("hdf5", "float32"))),
            self._prepare(),
            self._pretrain(longer=False),
            self._pretrain(longer=True),
            self._pretrain_grown(),
            self._train("train", self.settings, old=False),
            self._train("train-adapted", self.settings, old=False, adapt=True),
            self._train("train-over-old", self.settings, old=True),
            self._train("train-tuned-over-old", self.tuned, old=True),
            self._cache(),
            self._compare(),
            self._save_task(),
            self._store(),
            *self._indexes(),
            self._pooling(),
            *self._files(),
        ]

    def _indexes(self) -> list[Operation]:
        def add(index: Index) -> None:
            index.add(DOCUMENTS)

        return [
            self._index("index", add, None),
            self._index("index-over-old", None, lambda index: index.add(CHANGED)),
            self._index("index-add", lambda index: index.add(CHANGED), add),
            self._index("index-delete", lambda index: index.delete(["a", "c"]), add),
            self._index("index-merge", lambda index: index.merge(), self._two_segments),
        ]

    def _index(
        self,
        name: str,
        change: Callable[[Index], Any] | None,
        begin: Callable[[Index], Any] | None,
    ) -> Operation:
        """Make an index and `change` it, or make it anew in place of an old one."""

        def changed(folder: Path, how: Callable[[Index], Any]) -> None:
            model = load_embedder(self.tiny)
            how(Index.build((), folder / "index", model=model, language="en"))

        def content(folder: Path) -> Any:
            if not (folder / "index").exists():
                return None
            index = Index.open(folder / "index")
            index.check()
            names, vectors = index.vectors()
            documents = sorted((one.id, one.text) for one in index)
            found = sorted(zip(names, map(bytes, vectors), strict=True))
            return (documents, found, len(index._segments)) if documents else None

        def run(folder: Path) -> None:
            if change is not None:
                return changed(folder, change)
            model = load_embedder(self.tiny)
            Index.build(DOCUMENTS, folder / "index", model=model, language="en", overwrite=True)

        old = None if begin is None else lambda folder: changed(folder, begin)
        return Operation(name, run, run, content, old)

    @staticmethod
    def _two_segments(index: Index) -> None:
        index.add(DOCUMENTS)
        index.add(CHANGED)
        index.delete(["c"])

    def _pooling(self) -> Operation:
        def store(folder: Path, scale: float) -> None:
            if not (folder / "model").exists():
                save_model(load_model(self.tiny), folder / "model")
            embedder = load_embedder(folder / "model")
            means = np.arange(3 * 5 * embedder.dim, dtype=np.float32).reshape(5, 3, -1) ** 0.5 * scale
            weights = np.ones(1, np.float32)
            fitted = fit_statistics(["a"], weights, means, layer_weights=[1, 1, 1], num_axes=2)
            store_pooling(embedder, fitted, folder / "model")

        def content(folder: Path) -> Any:
            found = load_model(folder / "model").pooling
            return None if found is None else [array.tobytes() for array in found.arrays().values()]

        def run(folder: Path) -> None:
            store(folder, 2.0)

        return Operation("pooling-over-old", run, run, content, lambda folder: store(folder, 1.0))

    def _embed(self, ending: str, *, old: bool) -> Operation:
        def run(folder: Path, **how: bool) -> None:
            embedder = load_embedder(self.wide, precision="int8", batch_tokens=64)
            embed_file(embedder, self.lines, folder / f"v{ending}", tokens=True, **how)

        def again(folder: Path) -> None:
            begun = Spool.folder_of(folder / f"v{ending}").exists()
            done = (folder / f"v{ending}").exists() and not begun
            run(folder, **({"overwrite": True} if done and old else {"resume": begun or done}))

        def content(folder: Path) -> Any:
            if not (folder / f"v{ending}").exists():
                return None
            if ending in (".csv", ".tsv"):
                return (folder / f"v{ending}").read_bytes()
            with read_vectors(folder / f"v{ending}") as found:
                arrays = [one.vectors if one.layers is None else one.layers for one in found]
            return [(array.shape, array.tobytes()) for array in arrays]

        def write_old(folder: Path) -> None:
            embed_file(load_embedder(self.tiny), ["an old result"], folder / f"v{ending}", tokens=True)

        start = (lambda folder: run(folder, overwrite=True)) if old else run
        return Operation(
            f"embed{ending}{'-over-old' if old else ''}", start, again, content, write_old if old else None
        )

    def _convert(self, format: Any, dtype: Any) -> Operation:
        def run(folder: Path) -> None:
            save_model(load_model(self.language), folder / "model", format=format, dtype=dtype)

        def again(folder: Path) -> None:
            done = (folder / "model").exists()
            try:
                run(folder)
            except DataError as refused:
                assert done and "exists already" in str(refused)  # noqa: PT017, PT018

        return Operation(f"convert-{format}", run, again, lambda folder: files(folder / "model"))

    def _prepare(self) -> Operation:
        def run(folder: Path) -> None:
            self.prepare(folder / "corpus")

        return Operation("prepare", run, run, lambda folder: files(folder / "corpus"))

    def _pretrain(self, *, longer: bool) -> Operation:
        recipe = replace(RECIPE, model=CONFIG)

        def steps(folder: Path, number: int, **how: bool) -> None:
            # Raw text without an old result, so that its preparation is interrupted, too.
            source, options = (self.corpus, {}) if longer else (self.text, {"preparation": SETTINGS})
            tokens = number * recipe.batch * recipe.unroll
            pretrain(source, out=folder / "model", tokens=tokens, recipe=recipe, workers=1, **options, **how)

        def again(folder: Path) -> None:
            steps(folder, 10, resume=(folder / "model" / "training").exists())

        if longer:
            run, old = again, lambda folder: steps(folder, 5)
            return Operation("pretrain-longer", run, again, self._pretrained, old, may_vanish=True)
        return Operation("pretrain", lambda folder: steps(folder, 10), again, self._pretrained)

    def _pretrain_grown(self) -> Operation:
        """A model that starts from a smaller one and imitates another, resumed by what the run records."""

        def run(folder: Path) -> None:
            tokens = 10 * RECIPE.batch * RECIPE.unroll
            grown = {"start": self.small, "grow": True, "teacher": self.wide}
            pretrain(self.corpus, out=folder / "model", tokens=tokens, recipe=RECIPE, workers=1, **grown)

        def again(folder: Path) -> None:
            begun = (folder / "model" / "training" / "run.json").exists()
            pretrain(out=folder / "model", resume=True) if begun else run(folder)

        return Operation("pretrain-grown", run, again, self._pretrained)

    @staticmethod
    def _pretrained(folder: Path) -> Any:
        names = ("config.json", "model.safetensors", "softmax.safetensors", "vocab.txt")
        return files(folder / "model", *names)

    def _train(self, name: str, settings: Any, *, old: bool, adapt: bool = False) -> Operation:
        def again(folder: Path) -> None:
            begun = Checkpoints(folder / "out").exist or not (folder / "out" / "config.json").exists()
            how = {"resume": True} if begun and (folder / "out").exists() else {"overwrite": True}
            self.train(folder / "out", settings=settings, adapt=adapt, **how)

        def write_old(folder: Path) -> None:
            self.train(folder / "out", settings=settings.with_seed(7))

        def run(folder: Path) -> None:
            self.train(folder / "out", settings=settings, overwrite=old, adapt=adapt)

        return Operation(
            name, run, again, lambda folder: self._task(folder / "out"), write_old if old else None
        )

    @staticmethod
    def _task(folder: Path) -> Any:
        """The weights, with those of the encoders inside; raises if the model is not whole."""
        if not (folder / "config.json").exists():
            return None
        model = load_task(folder)
        encoders = [encoder.fingerprint() for encoder in model.encoders]
        return [(name, tensor.numpy().tobytes()) for name, tensor in model.state_dict().items()], encoders

    def _cache(self) -> Operation:
        texts = [line.split() for line in self.text.read_text().splitlines()]

        def run(folder: Path) -> None:
            CachedEncoder(open_encoder(str(self.tiny)), folder / "cache").fill(texts)

        def content(folder: Path) -> Any:
            cached = CachedEncoder(open_encoder(str(self.tiny)), folder / "cache")
            if not cached._places:
                return None
            assert len(cached._places) == len({tuple(text) for text in texts})
            return [one.numpy().tobytes() for one in cached.encode(texts)]

        return Operation("cache", run, run, content, waits=True)

    def _compare(self) -> Operation:
        def run(folder: Path, **how: bool) -> None:
            encoders = ["chars", str(self.tiny)]
            compare(
                "classifier", self.data, encoders, out=folder / "out", seeds=1, settings=self.settings, **how
            )

        def again(folder: Path) -> None:
            run(folder, resume=True)

        def content(folder: Path) -> Any:
            if not (folder / "out" / "comparison.md").exists():
                return None
            found = sorted((folder / "out").glob("*/measured.json"))
            return [(path.parent.name, json.loads(path.read_text())["run"]["values"]) for path in found]

        return Operation("compare", run, again, content)

    def _save_task(self) -> Operation:
        def run(folder: Path) -> None:
            load_task(self.task).save(folder / "out", self_contained=True)

        def write_old(folder: Path) -> None:
            self.train(folder / "out", settings=self.settings.with_seed(7), self_contained=True)

        return Operation("save-task-over-old", run, run, lambda folder: self._task(folder / "out"), write_old)

    def _store(self) -> Operation:
        def write(model: Path) -> Callable[[Path], None]:
            return lambda folder: store(load_model(model), folder / "out")

        run = write(self.language)
        return Operation("store-over-old", run, run, lambda folder: files(folder / "out"), write(self.tiny))

    def _files(self) -> list[Operation]:
        """Everything that writes one file."""

        def errors(path: Path) -> None:
            evaluate(load_task(self.task), self.data / "dev.tsv", errors=path)

        def scores(path: Path) -> None:
            perplexity_file(LanguageModel.load(self.tiny), self.text, tokens=True, sentences=path)

        return [
            self._file("errors.tsv", errors),
            self._file("scores.tsv", scores),
            self._file("run.txt", lambda path: write_run(path, {"q": [("d", 1.0), ("e", 0.5)]})),
            self._file("dump.hdf5", self._dump),
            self._file("graph.jsonl", lambda path: small_graph().save(path, overwrite=True)),
            self._file("graph.graphml", lambda path: small_graph().save(path, overwrite=True)),
            self._graph_tables(),
            self._shards(),
            *self._picture(),
        ]

    @staticmethod
    def _graph_tables() -> Operation:
        def run(folder: Path) -> None:
            small_graph().save(folder / "graph", overwrite=True)

        def write_old(folder: Path) -> None:
            KnowledgeGraph([], []).save(folder / "graph")

        return Operation("graph-tables", run, run, lambda folder: files(folder / "graph"), write_old)

    def _shards(self) -> Operation:
        def run(folder: Path) -> None:
            with locked(folder / "out"), write_errors(folder / "out"):
                write_shards(folder / "out", self.tiny)

        def content(folder: Path) -> Any:
            if not (folder / "out" / "shards.json").exists():
                return None
            with read_vectors(folder / "out") as rows:
                return [None if row.vectors is None else row.vectors.tobytes() for row in rows]

        return Operation("shards", run, run, content)

    def _dump(self, path: Path) -> None:
        """Write vectors as bilm-tf did."""
        weights, options = self.published / "weights.hdf5", self.published / "options.json"
        dump_bilm_embeddings(None, self.text, options, weights, path)

    def _file(self, name: str, write: Callable[[Path], Any]) -> Operation:
        def run(folder: Path) -> None:
            write(folder / name)

        def content(folder: Path) -> Any:
            return (folder / name).read_bytes() if (folder / name).exists() else None

        return Operation(name, run, run, content, lambda folder: (folder / name).write_text("old"))

    def _picture(self) -> list[Operation]:
        """A picture, where there is matplotlib; its bytes are the same each time."""
        uses = find_uses(load_embedder(self.tiny), self.text, "the", num_senses=1)

        def draw(path: Path) -> None:
            show_matplotlib()
            uses.draw(path)

        return [self._file("uses.png", draw)] if hidden else []
