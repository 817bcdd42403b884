"""A file of text in, a file of its vectors out: the main job at the scale of a corpus."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from elmokit.base import Advance, text_progress
from elmokit.errors import ConfigError, DataError
from elmokit.text import Input, TextSource, read_texts, split_language
from elmokit.vectors import Layout, Row, Spool, check_ending

if TYPE_CHECKING:  # torch, which the text side and `--help` do without
    from elmokit.embed.embedder import Embedder
    from elmokit.embed.sentence import Pooling, Sentence

LayerChoice = Literal["all", "top", "average", "mix"]
DType = Literal["float32", "float16"]
Choose: TypeAlias = "Callable[[Sentence], npt.NDArray[np.float32]]"

# Characters of a chunk for each token of a batch: about two batches, so that lengths can be sorted.
_CHARACTERS_PER_TOKEN = 10
# Far above what batching and thread counts change, far below what other weights do.
_SAME_MODEL = 0.01


@dataclass(frozen=True, kw_only=True)
class EmbedReport:
    """What `embed_file` did.

    Attributes:
        sentences: Sentences in the file.
        resumed_at: How many of them an earlier, interrupted run had done.
        tokens: Tokens embedded by this run.
        truncated_tokens: Those of them that are longer than the model reads.
        unknown_tokens: Those of them that a model of words, not of characters, does not know.
        seconds: Time this run took.
    """

    sentences: int
    resumed_at: int
    tokens: int
    truncated_tokens: int
    unknown_tokens: int
    seconds: float

    def __str__(self) -> str:
        before = f", {self.resumed_at:,} of them before" if self.resumed_at else ""
        truncated = (
            f"; tokens too long for the model, truncated: {self.truncated_tokens:,}"
            if self.truncated_tokens
            else ""
        )
        unknown = f"; tokens the model does not know: {self.unknown_tokens:,}" if self.unknown_tokens else ""
        speed = self.tokens / max(self.seconds, 1e-9)
        return (
            f"{self.sentences:,} sentences{before}; {self.tokens:,} tokens in {self.seconds:.1f} s "
            f"({speed:,.0f} a second){truncated}{unknown}"
        )


def embed_file(
    embedder: "Embedder",
    source: TextSource,
    target: str | Path,
    *,
    layers: LayerChoice | None = None,
    dtype: DType = "float32",
    tokens: bool = False,
    split: bool | str = False,
    pooling: "Pooling" = "mean",
    workers: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> EmbedReport | None:
    """Embed each line of a text file; line k becomes row k of the target, blank lines too.

    The work goes to a folder `TARGET.part` first, from which a run that was interrupted, or killed, can be
    resumed; it takes as much room as the target. Memory stays bounded.

    Args:
        embedder: The model.
        source: A text file, plain or compressed; "-" is standard input; or a list of lines.
        target: The file to be made. Its ending decides the format: .h5 or .hdf5 (as AllenNLP's), .npz,
            .parquet, .arrow; or .npy for one vector a sentence.
        layers: "all", the "top" layer, the "average" of all, or the model's "mix". Without it "all", and
            "mix" for sentence vectors.
        dtype: Type of the numbers in the target.
        tokens: Lines are tokens between blanks, to be taken as they are.
        split: The text is running text, to be split into sentences first, which are then the rows. A language
            code says by whose rules; True takes the language of the model's tokenizer.
        pooling: How a sentence vector is made of its tokens' vectors (.npy only).
        workers: Embed in this many processes of one thread each, which share the model's memory. The result
            does not depend on their number. Without it one process with all threads does the work.
        resume: Go on with an interrupted run.
        overwrite: Replace a target, or an interrupted run, that is there.
        progress: Show progress on standard error, if that is a terminal.

    Returns:
        The counts; None if `resume` found the target finished.

    Raises:
        ConfigError: The ending names no format, or two of the settings exclude each other.
        DataError: The text cannot be read, the target cannot be written or is there already, or the run to be
            resumed had other settings, another text or another model.
        KeyboardInterrupt: Ctrl-C; its text says how to go on.

    Example:
        >>> embed_file(elmokit.load("en"), "text.txt", "vectors.h5", layers="top")  # doctest: +SKIP
        EmbedReport(sentences=3, resumed_at=0, tokens=17, truncated_tokens=0, unknown_tokens=0, seconds=0.2)
    """
    target = Path(target)
    began = time.monotonic()
    pooled = check_ending(target) == ".npy"
    layers = layers or ("mix" if pooled else "all")
    choose, layout = _choice(embedder, layers, dtype, pooling if pooled else None)
    if workers is not None and (workers < 1 or embedder.stateful or embedder.device.type != "cpu"):
        raise ConfigError(f"workers is {workers}; it takes 1 or more, a stateless model and the CPU")
    if resume and embedder.stateful:
        raise ConfigError(
            "a stateful model goes on from the sentence before, which resume skips; use overwrite"
        )
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
            "run again with resume=True (--resume) to go on"
        ) from None
    seconds = time.monotonic() - began
    return EmbedReport(sentences=spool.num_rows, resumed_at=resumed_at, **counts, seconds=seconds)


def _choice(
    embedder: "Embedder", layers: LayerChoice, dtype: DType, pooling: "Pooling | None"
) -> tuple[Choose, Layout]:
    """Return what a sentence gives to the file, and the shape of that; with `pooling`, one vector."""
    if dtype not in get_args(DType):
        raise ConfigError(f"dtype is {dtype!r}; choose float32 or float16")
    choices: dict[str, Choose] = {
        "all": lambda sentence: sentence.layers,
        "top": lambda sentence: sentence.layers[-1],
        "average": lambda sentence: sentence.layers.mean(axis=0),
        "mix": lambda sentence: sentence.vectors,
    }
    if layers not in choices:
        raise ConfigError(f"layers is {layers!r}; choose all, top, average or mix")
    choose = choices[layers]
    if pooling is None:
        shape = (embedder.num_layers, -1, embedder.dim) if layers == "all" else (-1, embedder.dim)
        return choose, Layout(shape=shape, dtype=dtype)
    if layers == "all":
        raise ConfigError(
            "layers is 'all', but .npy holds one vector a sentence; choose top, average or mix, "
            "or another format: .h5, .npz, .parquet or .arrow"
        )
    return (
        lambda sentence: replace(sentence, vectors=choose(sentence)).pool(pooling),
        Layout(shape=(embedder.dim,), dtype=dtype),
    )


def _skip_done(spool: Spool, inputs: Iterator[Input], advance: Advance) -> None:
    """Take from `inputs` what the spool has, and make sure that it is the same text."""
    for number, text in enumerate(spool.texts()):
        item = next(inputs, None)
        found = " ".join(item) if isinstance(item, list) else item
        if found != text:
            now = "the text ends before it" if found is None else f"it is now {found[:60]!r}"
            raise DataError(
                f"{spool.folder} was begun with another text: sentence {number} was {text[:60]!r}, {now}. "
                "Pass the same text, or begin anew with overwrite=True (--overwrite)"
            )
        advance(text, 0)


def _check_model(spool: Spool, embedder: "Embedder", choose: Choose) -> None:
    """Embed the first sentence of the spool again: the same vectors mean the same model."""
    row = next((row for row in spool.rows() if row.tokens), None)
    if row is None:
        return
    sentence = next(iter(embedder.stream([row.tokens])))
    before = row.vectors.astype(np.float32)
    if np.linalg.norm(choose(sentence) - before) > _SAME_MODEL * np.linalg.norm(before):
        raise DataError(
            f"{spool.folder} was begun with another model: the vectors of {row.text[:60]!r} differ. "
            "Use the same model, or begin anew with overwrite=True (--overwrite)"
        )


def _embed(
    embedder: "Embedder",
    inputs: Iterator[Input],
    spool: Spool,
    choose: Choose,
    advance: Advance,
    workers: int | None,
) -> dict[str, int]:
    """Stream `inputs` into the spool and count."""

    def embed_chunk(chunk: list[Input]) -> Iterator[tuple[Row, int, int]]:
        for sentence in embedder.stream(chunk):
            yield _row(sentence, choose), len(sentence.truncated), len(sentence.unknown)

    chunks = _chunks(inputs, _CHARACTERS_PER_TOKEN * embedder.batch_tokens)
    if workers is None:
        embedded: Iterable[Iterable[tuple[Row, int, int]]] = map(embed_chunk, chunks)
    else:
        import torch

        from elmokit.base import ordered_map

        embedder.embed([[]])  # lays out the weights, for the workers to share
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


def _row(sentence: "Sentence", choose: Choose) -> Row:
    return Row(text=sentence.text, tokens=sentence.tokens, offsets=sentence.offsets, vectors=choose(sentence))


def _chunks(inputs: Iterator[Input], characters: int) -> Iterator[list[Input]]:
    """The inputs by lists of about so many characters: enough for full batches, few enough for memory."""
    chunk: list[Input] = []
    total = 0
    for item in inputs:
        chunk.append(item)
        total += len(item) if isinstance(item, str) else sum(map(len, item))
        if total >= characters:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk
