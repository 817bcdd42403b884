"""A prepared corpus, as pretraining reads it."""

import json
import mmap
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.corpus.corpus_settings import PrepareSettings
from elmokit.corpus.shards import Shard, check_size, shard_stem
from elmokit.errors import DataError
from elmokit.text import TokenizerSpec, Vocabulary

FORMAT_VERSION = 2
FACTS, VOCABULARY, COUNTS = "corpus.json", "vocabulary.txt", "counts.npy"
SPELLINGS, SPELLING_STARTS = "spellings.bin", "spellings.starts"
PARTS = ("train", "heldout")


def part_folder(out: Path) -> Path:
    """Return where a corpus stands while it is being prepared."""
    named = out if out.name not in ("", "..") else out.resolve()  # "." has no name
    return named.with_name(named.name + ".part")


def is_prepared(path: str | Path) -> bool:
    """Whether a path is the folder of a prepared corpus."""
    return (Path(path) / FACTS).exists()


class PreparedCorpus:
    """A corpus that `prepare_corpus` finished. Text and spellings stay on the disk, mapped.

    Args:
        path: Its folder.

    Raises:
        DataError: There is none, it is not finished, or a file of it is missing or cut short.

    Attributes:
        path: Its folder.
        job: Settings and sources it was made with, as they are written down.
        settings: The settings it was made with.
        report: Counts of the text: see docs/guides/prepare.md.
        fingerprint: A short digest of settings, sources and counts, equal for equal corpora.
        num_types: Distinct spellings. Types below the size of the vocabulary are its rows, the others are
            out of vocabulary.
        train: The shards to train on.
        heldout: The shards to measure perplexity on; there may be none.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        facts = self._read_facts()
        self.job: dict[str, Any] = facts["job"]
        self.settings = PrepareSettings.from_dict(self.job["settings"])
        self.report: dict[str, Any] = facts["report"]
        self.fingerprint: str = facts["fingerprint"]
        self.num_types: int = facts["num_types"]
        self.train, self.heldout = (
            [
                Shard(shard_stem(self.path / part, number), **shard)
                for number, shard in enumerate(facts["shards"][part])
            ]
            for part in PARTS
        )
        check_size(self.path / SPELLING_STARTS, 8 * (self.num_types + 1))
        check_size(self.path / SPELLINGS, int(self._starts[-1]))

    @property
    def tokenizer(self) -> TokenizerSpec:
        """The tokenizer, for the model to record."""
        return self.settings.tokenizer

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary: `<S>`, `</S>`, `<UNK>`, then words by falling frequency, or the given one."""
        vocabulary = Vocabulary.load(self.path / VOCABULARY)
        expected = self.report["vocabulary_size"]
        if len(vocabulary) != expected:
            raise DataError(
                f"{self.path / VOCABULARY} has {len(vocabulary)} words, expected {expected}; "
                "prepare the corpus again"
            )
        return vocabulary

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each row of the vocabulary occurs in the training part, (V,).

        That of `<UNK>` is the number of tokens out of vocabulary, of `<S>` and `</S>` that of sentences.
        """
        counts: npt.NDArray[np.int64] = np.load(self.path / COUNTS)
        return counts

    def spellings(self, ids: npt.NDArray[np.integer[Any]]) -> list[str]:
        """Return the spellings of types, given their ids."""
        ids = np.asarray(ids)
        starts, ends = self._starts[ids].tolist(), self._starts[ids + 1].tolist()
        text = self._text
        return [text[start:end].decode() for start, end in zip(starts, ends, strict=True)]

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
            if part_folder(self.path).exists():
                state = "its preparation was interrupted; run the same elmokit prepare again to go on"
            else:
                state = f"it has no {FACTS}; make one: elmokit prepare TEXT --language en --out {self.path}"
            raise DataError(f"{self.path} is no prepared corpus: {state}")
        try:
            facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            version = facts["format_version"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{file} is damaged ({error}); prepare the corpus again") from error
        if version != FORMAT_VERSION:
            raise DataError(
                f"{self.path} has format version {version}, expected {FORMAT_VERSION}; "
                "delete it and prepare the text again, or use the version of elmokit that made it"
            )
        return facts
