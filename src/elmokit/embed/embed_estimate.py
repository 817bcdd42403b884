"""Estimate the time and the size of `embed_file` from a sample of the text."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elmokit.base import counted, random_sample, temporary_folder
from elmokit.embed.file_choice import DType, FileChoice
from elmokit.embed.sentence import LayerChoice
from elmokit.embed.sentence_vectors import SentencePooling
from elmokit.embed.text_embedder import TextEmbedder
from elmokit.errors import ConfigError
from elmokit.text import Input, TextSource, read_texts, split_language
from elmokit.vectors import check_ending, write_vectors

_SAMPLE = 500  # sentences: a few seconds on two cores


@dataclass(frozen=True, kw_only=True)
class EmbedEstimate:
    """What `embed_file` would take, estimated from a sample.

    Attributes:
        sentences: Sentences in the text; they were counted.
        sampled: How many of them were embedded for the estimate.
        tokens: Tokens in the text.
        seconds: Duration on this machine as busy as it is now.
        bytes: Size of the target. While the work is going on, as much again is needed beside it.
        free_bytes: What is free on the disk of the target.
    """

    sentences: int
    sampled: int
    tokens: int
    seconds: float
    bytes: int
    free_bytes: int

    def __str__(self) -> str:
        needed = 2 * self.bytes
        disk = f"{_size(self.free_bytes)} free"
        if needed > self.free_bytes:
            disk += f": NOT ENOUGH, {_size(needed)} are needed while it is written"
        return (
            f"{counted(self.sentences, 'sentence')}, about {_rounded(self.tokens)} tokens; "
            f"about {_time(self.seconds)}; about {_size(self.bytes)} ({disk}); "
            f"from a sample of {counted(self.sampled, 'sentence')}"
        )


def estimate_file(
    embedder: TextEmbedder,
    source: TextSource,
    target: str | Path,
    *,
    layers: LayerChoice | None = None,
    dtype: DType = "float32",
    tokens: bool = False,
    split: bool | str = False,
    pooling: SentencePooling | None = None,
    word: str | None = None,
    match_case: bool = False,
) -> EmbedEstimate:
    """Estimate the time and the size of `embed_file` with the same settings; the target is not written.

    The whole text is read once to count its sentences, and a random sample of them is embedded.

    Raises:
        ConfigError: The settings contradict each other, or the text is standard input.
        DataError: The text cannot be read.
    """
    target = Path(target)
    choice = FileChoice.of(
        target, embedder, layers=layers, dtype=dtype, pooling=pooling, word=word, match_case=match_case
    )
    if str(source) == "-":
        raise ConfigError("standard input cannot be read twice; pass a file to estimate from")
    language = split_language(split, embedder.tokenizer_spec.language, tokens=tokens)
    size = 0

    def measured() -> Iterator[Input]:
        nonlocal size
        for item in read_texts(source, tokens=tokens, split=language):
            size += _size_of(item)
            yield item

    sample, sentences = random_sample(measured(), _SAMPLE)
    share = size / max(1, sum(map(_size_of, sample)))
    embedder.embed(["warm up"])  # prepares the weights
    began = time.monotonic()
    needed = [item for item in sample if choice.needs(item)]
    embedded = list(embedder.stream(needed))
    rows = [choice.row(sentence) for sentence in embedded]
    with temporary_folder() as folder:
        count = sum(len(row.tokens) for row in rows) if choice.layout.uses else len(rows)
        path = folder / target.name
        write_vectors(path, rows, choice.layout, ending=check_ending(target), count=count)
        written = path.stat().st_size
    seconds = time.monotonic() - began
    return EmbedEstimate(
        sentences=sentences,
        sampled=len(sample),
        tokens=round(share * sum(map(len, embedded))),
        seconds=share * seconds,
        bytes=round(share * written),
        free_bytes=shutil.disk_usage(target.resolve().parent).free,
    )


def _size_of(item: Input) -> int:
    return 1 + (len(item) if isinstance(item, str) else sum(map(len, item)))


def _rounded(number: float) -> str:
    """Return a number with the two digits that an estimate is worth."""
    return f"{float(f'{number:.2g}'):,.0f}"


def _time(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 1.5 * length:
            return f"{float(f'{seconds / length:.2g}'):g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} seconds"


def _size(number: float) -> str:
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if number >= 10**power:
            return f"{float(f'{number / 10**power:.2g}'):g} {unit}"
    return f"{number:.0f} bytes"
