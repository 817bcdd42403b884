"""Whole corpora embedded on a Ray cluster, into a folder of Parquet files or one file of any format.

>>> from elmokit.integrations.ray import EmbedBatches, embed_dataset
>>> embed_dataset("corpus.jsonl", "vectors", embed=EmbedBatches("en", layers="mix"))      # doctest: +SKIP

`EmbedBatches` is also what `ray.data.Dataset.map_batches` takes, in pipelines of your own.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.base import Advance, check_whole_number, counted, draft_file, locked, text_progress, write_errors
from elmokit.embed import FileChoice, TextEmbedder, model_settings
from elmokit.errors import DataError, MissingExtra
from elmokit.integrations.cluster_input import InputShard, read_records, read_shards
from elmokit.integrations.embed_batches import EmbedBatches
from elmokit.text import TextSource, split_language
from elmokit.vectors import (
    ENDINGS,
    TEXT_DIGEST,
    Row,
    ShardFolder,
    Spool,
    StoredSentence,
    check_target,
    read_vectors,
    write_vectors,
)

try:
    import ray  # noqa: F401
except ImportError as error:
    raise MissingExtra("ray", "ray", "elmokit.integrations.ray") from error

from elmokit.integrations.ray_actors import Pool, cluster

__all__ = ["DatasetReport", "EmbedBatches", "embed_dataset"]

_SHARD_BYTES = 32 << 20
_CHARACTERS_PER_TOKEN = 5
_MOST_CHARACTERS, _LEAST_CHARACTERS = 2_000_000, 20_000
# Relative difference of vectors: far above that of other engines, far below that of other weights.
_SAME_MODEL = 0.05
_COUNTS = ("tokens", "truncated_tokens", "unknown_tokens")


@dataclass(frozen=True, kw_only=True)
class DatasetReport:
    """What `embed_dataset` did.

    Attributes:
        rows: Rows of the input, each of which is one of the output.
        resumed_rows: How many of them an earlier run had embedded.
        bad_rows: How many of them could not be embedded; their column `error` says why.
        shards: Files that the rows were divided into.
        tokens: Tokens embedded by this run.
        truncated_tokens: How many of these were too long for the model and were truncated.
        unknown_tokens: How many of these a model of words does not know.
        lost_actors: How many actors died, and were replaced.
        seconds: Duration of this run, the start of the actors included.
    """

    rows: int
    resumed_rows: int
    bad_rows: int
    shards: int
    tokens: int
    truncated_tokens: int
    unknown_tokens: int
    lost_actors: int
    seconds: float

    def __str__(self) -> str:
        before = f", {self.resumed_rows:,} of them before" if self.resumed_rows else ""
        speed = f"{self.tokens / max(self.seconds, 1e-9):,.0f} per second"
        parts = [
            f"{counted(self.rows, 'row')}{before} in {counted(self.shards, 'shard')}",
            f"{counted(self.tokens, 'token')} in {self.seconds:.1f} s ({speed})",
        ]
        notes = {
            "rows that could not be embedded": self.bad_rows,
            "tokens too long for the model, truncated": self.truncated_tokens,
            "tokens the model does not know": self.unknown_tokens,
            "actors that died and were replaced": self.lost_actors,
        }
        return "; ".join([*parts, *(f"{note}: {number:,}" for note, number in notes.items() if number)])


def embed_dataset(
    source: TextSource,
    out: str | Path,
    *,
    embed: EmbedBatches | None = None,
    id_column: str | None = None,
    split: bool | str = False,
    address: str | None = None,
    actors: int | None = None,
    shard_characters: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> DatasetReport | None:
    """Embed each row of a text or table on a Ray cluster; row k of the input is row k of the output.

    The rows are divided into shards. Each actor embeds a shard and writes it as one Parquet file; a shard
    whose actor or machine dies is given to another one. `out` has to be a place that all machines see under
    the same name. Shards are kept until all are there, so that an interrupted or killed run can be resumed.

    Args:
        source: A text, see `elmokit.embed_file`; or a table: .csv, .tsv, .jsonl or .parquet, whose column
            `embed.text_column` is taken, or an `elmokit.TextColumn`.
        out: A folder for the shards, which `elmokit.read_vectors` opens as a whole, and one by one; or a file
            of a format that `elmokit.embed_file` writes, into which the shards are packed at the end.
        embed: The model, and which vectors are wanted. Its `threads` are the CPUs of each actor.
        id_column: The column of a table with the ids of its rows; they are written as strings.
        split: Whether to split running text into sentences, see `elmokit.embed_file`.
        address: Of the cluster. By default Ray as it has been started in this process, else a Ray of this
            machine alone, for this call.
        actors: How many. By default as many as the cluster has CPUs for.
        shard_characters: About how many characters of text make a shard; by default so many that its file
            has about 32 MB. Results do not depend on it.
        resume: Continue an interrupted run; only shards that are missing are computed.
        overwrite: Replace what is there.
        progress: Show progress on standard error, if that is a terminal.

    Returns:
        The counts; None if `resume` finds the output complete.

    Raises:
        ConfigError: Two settings contradict each other.
        DataError: The source cannot be read, or the output cannot be written; a row cannot be embedded, and
            `embed.on_error` is "raise"; or the run to resume had other settings or another text.
        BusyError: Another process is writing the output.
        ElmoError: Actors died again and again.
        KeyboardInterrupt: Ctrl-C was pressed; the message says how to continue.
    """
    began = time.monotonic()
    out, embed = Path(out), embed or EmbedBatches()
    packed = out.suffix.lower() in ENDINGS and not out.is_dir()
    plan = _Plan.of(embed, out if packed else None, id_column, split, shard_characters)
    if actors is not None:
        check_whole_number("actors", actors, least=1)
    place = Spool.folder_of(out) if packed else out
    with locked(out, parents=not packed), write_errors(out):
        if packed and resume and out.exists() and not place.exists():
            return None
        if packed and out.exists() and not (resume or overwrite):
            raise DataError(f"{out} exists already; choose another name, or overwrite=True")
        folder = ShardFolder(place, plan.settings, resume=resume, overwrite=overwrite)
        if folder.whole and not packed:
            return None
        job = _Job(folder, plan)
        try:
            with text_progress(source, shown=progress) as advance:
                job.run(source, address, actors, advance)
        except KeyboardInterrupt:
            kept = f"{job.num_finished} finished shards are kept in {place}: run again with resume=True"
            raise KeyboardInterrupt(f"interrupted; {kept if job.num_finished else 'start again'}") from None
        finally:
            folder.delete_if_empty()
        if packed:
            _pack(folder, out, plan.choice)
    return job.report(time.monotonic() - began)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What is to be done, whatever the cluster."""

    embed: EmbedBatches
    embedder: TextEmbedder
    choice: FileChoice
    id_column: str | None
    language: str | None
    shard_characters: int

    @classmethod
    def of(
        cls,
        embed: EmbedBatches,
        target: Path | None,
        id_column: str | None,
        split: bool | str,
        shard_characters: int | None,
    ) -> "_Plan":
        if target is not None:
            check_target(target)
            embed = _as_in_file(embed, target)
        embedder, choice = embed.opened()
        size = _default_size(choice) if shard_characters is None else shard_characters
        check_whole_number("shard_characters", size, least=1)
        return cls(
            embed=embed,
            embedder=embedder,
            choice=choice,
            id_column=id_column,
            language=split_language(split, embedder.tokenizer_spec.language, tokens=embed.tokens),
            shard_characters=size,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that decides the output besides text and model."""
        return {
            **self.choice.settings(),
            **model_settings(self.embedder),
            "unit": self.choice.layout.unit,
            "dtype": self.embed.dtype,
            "shape": list(self.choice.layout.shape),
            "tokens": self.embed.tokens,
            "split": self.language,
            "on_error": self.embed.on_error,
            "max_characters": self.embed.max_characters,
            "id_column": self.id_column,
            "shard_characters": self.shard_characters,
        }

    def shards(self, source: TextSource) -> Iterator[InputShard]:
        records = read_records(
            source,
            column=self.embed.text_column,
            id_column=self.id_column,
            tokens=self.embed.tokens,
            split=self.language,
        )
        return read_shards(records, self.shard_characters, with_ids=self.id_column is not None)


class _Job:
    """One run: which shards there are, which of them were finished before, and the counts."""

    def __init__(self, folder: ShardFolder, plan: _Plan) -> None:
        self._folder, self._plan = folder, plan
        self._rows: list[int] = []  # of each shard
        self._resumed_rows = self._bad_rows = self._lost = self.num_finished = 0
        self._counts: Counter[str] = Counter()

    def run(self, source: TextSource, address: str | None, actors: int | None, advance: Advance) -> None:
        """Compute all shards that are missing."""
        if self._folder.finished(0) is not None:
            self._check_model()
        todo = self._unfinished(self._plan.shards(source), advance)
        first = next(todo, None)
        if first is not None:
            with cluster(address):
                pool = Pool(self._plan.embed, actors, self._folder, self._plan.settings)
                try:
                    for shard, facts in pool.results(chain([first], todo)):
                        self._check_seen(shard)
                        self._count(shard, facts, advance)
                        self._counts.update({name: facts[name] for name in _COUNTS})
                finally:
                    self._lost = pool.num_lost
                    pool.stop()
        self._folder.finish(self._rows)

    def report(self, seconds: float) -> DatasetReport:
        """Return the counts."""
        return DatasetReport(
            rows=sum(self._rows),
            resumed_rows=self._resumed_rows,
            bad_rows=self._bad_rows,
            shards=len(self._rows),
            tokens=self._counts["tokens"],
            truncated_tokens=self._counts["truncated_tokens"],
            unknown_tokens=self._counts["unknown_tokens"],
            lost_actors=self._lost,
            seconds=seconds,
        )

    def _unfinished(self, shards: Iterator[InputShard], advance: Advance) -> Iterator[InputShard]:
        """Yield the shards that are missing; the others must be of the same text."""
        for shard in shards:
            self._rows.append(len(shard.values))
            facts = self._folder.finished(shard.number)
            if facts is None:
                yield shard
                continue
            if facts.get(TEXT_DIGEST) != shard.digest:
                raise DataError(
                    f"{self._folder.path(shard.number)} was made of another text than rows {shard.first} to "
                    f"{shard.first + len(shard.values) - 1} are now; pass the same text, or start again with "
                    "overwrite=True"
                )
            self._resumed_rows += len(shard.values)
            self._count(shard, {**facts, "tokens": 0}, advance)

    def _count(self, shard: InputShard, facts: dict[str, Any], advance: Advance) -> None:
        self.num_finished += 1
        self._bad_rows += facts["bad_rows"]
        for value in shard.values:
            advance(value if isinstance(value, str) else "", 0)
        advance("", facts["tokens"])

    def _check_seen(self, shard: InputShard) -> None:
        if not self._folder.path(shard.number).exists():
            raise DataError(
                f"an actor has written {self._folder.path(shard.number)}, but it is not there for this "
                "process; choose a folder that all machines of the cluster share"
            )

    def _check_model(self) -> None:
        with read_vectors(self._folder.path(0)) as file:
            row = next((row for row in file if row.tokens), None)
        if row is None or row.tokens is None:
            return
        sentence = next(iter(self._plan.embedder.stream([row.tokens])))
        now = self._plan.choice.row(sentence).vectors
        before = np.asarray(_array_of(row), np.float32)
        if self._plan.embed.words is None and np.linalg.norm(now - before) > _SAME_MODEL * np.linalg.norm(
            before
        ):
            raise DataError(
                f"{self._folder.folder} was started with another model: the vectors of "
                f"{(row.text or '')[:60]!r} differ. Use the same model, or start again with overwrite=True"
            )


def _as_in_file(embed: EmbedBatches, target: Path) -> EmbedBatches:
    """Fill in the layers and pooling that a file of this format has by default."""
    embedder, _ = embed.opened()
    choice = FileChoice.of(
        target,
        embedder,
        layers=embed.layers,
        dtype=embed.dtype,
        pooling=embed.pooling,
        word=None,
        match_case=False,
    )
    layers = choice.layers if choice.pooling is None else embed.layers
    return replace(embed, layers=layers, pooling=choice.pooling)


def _default_size(choice: FileChoice) -> int:
    """Return how many characters of text make a shard of about 32 MB."""
    layout = choice.layout
    numbers = abs(math.prod(layout.shape)) * (4 if layout.dtype == "float32" else 2)  # bytes a token
    size = _SHARD_BYTES * _CHARACTERS_PER_TOKEN // numbers
    return min(max(size, _LEAST_CHARACTERS), _MOST_CHARACTERS)


def _pack(folder: ShardFolder, out: Path, choice: FileChoice) -> None:
    """Write the rows of all shards to one file, and delete the shards; a bad row becomes an empty one."""
    layout = choice.layout
    with read_vectors(folder.folder) as rows:
        empty = np.zeros([0 if size == -1 else size for size in layout.shape], layout.dtype)
        with draft_file(out) as draft:
            write_vectors(
                draft,
                (_row(row, empty) for row in rows),
                layout,
                ending=out.suffix.lower(),
                count=len(rows),
                metadata=dict(rows.metadata),
            )
    folder.delete()


def _row(row: StoredSentence, empty: "np.ndarray[Any, Any]") -> Row:
    vectors = _array_of(row)
    return Row(
        text=row.text or "",
        tokens=row.tokens or [],
        offsets=row.offsets or [],
        vectors=empty if vectors is None else vectors,
    )


def _array_of(row: StoredSentence) -> "np.ndarray[Any, Any] | None":
    return row.vectors if row.layers is None else row.layers
