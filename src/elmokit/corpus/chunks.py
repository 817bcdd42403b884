"""Turn a block of text into a chunk: sentences as ids of types, which are numbered within the chunk.

A chunk is one safetensors file. Its types are sorted by bucket, a hash of their spelling, so that the types
of all chunks can be merged bucket by bucket.
"""

import hashlib
import json
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from safetensors.numpy import save

from elmokit.base import write_bytes
from elmokit.corpus.cleaning import clean
from elmokit.corpus.corpus_settings import PrepareSettings
from elmokit.text import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, sentences_from_lines

NUM_BUCKETS: Final = 1024
# What is dropped and counted: sentences, records, boundary tokens, and the characters of the sentences.
TOO_SHORT, TOO_LONG, EMPTY, MARKS = "too_short", "too_long", "empty_records", "boundary_marks"
CHARACTERS = "characters"
_BUCKET_SHIFT = 32 - 10  # a bucket is the upper 10 of 32 bits
_WRAPPED_WIDTH = 120  # a document with longer lines is not wrapped at a column
_CHARACTERS_PER_TOKEN = 100  # a sentence with more is too long without being tokenised
_MARKS = (BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN)

Tokenize = Callable[[str], list[str]]


class ChunkBuilder:
    """Tokenises documents and gives each distinct spelling a number.

    Args:
        tokenize: Returns the tokens of a sentence.
        settings: The settings of the preparation.
    """

    def __init__(self, tokenize: Tokenize, settings: PrepareSettings) -> None:
        self._tokenize = tokenize
        self._settings = settings
        # The first numbers are boundary tokens in the text, which are dropped.
        self._types: defaultdict[str, int] = defaultdict(None, {mark: n for n, mark in enumerate(_MARKS)})
        self._types.default_factory = self._types.__len__
        self._tokens = array("i")
        self._lengths = array("i")
        self._documents = array("i")  # sentences of each document
        self._hashes: list[bytes] = []
        self._left_out: Counter[str] = Counter()
        self._characters = self._bytes = 0

    def add(self, document: str) -> None:
        """Clean and tokenise a document and add its sentences."""
        self._bytes += len(document.encode(errors="replace")) + 1
        document = clean(document)
        self._characters += len(document)
        if not document or document.isspace():
            self._left_out[EMPTY] += 1
            return
        before = len(self._lengths)
        for sentence in _sentences(document, self._settings):
            self._add_sentence(sentence)
        if len(self._lengths) > before:
            self._documents.append(len(self._lengths) - before)

    def _add_sentence(self, sentence: str) -> None:
        settings = self._settings
        if len(sentence) > _CHARACTERS_PER_TOKEN * settings.max_tokens:
            self._drop(sentence, TOO_LONG)
            return
        words = self._tokenize(sentence)
        ids = list(map(self._types.__getitem__, words))
        if ids and min(ids) < len(_MARKS):
            words = [word for word in words if word not in _MARKS]
            self._left_out[MARKS] += len(ids) - len(words)
            ids = [number for number in ids if number >= len(_MARKS)]
        if not settings.min_tokens <= len(ids) <= settings.max_tokens:
            self._drop(sentence, TOO_SHORT if len(ids) < settings.min_tokens else TOO_LONG)
            return
        self._tokens.extend(ids)
        self._lengths.append(len(ids))
        if settings.deduplicate:
            self._hashes.append(hashlib.blake2b(" ".join(words).encode(), digest_size=8).digest())

    def _drop(self, sentence: str, reason: str) -> None:
        self._left_out[reason] += 1
        self._left_out[CHARACTERS] += len(sentence)

    def write(self, path: Path, *, heldout: bool) -> None:
        """Write the chunk; `heldout` marks it as given held-out text."""
        self._types.default_factory = None  # break the reference cycle, or the memory is freed late
        tokens = np.frombuffer(self._tokens, dtype=np.int32) - len(_MARKS)  # (words,)
        seen = np.zeros(len(self._types) - len(_MARKS), dtype=bool)  # types of dropped sentences only are not
        seen[tokens] = True
        spellings = [
            word.encode() for word, kept in zip(list(self._types)[len(_MARKS) :], seen, strict=True) if kept
        ]
        buckets = np.fromiter(
            (zlib.crc32(word) >> _BUCKET_SHIFT for word in spellings), np.int64, len(spellings)
        )
        order = np.argsort(buckets, kind="stable")
        place = np.empty(len(seen), dtype=np.int32)
        place[np.flatnonzero(seen)[order]] = np.arange(len(spellings))
        sizes = np.fromiter(map(len, spellings), np.int64, len(spellings)) + 1
        tensors: dict[str, npt.NDArray[Any]] = {
            "tokens": place[tokens],
            "lengths": np.frombuffer(self._lengths, dtype=np.int32),
            "documents": np.frombuffer(self._documents, dtype=np.int32),
            "hashes": np.frombuffer(b"".join(self._hashes), dtype=np.uint64),
            "spellings": np.frombuffer(
                b"".join(spellings[n] + b"\n" for n in order.tolist()), dtype=np.uint8
            ),
            "bucket_types": np.bincount(buckets, minlength=NUM_BUCKETS),
            "bucket_bytes": np.bincount(buckets, sizes, minlength=NUM_BUCKETS).astype(np.int64),
        }
        facts = {
            "heldout": heldout,
            "tokens": len(tokens),
            "sentences": len(self._lengths),
            "documents": len(self._documents),
            "characters": self._characters,
            "bytes": self._bytes,
            "left_out": dict(self._left_out),
        }
        write_bytes(path, save(tensors, metadata={"facts": json.dumps(facts)}))


def write_chunk(
    documents: Iterable[str], path: Path, *, tokenize: Tokenize, settings: PrepareSettings, heldout: bool
) -> None:
    """Write the chunk of a block of documents."""
    builder = ChunkBuilder(tokenize, settings)
    for document in documents:
        builder.add(document)
    builder.write(path, heldout=heldout)


def _sentences(document: str, settings: PrepareSettings) -> Iterable[str]:
    lines = [line for line in document.split("\n") if line and not line.isspace()]
    language = settings.tokenizer.language
    if not settings.split_sentences or language is None:
        return lines
    if any(len(line) > _WRAPPED_WIDTH for line in lines):
        # Each line is a paragraph; blank lines between them separate a heading from the text below it.
        lines = [part for line in lines for part in (line, "")]
    return sentences_from_lines(lines, language)


class Chunk:
    """A finished chunk in the file `path`, whose arrays are read when needed and not kept in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The counts of the chunk, and whether it is given held-out text."""
        with safe_open(self.path, "np") as file:
            facts: dict[str, Any] = json.loads(file.metadata()["facts"])
        return facts

    @cached_property
    def type_starts(self) -> npt.NDArray[np.int64]:
        """Where the types of each bucket start, then their number: (NUM_BUCKETS + 1,)."""
        return _starts(self.array("bucket_types"))

    @cached_property
    def _byte_starts(self) -> npt.NDArray[np.int64]:
        return _starts(self.array("bucket_bytes"))

    def array(self, name: str) -> npt.NDArray[Any]:
        """Read one of the arrays: tokens, lengths, documents or hashes."""
        with safe_open(self.path, "np") as file:
            array: npt.NDArray[Any] = file.get_tensor(name)
        return array

    def spellings(self, first: int, last: int) -> list[bytes]:
        """Read the spellings of the types in the buckets from `first` to `last`, exclusive."""
        start, end = self._byte_starts[[first, last]].tolist()
        if start == end:
            return []
        with safe_open(self.path, "np") as file:
            text: bytes = file.get_slice("spellings")[start : end - 1].tobytes()
        return text.split(b"\n")


def _starts(sizes: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
