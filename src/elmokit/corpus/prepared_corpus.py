"""A prepared corpus, which pretraining reads."""

import mmap
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.base import Kind, check_whole_number, map_array, other_kind, parse_json, settings_from_dict
from elmokit.corpus.corpus_settings import PrepareSettings
from elmokit.corpus.shards import Shard, check_size, shard_stem
from elmokit.errors import DataError
from elmokit.text import TokenizerSpec, Vocabulary

FORMAT_VERSION = 2
FACTS, VOCABULARY, COUNTS = "corpus.json", "vocabulary.txt", "counts.npy"
SPELLINGS, SPELLING_STARTS = "spellings.bin", "spellings.starts"
PARTS = ("train", "heldout")


def part_folder(out: Path) -> Path:
    """Return the folder of a corpus that is being prepared."""
    named = out if out.name not in ("", "..") else out.resolve()  # "." has no name
    return named.with_name(named.name + ".part")


def is_prepared(path: str | Path) -> bool:
    """Return whether a folder holds a prepared corpus."""
    return (Path(path) / FACTS).exists()


class PreparedCorpus:
    """A corpus that `prepare_corpus` has written. Ids and spellings are memory-mapped.

    Args:
        path: Its folder.

    Raises:
        DataError: There is no corpus, it is unfinished, or one of its files is missing or incomplete.

    Attributes:
        path: Its folder.
        job: The settings and sources it was made from, as plain data.
        settings: The settings it was made with.
        report: Counts of the text: see docs/guides/prepare.md.
        fingerprint: A short digest of settings, sources and counts; equal for equal corpora.
        num_types: The number of distinct spellings. Type ids below the size of the vocabulary are its rows;
            the others are out of vocabulary.
        train: The training shards.
        heldout: The shards to measure perplexity on, possibly none.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        facts = self._read_facts()
        try:
            self.job: dict[str, Any] = facts["job"]
            self.settings = settings_from_dict(PrepareSettings, self.job["settings"], str(self.path))
            self.report: dict[str, Any] = facts["report"]
            self.fingerprint: str = facts["fingerprint"]
            self.num_types: int = facts["num_types"]
            self._num_words: int = self.report["vocabulary_size"]
            check_whole_number("num_types", self.num_types, least=1)
            check_whole_number("vocabulary_size", self._num_words, least=1)
            self.train, self.heldout = (
                [
                    Shard(shard_stem(self.path / part, number), **shard)
                    for number, shard in enumerate(facts["shards"][part])
                ]
                for part in PARTS
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{self.path / FACTS} is damaged ({error!r}); prepare the text again") from error
        check_size(self.path / SPELLING_STARTS, 8 * (self.num_types + 1))
        check_size(self.path / SPELLINGS, int(self._starts[-1]))

    @property
    def tokenizer(self) -> TokenizerSpec:
        """The tokenizer that the text was tokenised with."""
        return self.settings.tokenizer

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary: the given one, or `<S>`, `</S>`, `<UNK>` and then words by falling frequency."""
        vocabulary = Vocabulary.load(self.path / VOCABULARY)
        if len(vocabulary) != self._num_words:
            raise DataError(
                f"{self.path / VOCABULARY} has {len(vocabulary)} words, expected {self._num_words}; "
                "prepare the text again"
            )
        return vocabulary

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each row of the vocabulary occurs in the training text, (V,).

        The count of `<UNK>` is the number of tokens out of vocabulary; that of `<S>` and of `</S>` is the
        number of sentences.
        """
        path = self.path / COUNTS
        try:
            counts = np.array(map_array(path))
        except (OSError, ValueError) as error:
            raise DataError(f"{path} is damaged ({error}); prepare the text again") from error
        if counts.shape != (self._num_words,) or counts.dtype.kind != "i":
            raise DataError(
                f"{path} has {counts.dtype} {list(counts.shape)}, expected [{self._num_words}] whole "
                "numbers; prepare the text again"
            )
        return counts

    def spellings(self, ids: npt.NDArray[np.integer[Any]]) -> list[str]:
        """Return the spellings of type ids."""
        ids = np.asarray(ids)
        text = self._text
        try:
            starts, ends = self._starts[ids].tolist(), self._starts[ids + 1].tolist()
            return [text[start:end].decode() for start, end in zip(starts, ends, strict=True)]
        except (IndexError, UnicodeDecodeError) as error:
            raise DataError(f"{self.path} is damaged ({error}); prepare the text again") from error

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.memmap(self.path / SPELLING_STARTS, dtype="<i8", mode="r")

    @cached_property
    def _text(self) -> mmap.mmap:
        with (self.path / SPELLINGS).open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _read_facts(self) -> dict[str, Any]:
        file = self.path / FACTS
        if not file.exists():
            wrong = other_kind(self.path, Kind.CORPUS)
            if wrong is not None:
                raise DataError(wrong)
            if part_folder(self.path).exists():
                state = "its preparation was interrupted; run the same again to resume"
            else:
                state = f"it has no {FACTS}; prepare the text first"
            raise DataError(f"{self.path} is not a prepared corpus: {state}")
        try:
            facts: dict[str, Any] = parse_json(file.read_bytes())
            version = facts["format_version"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{file} is damaged ({error}); prepare the text again") from error
        if version != FORMAT_VERSION:
            raise DataError(
                f"{self.path} has format version {version}, expected {FORMAT_VERSION}; "
                "delete it and prepare the text again, or use the version of elmokit that made it"
            )
        return facts
