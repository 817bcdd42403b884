"""Everything that elmokit reads: a small example of each kind of file, what opens it, and its mutators."""

import gzip
import json
import lzma
import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import elmokit
from elmokit.corpus import PreparedCorpus, PrepareSettings
from elmokit.corpus.sources import read_documents
from elmokit.doctor import describe, diagnose
from elmokit.embed import Embedder
from elmokit.encoders import CachedEncoder, CharacterEncoder
from elmokit.encoders.vector_file import WordVectors, read_word_vectors, write_word_vectors
from elmokit.formats import load_model, save_model
from elmokit.pretraining import pretrain
from elmokit.pretraining.bilm.recipe import read_recipe
from elmokit.search import Document, Index, read_judgements, read_queries, read_run
from elmokit.search.index_arrays import file_record, file_records
from elmokit.tasks.classifier.data import FORMATS as LABELLED
from elmokit.tasks.coreference.data import FORMATS as DOCUMENTS
from elmokit.tasks.entailment.data import FORMATS as PAIRS
from elmokit.tasks.intent.data import FORMATS as INTENTS
from elmokit.tasks.reading.data import FORMATS as QUESTIONS
from elmokit.tasks.roles.data import FORMATS as FRAMES
from elmokit.tasks.tagger.data import FORMATS as TAGGED
from elmokit.text import TokenizerSpec, Vocabulary
from elmokit.training import Checkpoints
from elmokit.training.metrics import read_metrics
from elmokit.vectors import ENDINGS, Layout, Row, Spool
from tests.faults import mutation
from tests.faults.mutation import Mutator
from tests.many_langs import write_folder as write_many_langs
from tests.small_runs import RECIPE, prepare, sentences
from tests.tf_files import bilm_names, with_training, write_checkpoint
from tests.tiny import (
    WORDS,
    forget_digests,
    tiny_arrays,
    tiny_bundle,
    tiny_config,
    tiny_model,
    tiny_options,
    write_folder,
    write_zip,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "v0_1"
HDF5 = mutation.near(
    b"\x89HDF", b"TREE", b"HEAP", b"SNOD", b"GCOL", b"OHDR", b"\x01\x00\x08\x00", b"\x03\x00\x08\x00"
)
SETTINGS = PrepareSettings(tokenizer=TokenizerSpec(name="whitespace"), split_sentences=False)


@dataclass(frozen=True)
class Subject:
    """Something that elmokit reads.

    Attributes:
        path: what is opened.
        open: opens and reads all of it.
        files: the files that are changed, each with its mutator.
    """

    path: Path
    open: Callable[[Path], object]
    files: dict[Path, Mutator]


def mutator_of(name: str) -> Mutator:
    """Return the mutator for a file of that name."""
    endings: dict[str, Mutator] = {
        ".json": mutation.json_text, ".jsonl": mutation.json_lines, ".safetensors": mutation.safetensors,
        ".hdf5": HDF5, ".h5": HDF5, ".npy": mutation.npy, ".index": mutation.table_of_checkpoint,
        ".txt": mutation.text, ".dic": mutation.text, ".toml": mutation.text, ".vec": mutation.text,
        ".conllu": mutation.text, ".tsv": mutation.text, ".csv": mutation.text, ".at": mutation.text,
        ".ft": mutation.text, ".in": mutation.text, ".out": mutation.text, "label": mutation.text,
        ".gz": mutation.packed(mutation.text), ".xz": mutation.packed(mutation.text),
        ".parquet": mutation.at_end(0.5), ".arrow": mutation.any_bytes,
        ".zip": mutation.archive(mutator_of), ".npz": mutation.archive(mutator_of),
        ".pkl": mutation.archive(mutator_of), ".pt": mutation.archive(mutator_of),
    }  # fmt: skip
    return next((found for ending, found in endings.items() if name.endswith(ending)), mutation.any_bytes)


def subject(path: Path, open: Callable[[Path], object], *extra: Path) -> Subject:
    """Make a subject whose files are all of a folder, or one file and some extra ones."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    kept = [file for file in (*files, *extra) if file.name != "README.md" and not file.name.startswith(".")]
    return Subject(path, open, {file: mutator_of(file.name) for file in sorted(kept)})


def make_subjects(root: Path) -> dict[str, Subject]:
    """Write an example of everything into an empty folder."""
    return _models(root / "models") | _data(root / "data") | _runs(root / "runs")


def load_all(path: Path) -> None:
    """Load a model with its softmax."""
    bundle = load_model(path)
    if bundle.softmax is not None:
        bundle.softmax.read()


def load_and_embed(path: Path) -> None:
    """Load a model and use it."""
    Embedder(load_model(path)).embed([["the", "cat", "né"], []])


def _models(root: Path) -> dict[str, Subject]:
    small = tiny_config(filters=((1, 1), (2, 1)), embedding_dim=1, cell_dim=2, projection_dim=2, num_layers=1)
    bundle = tiny_bundle(tiny_model(small), vocabulary=True, softmax=True)
    root.mkdir(parents=True)
    save_model(bundle, root / "native")
    for name, dtype in (("plain", "float32"), ("int8", "int8")):
        save_model(bundle, root / name, dtype=dtype)
        forget_digests(root / name)
    write_folder(root / "hdf5", small, vocabulary=WORDS, softmax=True)
    shutil.copytree(root / "hdf5", root / "packed")
    with h5py.File(root / "packed" / "lm_weights.hdf5", "w") as file:
        for key, array in tiny_arrays(small).items():
            file.create_dataset(
                key, data=array, chunks=True, compression="gzip", shuffle=True, fletcher32=True
            )
    (root / "tf").mkdir()
    (root / "tf" / "options.json").write_text(json.dumps(tiny_options(small)))
    variables = with_training(bilm_names(tiny_arrays(small)), len(WORDS), 2)
    write_checkpoint(root / "tf" / "model.ckpt-1", variables)
    (root / "tf" / "vocab.txt.gz").write_bytes(
        gzip.compress("".join(f"{word}\n" for word in WORDS).encode(), mtime=0)
    )
    write_many_langs(root / "many-langs")
    write_many_langs(root / "many-langs-old", old_pickles=True)
    save_model(load_model(root / "many-langs"), root / "lexicons")
    forget_digests(root / "lexicons")
    loaded = ("native", "hdf5", "packed", "tf", "many-langs", "many-langs-old")
    subjects = {name: subject(root / name, load_all) for name in loaded}
    subjects |= {
        f"{name}-used": subject(root / name, load_and_embed) for name in ("plain", "int8", "lexicons")
    }
    subjects |= {
        f"doctor-{name}": subject(root / name, diagnose) for name in ("plain", "hdf5", "tf", "many-langs")
    }
    for name in ("plain", "hdf5", "many-langs"):
        subjects[f"zip-{name}"] = subject(write_zip(root / f"{name}.zip", root / name), load_all)
    return subjects


def _data(root: Path) -> dict[str, Subject]:
    root.mkdir(parents=True)
    subjects = {}
    for ending in ("h5", "npz", "parquet", "arrow", "npy"):
        path = Path(shutil.copy(GOLDEN / "vectors" / f"all.{ending}", root))
        subjects[f"vectors-{ending}"] = subject(path, _read_vectors)
    tagged = "".join(f"{number}\tword\t_\tNOUN\t_\t_\t0\troot\t_\t_\n" for number in (1, 2))
    rows = [
        (TAGGED, "columns.txt", "Ada B-PER\nsaw O\nRome B-LOC\n\n-DOCSTART- O\n\nRome\tB-LOC\n"),
        (TAGGED, "a.conllu", f"# text = word word\n1-2\tboth\n{tagged}1.1\tempty\n\n{tagged}\n"),
        (
            TAGGED,
            "tags.jsonl",
            '{"tokens": ["a", "b"], "tags": ["O", "B-X"]}\n{"text": "x y", "slots": {"s": "y"}}\n',
        ),
        (LABELLED, "a.tsv", "label\ttext\npos\tgood film\nneg|pos\tbad film\n"),
        (LABELLED, "a.csv", 'text,label\n"good, really\nfilm",pos\nbad film,neg\n'),
        (LABELLED, "a.ft", "__label__a __label__b good film\n__label__a bad\n"),
        (
            LABELLED,
            "labels.jsonl",
            '{"text": "a b", "label": "x"}\n{"tokens": ["a"], "labels": ["x", "y"]}\n',
        ),
        (PAIRS, "pairs.tsv", "yes\ta b\tc\nno\td\te\nyes\tf\tg\n"),
        (PAIRS, "pairs.jsonl", '{"label": "x", "premise": "a b", "hypothesis": ["c"]}\n' * 2),
        (FRAMES, "frames.tsv", "1\ta\tX\tgo\tgo.01\tB-V\n2\tb\tX\t_\t_\tB-ARG1\n\n1\tc\tX\t_\t_\n"),
        (DOCUMENTS, "clusters.conll", "#begin document x\n0\ta\t(1\n1\tb\t1)\n\n2\tc\t(1)\n3\td\t(2)\n"),
        (
            QUESTIONS,
            "questions.json",
            '{"data": [{"paragraphs": [{"context": "Ada left .", "qas": [{"id": "1", "question": "Who ?", '
            '"answers": [{"text": "Ada", "answer_start": 0}]}]}]}]}',
        ),
        (INTENTS, "intents.jsonl", '{"tokens": ["a", "b"], "tags": ["O", "B-X"], "intent": "go"}\n' * 2),
    ]
    for formats, name, content in rows:
        path = root / name
        path.write_text(content)
        given = "columns" if name == "columns.txt" else None
        subjects[f"labelled-{name}"] = subject(path, partial(_read_labelled, formats, given))
    for name, given in (("a.at", "at"), ("trec.txt", "trec"), ("fine.txt", "trec-fine")):
        (root / name).write_text("NUM:dist How far is@it\nLOC:city Where@here\n")
        subjects[f"labelled-{name}"] = subject(root / name, partial(_read_labelled, LABELLED, given))
    (root / "seq").mkdir()
    for name, content in (("seq.in", "a b\nc\n"), ("seq.out", "O B-X\nO\n"), ("label", "go\nstop\n")):
        (root / "seq" / name).write_text(content)
    subjects["labelled-seq"] = subject(root / "seq", partial(_read_labelled, INTENTS, "seq"))
    (root / "a.tsv.gz").write_bytes(gzip.compress(b"label\ttext\npos\tgood film\nneg\tbad film\n", mtime=0))
    subjects["labelled-gz"] = subject(root / "a.tsv.gz", partial(_read_labelled, LABELLED, None))
    return subjects | _vector_files(root) | _word_lists(root) | _raw_text(root)


def _vector_files(root: Path) -> dict[str, Subject]:
    """Write vectors of tokens, sentences and uses in every format."""
    embedder = Embedder(tiny_bundle())
    subjects = {}
    for ending in ENDINGS:
        for unit, how in (("token", {}), ("sentence", {"pooling": "mean"}), ("use", {"word": "cat"})):
            path = root / f"{unit}{ending}"
            if ending != ".npy" or unit == "sentence":
                elmokit.embed_file(embedder, ["the cat sat", "", "né cat"], path, tokens=True, **how)
                subjects[f"vectors-{path.name}"] = subject(path, _read_vectors)
    return subjects


def _word_lists(root: Path) -> dict[str, Subject]:
    words = "3 2\na 1 2.5\nb -3 4e-2\nc 0 0\n"
    binary = b"2 3\n" + b"".join(word + b" " + struct.pack("<3f", 1, 2, 3) + b"\n" for word in (b"a", b"b"))
    contents = {"v.vec": words.encode(), "glove.txt": words[4:].encode(), "v.bin": binary}
    contents |= {
        "v.bin.gz": gzip.compress(binary, mtime=0),
        "v.vec.gz": gzip.compress(words.encode(), mtime=0),
    }
    subjects = {}
    for name, content in contents.items():
        (root / name).write_bytes(content)
        subjects[f"words-{name}"] = subject(root / name, read_word_vectors)
    write_word_vectors(WordVectors({"a": 0, "b": 1}, np.ones((2, 3), np.float32)), root / "own.npy")
    subjects["words-npy"] = subject(root / "own.npy", read_word_vectors, root / "own.json")
    for name in ("vocab.txt", "vocab.txt.gz", "vocab.txt.xz"):
        Vocabulary(WORDS).save(root / name)
        subjects[f"vocabulary-{name}"] = subject(root / name, Vocabulary.load)
    return subjects


def _raw_text(root: Path) -> dict[str, Subject]:
    lines = "\n".join(sentences(20)).encode() + b"\n\nMore text\n"
    records = b"".join(json.dumps({"text": line}).encode() + b"\n" for line in sentences(5))
    contents = {
        "raw.txt": lines,
        "raw.txt.gz": gzip.compress(lines, mtime=0),
        "raw.txt.xz": lzma.compress(lines),
    }
    contents |= {"raw.jsonl": records}
    for name, content in contents.items():
        (root / name).write_bytes(content)
    pq.write_table(pa.table({"text": list(sentences(20))}), root / "raw.parquet")
    names = (*contents, "raw.parquet")
    return {f"text-{name}": subject(root / name, _read_documents) for name in names}


def _runs(root: Path) -> dict[str, Subject]:
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
    return subjects | _searched(root)


def _searched(root: Path) -> dict[str, Subject]:
    """Write an index with deleted documents, and one whose checksums do not reveal a change."""
    embedder = Embedder(tiny_bundle())
    documents = [Document(id=f"d{n}", text=f"the cat {n}. né sat", metadata={"n": n % 2}) for n in range(4)]
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
    return subjects | {f"search-{name}": subject(root / name, read) for name, read in readers.items()}


def _search(embedder: Embedder, path: Path) -> None:
    index = Index.open(path, model=embedder)
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


def _read_vectors(path: Path) -> None:
    with elmokit.read_vectors(path) as file:
        for _ in file:
            pass


def _read_labelled(formats: "elmokit.tasks.core.Formats[object]", given: str | None, path: Path) -> None:
    tokenize = formats.tokenizer(TokenizerSpec(name="whitespace"))
    formats.read(path, tokenize=tokenize, format=given)


def _read_documents(path: Path) -> None:
    for _ in read_documents(path, SETTINGS):
        pass


def _read_corpus(path: Path) -> None:
    corpus = PreparedCorpus(path)
    assert len(corpus.vocabulary) == len(corpus.counts)
    for shard in (*corpus.train, *corpus.heldout):
        corpus.spellings(shard.tokens)


def _use_task(path: Path) -> None:
    elmokit.load_task(path).predict("Grace Hopper left New York .")


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


def pick(rng: random.Random, subjects: dict[str, Subject]) -> tuple[str, Path]:
    """Choose a subject and one of its files."""
    name = rng.choice(list(subjects))
    return name, rng.choice(list(subjects[name].files))
