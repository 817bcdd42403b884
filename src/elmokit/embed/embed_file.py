"""Embed a whole text file into a vector file."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from elmokit.base import Advance, check_option, group_until, ordered_map, text_progress
from elmokit.embed.embedder import Embedder
from elmokit.embed.sentence import LayerChoice, Pooling, Sentence
from elmokit.errors import ConfigError, DataError
from elmokit.text import Input, TextSource, read_texts, split_language
from elmokit.vectors import Layout, Row, Spool, check_ending

DType = Literal["float32", "float16"]
Choose: TypeAlias = Callable[[Sentence], npt.NDArray[np.float32]]

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
    """

    sentences: int
    resumed_at: int
    tokens: int
    truncated_tokens: int
    unknown_tokens: int
    seconds: float

    def __str__(self) -> str:
        before = f", {self.resumed_at:,} of them before" if self.resumed_at else ""
        speed = self.tokens / max(self.seconds, 1e-9)
        parts = [
            f"{self.sentences:,} sentences{before}",
            f"{self.tokens:,} tokens in {self.seconds:.1f} s ({speed:,.0f} per second)",
        ]
        if self.truncated_tokens:
            parts.append(f"tokens too long for the model, truncated: {self.truncated_tokens:,}")
        if self.unknown_tokens:
            parts.append(f"tokens the model does not know: {self.unknown_tokens:,}")
        return "; ".join(parts)


def embed_file(
    embedder: Embedder,
    source: TextSource,
    target: str | Path,
    *,
    layers: LayerChoice | None = None,
    dtype: DType = "float32",
    tokens: bool = False,
    split: bool | str = False,
    pooling: Pooling | None = None,
    workers: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> EmbedReport | None:
    """Embed each line of a text file; line k becomes sentence k of the target, blank lines included.

    Results are kept in a folder `TARGET.part` until all are there, so that an interrupted or killed run can
    be resumed. The folder takes as much disk space as the target. Memory is bounded. The target can be read
    with `elmokit.read_vectors`.

    Args:
        embedder: The model.
        source: A text file, plain or compressed; "-" is standard input; or a list of lines.
        target: The file to write. Its ending decides the format: .h5 or .hdf5 (as AllenNLP's), .npz,
            .parquet, .arrow; or .npy for one vector per sentence.
        layers: "all", the "top" layer, the "average" of all, or the model's "mix"; by default "all", and
            "mix" for sentence vectors.
        dtype: Type of the numbers in the target.
        tokens: Whether lines are tokens separated by blanks; they are not tokenised again.
        split: Whether to split running text into sentences, which then take the place of lines. A language
            code chooses the rules; True means the language of the model's tokenizer.
        pooling: How a sentence vector is made of token vectors (.npy only); "mean" by default.
        workers: Number of processes with one thread each, which share the model's memory; the result does not
            depend on it. By default one process uses all threads.
        resume: Continue an interrupted run.
        overwrite: Replace an existing target or interrupted run.
        progress: Show progress on standard error, if that is a terminal.

    Returns:
        The counts; None if `resume` finds the target complete.

    Raises:
        ConfigError: The ending names no format, or two settings contradict each other.
        DataError: The text cannot be read, the target exists or cannot be written, or the run to resume had
            other settings, another text or another model.
        KeyboardInterrupt: Ctrl-C was pressed; the message says how to continue.

    Example:
        >>> embed_file(elmokit.load("en"), "text.txt", "vectors.h5", layers="top")  # doctest: +SKIP
        EmbedReport(sentences=3, resumed_at=0, tokens=17, truncated_tokens=0, unknown_tokens=0, seconds=0.2)
    """
    target = Path(target)
    began = time.monotonic()
    pooled = check_ending(target) == ".npy"
    if pooling and not pooled:
        raise ConfigError(f"pooling={pooling!r} makes sentence vectors, which only a .npy file holds")
    layers, pooling = layers or ("mix" if pooled else "all"), pooling or "mean"
    choose, layout = _choice(embedder, layers, dtype, pooling if pooled else None)
    if workers is not None and (workers < 1 or embedder.stateful or embedder.device.type != "cpu"):
        raise ConfigError(f"workers={workers}: at least 1 is needed, with a stateless model on the CPU")
    if resume and embedder.stateful:
        raise ConfigError("a stateful model depends on the sentences that resume=True skips; overwrite=True")
    language = split_language(split, embedder.tokenizer_spec.language, tokens=tokens)
    if resume and target.exists() and not Spool.folder_of(target).exists():
        return None
    settings = {"layers": layers, "pooling": pooling, "tokens": tokens, "split": language}
    model = {"tokenizer": embedder.tokenizer_spec.to_dict(), "precision": embedder.precision}
    inputs = read_texts(source, tokens=tokens, split=language)
    spool = Spool(target, layout, settings | model, resume=resume, overwrite=overwrite)
    resumed_at = spool.num_rows
    try:
        with spool, text_progress(source, shown=progress) as advance:
            _skip_done(spool, inputs, advance)
            _check_model(spool, embedder, choose)
            counts = _embed(embedder, inputs, spool, choose, advance, workers)
            spool.pack()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; {spool.num_rows:,} sentences are kept in {spool.folder}: "
            "run again with resume=True to continue"
        ) from None
    seconds = time.monotonic() - began
    return EmbedReport(sentences=spool.num_rows, resumed_at=resumed_at, **counts, seconds=seconds)


def _choice(
    embedder: Embedder, layers: LayerChoice, dtype: DType, pooling: Pooling | None
) -> tuple[Choose, Layout]:
    """Return which array of a sentence goes into the file, and its layout; one vector if `pooling` is set."""
    check_option("dtype", dtype, get_args(DType))
    check_option("layers", layers, get_args(LayerChoice))

    def choose(sentence: Sentence) -> npt.NDArray[np.float32]:
        return sentence.select(layers)

    if pooling is None:
        shape = (embedder.num_layers, -1, embedder.dim) if layers == "all" else (-1, embedder.dim)
        return choose, Layout(shape=shape, dtype=dtype)
    if layers == "all":
        raise ConfigError(
            "layers='all' does not fit .npy, which holds one vector per sentence; choose top, average or "
            "mix, or another format: .h5, .npz, .parquet or .arrow"
        )
    return (
        lambda sentence: replace(sentence, vectors=choose(sentence)).pool(pooling),
        Layout(shape=(embedder.dim,), dtype=dtype),
    )


def _skip_done(spool: Spool, inputs: Iterator[Input], advance: Advance) -> None:
    """Skip the inputs that are in the spool already, and check that they are the same text."""
    for number, text in enumerate(spool.texts()):
        item = next(inputs, None)
        found = " ".join(item) if isinstance(item, list) else item
        if found != text:
            now = "the text ends before it" if found is None else f"it is now {found[:60]!r}"
            raise DataError(
                f"{spool.folder} was started with another text: sentence {number} was {text[:60]!r}, {now}. "
                "Pass the same text, or start again with overwrite=True"
            )
        advance(text, 0)


def _check_model(spool: Spool, embedder: Embedder, choose: Choose) -> None:
    """Embed the first sentence of the spool again and compare: other vectors mean another model."""
    row = next((row for row in spool.rows() if row.tokens), None)
    if row is None:
        return
    sentence = next(iter(embedder.stream([row.tokens])))
    before = row.vectors.astype(np.float32)
    if np.linalg.norm(choose(sentence) - before) > _SAME_MODEL * np.linalg.norm(before):
        raise DataError(
            f"{spool.folder} was started with another model: the vectors of {row.text[:60]!r} differ. "
            "Use the same model, or start again with overwrite=True"
        )


def _embed(
    embedder: Embedder,
    inputs: Iterator[Input],
    spool: Spool,
    choose: Choose,
    advance: Advance,
    workers: int | None,
) -> dict[str, int]:
    """Embed `inputs` into the spool and return the counts."""

    def embed_chunk(chunk: list[Input]) -> Iterator[tuple[Row, int, int]]:
        for s in embedder.stream(chunk):
            row = Row(text=s.text, tokens=s.tokens, offsets=s.offsets, vectors=choose(s))
            yield row, len(s.truncated), len(s.unknown)

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
