"""Embed a whole text file into a vector file."""

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.base import Advance, counted, group_until, locked, ordered_map, setting_changes, text_progress
from elmokit.embed.file_choice import DType, FileChoice, model_settings, origin
from elmokit.embed.reader import Text
from elmokit.embed.sentence import LayerChoice
from elmokit.embed.sentence_vectors import SentencePooling
from elmokit.embed.text_embedder import TextEmbedder
from elmokit.errors import ConfigError, DataError
from elmokit.text import Input, TextSource, read_texts, split_language
from elmokit.vectors import TEXT_DIGEST, Row, Spool, check_target, read_vectors, texts_digest

logger = logging.getLogger(__name__)

# Characters per token of a batch: a chunk of text makes about two batches, so that lengths can be sorted.
_CHARACTERS_PER_TOKEN = 10
# Relative difference of vectors: far above that of other batches or threads, far below that of other weights.
_SAME_MODEL = 0.01


@dataclass(frozen=True, kw_only=True)
class EmbedReport:
    """What `embed_file` did.

    Attributes:
        sentences: Sentences in the file.
        resumed_at: How many of them an interrupted run had embedded before.
        tokens: Tokens embedded by this run.
        truncated_tokens: How many of these were too long for the model and were truncated.
        unknown_tokens: How many of these are not in the vocabulary of a model without characters.
        seconds: Duration of this run.
        uses: How many uses of a word this run found; None if all tokens were wanted.
    """

    sentences: int
    resumed_at: int
    tokens: int
    truncated_tokens: int
    unknown_tokens: int
    seconds: float
    uses: int | None = None

    def __str__(self) -> str:
        before = f", {self.resumed_at:,} of them before" if self.resumed_at else ""
        speed = f" ({self.tokens / max(self.seconds, 1e-9):,.0f} per second)"
        done = (
            counted(self.tokens, "token") if self.uses is None else f"{counted(self.uses, 'use')} of the word"
        )
        parts = [
            f"{counted(self.sentences, 'sentence')}{before}",
            f"{done} in {self.seconds:.1f} s{speed if self.uses is None else ''}",
        ]
        if self.truncated_tokens:
            parts.append(f"tokens too long for the model, truncated: {self.truncated_tokens:,}")
        if self.unknown_tokens:
            parts.append(f"tokens the model does not know: {self.unknown_tokens:,}")
        return "; ".join(parts)


def embed_file(
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
    workers: int | None = None,
    resume: bool = False,
    any_engine: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> EmbedReport | None:
    """Embed each line of a text file; line k becomes row k of the target, blank lines included.

    Results are kept in a folder `TARGET.part` until all are there, so that an interrupted or killed run can
    be resumed. The folder takes as much disk space as the target. Memory is bounded. The target can be read
    with `elmokit.read_vectors`.

    Args:
        embedder: The model.
        source: A text file, plain or compressed; "-" is standard input; or a list of lines.
        target: The file to write. Its ending decides the format: .h5 or .hdf5 (as AllenNLP's), .npz,
            .parquet, .arrow, .csv, .tsv; or .npy, which holds vectors of sentences or uses only.
        layers: "all", the "top" layer, the "average" of all, the model's "mix", the number of a layer (the
            token layer is 0), or a list of numbers. By default "all", but "mix" for sentence vectors, for
            the uses of a word, and for tables (.csv, .tsv).
        dtype: Type of the numbers in the target.
        tokens: Whether lines are tokens separated by blanks; they are not tokenised again.
        split: Whether to split running text into sentences, which then take the place of lines. A language
            code chooses the rules; True means the language of the model's tokenizer.
        pooling: Write one vector for each sentence, and how it is made of those of its tokens: "mean", "max",
            "ends", "sif" or "whitened" (see `Embedder.encode`). By default vectors are those of tokens; for
            .npy what `encode` has by default.
        word: Write the uses of this word only, a row for each. The word may consist of several tokens.
        match_case: Whether `word` has to match in upper and lower case, too.
        workers: Number of processes with one thread each, which share the model's memory; the result does not
            depend on it. By default one process uses all threads.
        resume: Continue an interrupted run.
        any_engine: Let `resume` continue what another engine (see `Embedder.engine`) has begun, whose vectors
            differ by rounding.
        overwrite: Replace an existing target or interrupted run.
        progress: Show progress on standard error, if that is a terminal.

    Returns:
        The counts; None if `resume` finds the target complete.

    Raises:
        ConfigError: The ending names no format, or two settings contradict each other.
        DataError: The text cannot be read, the target exists or cannot be written, or the run to resume had
            other settings, another text or another model.
        BusyError: Another process is writing the target.
        KeyboardInterrupt: Ctrl-C was pressed; the message says how to continue.

    Example:
        >>> embed_file(elmokit.load("en"), "text.txt", "vectors.h5", layers="top")  # doctest: +SKIP
        EmbedReport(sentences=3, resumed_at=0, tokens=17, truncated_tokens=0, unknown_tokens=0, seconds=0.2)
    """
    target = Path(target)
    began = time.monotonic()
    choice = FileChoice.of(
        target, embedder, layers=layers, dtype=dtype, pooling=pooling, word=word, match_case=match_case
    )
    if workers is not None and (workers < 1 or embedder.stateful or embedder.device.type != "cpu"):
        raise ConfigError(f"workers={workers}: at least 1 is needed, with a stateless model on the CPU")
    if any_engine and not resume:
        raise ConfigError("any_engine=True has no effect without resume=True")
    if resume and embedder.stateful:
        raise ConfigError("a stateful model depends on the sentences that resume=True skips; overwrite=True")
    language = split_language(split, embedder.tokenizer_spec.language, tokens=tokens)
    settings = choice.settings() | {"tokens": tokens, "split": language} | model_settings(embedder)
    if not (resume and any_engine):
        settings["engine"] = embedder.engine
    inputs = read_texts(source, tokens=tokens, split=language)
    check_target(target)
    with locked(target):
        if Spool.is_finished(target) and resume:
            _check_finished(target, settings, inputs)
            return None
        spool = Spool(
            target,
            choice.layout,
            settings,
            metadata=origin(embedder),
            resume=resume,
            overwrite=overwrite,
        )
        resumed_at = spool.num_rows
        try:
            with spool, text_progress(source, shown=progress) as advance:
                _skip_done(spool, inputs, advance)
                _check_model(spool, embedder, choice)
                counts = _embed(embedder, inputs, spool, choice, advance, workers)
                spool.pack()
        except KeyboardInterrupt:
            kept = f"{spool.num_rows:,} sentences are kept in {spool.folder}: run again with resume=True"
            raise KeyboardInterrupt(f"interrupted; {kept if spool.num_rows else spool.advice}") from None
    uses = None if word is None else counts["tokens"]
    if uses == 0 and not resumed_at:
        logger.warning(
            "the text has no word %r, so %s holds no vectors; only whole words count", word, target
        )
    seconds = time.monotonic() - began
    return EmbedReport(sentences=spool.num_rows, resumed_at=resumed_at, **counts, seconds=seconds, uses=uses)


def _check_finished(target: Path, settings: Mapping[str, Any], inputs: Iterable[Input]) -> None:
    """Check that a finished file was written with these settings and of this text, as far as it says."""
    with read_vectors(target) as file:
        said = file.metadata
    now = json.loads(json.dumps(settings))
    common = (said.keys() & now.keys()) - {"engine"}  # engines differ by rounding only
    if changes := setting_changes({key: said[key] for key in common}, {key: now[key] for key in common}):
        raise DataError(
            f"{target} is complete, but was written with other settings: {'; '.join(changes)}. Choose "
            "another name, or replace it with overwrite=True"
        )
    if said.get(TEXT_DIGEST, "") not in ("", texts_digest(map(_as_text, inputs))):
        raise DataError(
            f"{target} is complete, but was made of another text. Choose another name, or replace it with "
            "overwrite=True"
        )


def _as_text(item: Input) -> str:
    return item if isinstance(item, str) else " ".join(item)


def _skip_done(spool: Spool, inputs: Iterator[Input], advance: Advance) -> None:
    """Skip the inputs that are in the spool already, and check that they are the same text."""
    for number, text in enumerate(spool.texts(), start=1):
        item = next(inputs, None)
        found = None if item is None else _as_text(item)
        if found != text:
            now = "the text ends before it" if found is None else f"it is now {found[:60]!r}"
            raise DataError(
                f"{spool.folder} was started with another text: line {number} was {text[:60]!r}, {now}. "
                "Pass the same text, or start again with overwrite=True"
            )
        advance(text, 0)


def _check_model(spool: Spool, embedder: TextEmbedder, choice: FileChoice) -> None:
    """Embed the first sentence of the spool again and compare: other vectors mean another model."""
    row = next((row for row in spool.rows() if row.tokens), None)
    if row is None:
        return
    texts: list[Text] = [row.tokens if choice.word is None else row.text]
    if choice.word is None and embedder.words_spec is not None:
        texts = [row.text]
    sentence = next(iter(embedder.stream(texts)))
    before, now = row.vectors.astype(np.float32), choice.row(sentence).vectors
    if before.shape != now.shape or np.linalg.norm(now - before) > _SAME_MODEL * np.linalg.norm(before):
        raise DataError(
            f"{spool.folder} was started with another model: the vectors of {row.text[:60]!r} differ. "
            "Use the same model, or start again with overwrite=True"
        )


def _embed(
    embedder: TextEmbedder,
    inputs: Iterator[Input],
    spool: Spool,
    choice: FileChoice,
    advance: Advance,
    workers: int | None,
) -> dict[str, int]:
    """Embed `inputs` into the spool and return the counts."""

    def embed_chunk(chunk: list[Input]) -> Iterator[tuple[Row, int, int]]:
        embedded = embedder.stream((item for item in chunk if choice.needs(item)), copy=False)
        for item in chunk:
            if not choice.needs(item):
                yield choice.empty_row(item), 0, 0
                continue
            sentence = next(embedded)
            yield choice.row(sentence), len(sentence.truncated), len(sentence.unknown)

    def num_characters(item: Input) -> int:
        return len(item) if isinstance(item, str) else sum(map(len, item))

    chunks = group_until(inputs, num_characters, _CHARACTERS_PER_TOKEN * embedder.batch_tokens)
    if workers is None:
        embedded: Iterable[Iterable[tuple[Row, int, int]]] = map(embed_chunk, chunks)
    else:
        import torch

        embedder.embed([[]])  # prepares the weights, which the workers then share
        embedded = ordered_map(
            lambda chunk: list(embed_chunk(chunk)),
            chunks,
            workers=workers,
            begin=partial(torch.set_num_threads, 1),
        )
    counts = {"tokens": 0, "truncated_tokens": 0, "unknown_tokens": 0}
    for row, truncated, unknown in chain.from_iterable(embedded):
        spool.add(row)
        counts["tokens"] += len(row.tokens)
        counts["truncated_tokens"] += truncated
        counts["unknown_tokens"] += unknown
        advance(row.text, len(row.tokens))
    return counts
