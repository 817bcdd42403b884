"""Everything that elmokit reads: a small example of each kind of file, what opens it, and its mutators."""

import gzip
import json
import lzma
import random
import shutil
import struct
from dataclasses import replace
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import elmokit
from elmokit.corpus import PrepareSettings
from elmokit.corpus.sources import read_documents
from elmokit.doctor import diagnose
from elmokit.embed import Embedder
from elmokit.encoders.vector_file import WordVectors, read_word_vectors, write_word_vectors
from elmokit.formats import ModelBundle, load_model, save_model
from elmokit.language_model import LanguageModel
from elmokit.model import FillWeights, FittedPooling, fit_statistics
from elmokit.tasks.classifier.data import FORMATS as LABELLED
from elmokit.tasks.coreference.data import FORMATS as DOCUMENTS
from elmokit.tasks.entailment.data import FORMATS as PAIRS
from elmokit.tasks.intent.data import FORMATS as INTENTS
from elmokit.tasks.reading.data import FORMATS as QUESTIONS
from elmokit.tasks.relations.relation_files import FORMATS as RELATIONS
from elmokit.tasks.reply.data import FORMATS as DIALOGUES
from elmokit.tasks.roles.data import FORMATS as FRAMES
from elmokit.tasks.seq2seq.data import FORMATS as TEXT_PAIRS
from elmokit.tasks.tagger.data import FORMATS as TAGGED
from elmokit.text import TokenizerSpec, Vocabulary
from elmokit.vectors import ENDINGS
from tests.faults.run_subjects import run_subjects
from tests.faults.subject import GOLDEN, Subject, subject
from tests.many_langs import write_folder as write_many_langs
from tests.small_outputs import small_graph, write_shards
from tests.small_runs import sentences
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

SETTINGS = PrepareSettings(tokenizer=TokenizerSpec(name="whitespace"), split_sentences=False)


def make_subjects(root: Path) -> dict[str, Subject]:
    """Write an example of everything into an empty folder."""
    return _models(root / "models") | _data(root / "data") | run_subjects(root / "runs")


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
    pooled = replace(bundle, pooling=_statistics(bundle), fill_weights=FillWeights(1, 0.5, -0.5))
    save_model(pooled, root / "pooled")
    loaded = ("native", "hdf5", "packed", "tf", "many-langs", "many-langs-old")
    subjects = {name: subject(root / name, load_all) for name in loaded}
    subjects |= {
        f"{name}-used": subject(root / name, load_and_embed) for name in ("plain", "int8", "lexicons")
    }
    subjects["pooled"] = subject(root / "pooled", _use_pooling)
    subjects |= {
        f"doctor-{name}": subject(root / name, diagnose) for name in ("plain", "hdf5", "tf", "many-langs")
    }
    for name in ("plain", "hdf5", "many-langs"):
        subjects[f"zip-{name}"] = subject(write_zip(root / f"{name}.zip", root / name), load_all)
    return subjects


def _statistics(bundle: ModelBundle) -> FittedPooling:
    layers, dim = bundle.model.config.num_layers + 1, bundle.model.config.output_dim
    means = np.random.default_rng(1).normal(size=(5, layers, dim)).astype(np.float32)
    weights = np.ones(1, np.float32)
    return fit_statistics(["the"], weights, means, layer_weights=[1.0] * layers, num_axes=2)


def _use_pooling(path: Path) -> None:
    embedder = Embedder(load_model(path))
    for pooling in ("sif", "whitened"):
        embedder.encode([["the", "cat"], ["né"]], pooling=pooling)
    LanguageModel.load(path)


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
        (
            PAIRS,
            "snli.txt",
            "gold_label\tsentence1\tsentence2\nyes\ta b\tc\n-\td\te\nno\tf\tg\nno\ta\tg\n",
        ),
        (PAIRS, "sts.csv", "main-news\tMSR\t2012\t1\t5.000\ta b .\tc d .\nx\ty\t2012\t2\t0.5\te\tf\n"),
        (
            DOCUMENTS,
            "gap.tsv",
            "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
            "1\tAda saw Rome and she left\tshe\t17\tAda\t0\tTRUE\tRome\t8\tFALSE\tx\n",
        ),
        (
            DOCUMENTS,
            "ontonotes.conll",
            "#begin document (x); part 0\nx 0 0 Ada NNP (1\nx 0 1 L NNP 1)|(2)\n\n"
            "#end document\n#begin document (y)\nx 0 0 a N -\n",
        ),
        (
            RELATIONS,
            "marked.tsv",
            "1\tleft(e1,e2)\t<e1>Ada</e1> left <e2>Rome</e2> .\n2\tOther\t<e1>a</e1> <e2>b</e2>\n",
        ),
        (RELATIONS, "triples.tsv", "Ada\tRome\tleft\tAda left Rome .\nRome\tAda\tunknown\tRome saw Ada .\n"),
        (
            RELATIONS,
            "heads.txt",
            "#doc a\n0\tAda\tB-Peop\t['Live_In']\t[2]\n1\tleft\tO\t['N']\t[1]\n2\tRome\tB-Loc\t['N']\t[2]\n",
        ),
        (
            RELATIONS,
            "abstracts.pubtator",
            "1|t|Lead harms .\n1|a|Of rats .\n1\t0\t4\tLead\tChemical\tD1\n1\t5\t10\tharms\tDisease\tD2\n"
            "1\tCID\tD1\tD2\n\n",
        ),
        (
            RELATIONS,
            "pairs-of-entities.jsonl",
            '{"text": "Ada left Rome", "entities": [{"id": "a", "type": "P", "offset": "0-2"}, {"id": "b", '
            '"type": "L", "start": 9, "end": 13}], "pairs": [{"e1": "a", "e2": "b", "label": "left"}]}\n',
        ),
        (TEXT_PAIRS, "translations.tsv", "source\ttarget\na b\tc d\ne\tf\n"),
        (TEXT_PAIRS, "translations.jsonl", '{"source": "a b", "target": "c"}\n' * 2),
        (DIALOGUES, "dialogues.tsv", "Hi !\tHello !\tBye .\na\tb\n"),
        (DIALOGUES, "dialogues.jsonl", '{"turns": ["a b", "c"]}\n'),
        (INTENTS, "intents.jsonl", '{"tokens": ["a", "b"], "tags": ["O", "B-X"], "intent": "go"}\n' * 2),
    ]
    for formats, name, content in rows:
        path = root / name
        path.write_text(content)
        given = {"columns.txt": "columns", "sts.csv": "sts"}.get(name)
        subjects[f"labelled-{name}"] = subject(path, partial(_read_labelled, formats, given))
    for name, given in (("a.at", "at"), ("trec.txt", "trec"), ("fine.txt", "trec-fine")):
        (root / name).write_text("NUM:dist How far is@it\nLOC:city Where@here\n")
        subjects[f"labelled-{name}"] = subject(root / name, partial(_read_labelled, LABELLED, given))
    small_graph().save(root / "graph.jsonl")
    subjects["graph"] = subject(root / "graph.jsonl", elmokit.read_graph)
    save_model(tiny_bundle(), root / "model")
    write_shards(root / "shards", root / "model")
    subjects["shards"] = subject(root / "shards", _read_vectors)
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


def pick(rng: random.Random, subjects: dict[str, Subject]) -> tuple[str, Path]:
    """Choose a subject and one of its files."""
    name = rng.choice(list(subjects))
    return name, rng.choice(list(subjects[name].files))
