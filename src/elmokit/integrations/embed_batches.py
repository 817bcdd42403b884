"""Batches of texts in, columns of vectors out: what Ray, Dask and Spark call on every machine of a cluster.

An `EmbedBatches` is a few settings. It travels to the machines as such; each process there opens the model
when its first batch comes, and keeps it.
"""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch

from elmokit.base import check_option, check_whole_number, shown
from elmokit.embed import DType, FileChoice, LayerChoice, SentencePooling, TextEmbedder
from elmokit.encoders import load
from elmokit.errors import ConfigError, DataError
from elmokit.integrations.cluster_input import arrow_values
from elmokit.vectors import Row, vector_table

if TYPE_CHECKING:
    from elmokit.model import MixChoice

logger = logging.getLogger(__name__)

OnError = Literal["raise", "null"]

_LIKE = Path("batch.parquet")  # the vectors of a row are those that a file of this kind would hold
_LONE_SURROGATE = re.compile("[\\ud800-\\udfff]")
# An embedder serves one thread at a time, but Dask may run several.
_one_at_a_time = Lock()


@dataclass(frozen=True)
class EmbeddedRows:
    """What became of a batch of texts.

    Attributes:
        rows: A row for each text; None if it could not be embedded.
        problems: Why not; None for those that were.
        truncated_tokens: How many tokens were too long for the model and were truncated.
        unknown_tokens: How many tokens the model does not know.
    """

    rows: list[Row | None]
    problems: list[str | None]
    truncated_tokens: int
    unknown_tokens: int


@dataclass(frozen=True)
class EmbedBatches:
    """Add the vectors of a column of texts to each batch of a table.

    The batch is an Arrow table or record batch, a pandas data frame, or a dict of NumPy arrays; the result a
    data frame for a data frame, else an Arrow table. New columns are `tokens`, `offsets` and `vectors`, as in
    the Parquet files of `elmokit.embed_file`: with several layers `layer_0`, `layer_1`, … and for vectors of
    sentences `vector`. An item is a text or a list of tokens.

    Attributes:
        model: A name or path for `elmokit.load`; a path has to exist on every machine.
        text_column: The column with the texts.
        layers: Which vectors of the tokens; see `elmokit.embed_file`. By default all, but the mix for
            sentences.
        pooling: Make one vector of each text, in this way.
        dtype: Type of the numbers. What is too large for float16 counts as a bad row.
        tokens: Whether a text is tokens separated by blanks, which are not tokenised again.
        on_error: What to do with a row that cannot be embedded, because it is null, no text, longer than
            `max_characters`, or has a lone surrogate: "raise" a DataError; or "null", which leaves the new
            columns empty and says why in another one, `error`.
        max_characters: A longer text is a bad row: its vectors might not fit into memory.
        weights, tokenizer, words, precision, mix, batch_tokens: See `elmokit.load`; batches are smaller here,
            because there may be many processes.
        threads: Of torch, in each process. By default what OMP_NUM_THREADS says, which Ray and Spark set to
            the CPUs of an actor or task; else 1.

    Example:
        >>> import pyarrow
        >>> table = pyarrow.table({"text": ["The bank raised its rates."]})
        >>> EmbedBatches("en", layers="mix", dtype="float16")(table).column_names
        ['text', 'tokens', 'offsets', 'vectors']
    """

    model: str = "en"
    _: KW_ONLY
    text_column: str = "text"
    layers: LayerChoice | None = None
    pooling: SentencePooling | None = None
    dtype: DType = "float32"
    tokens: bool = False
    on_error: OnError = "raise"
    max_characters: int = 100_000
    weights: str | None = None
    tokenizer: str | None = None
    words: str | None = None
    precision: str = "float32"
    mix: "MixChoice" = "average"
    batch_tokens: int = 2048
    threads: int | None = None

    def __post_init__(self) -> None:
        if Path(self.model).exists():  # processes elsewhere have another working directory
            object.__setattr__(self, "model", str(Path(self.model).resolve()))
        check_option("on_error", self.on_error, get_args(OnError))
        check_whole_number("max_characters", self.max_characters, least=1)
        if self.threads is not None:
            check_whole_number("threads", self.threads, least=1)

    def __call__(self, batch: Any) -> Any:  # noqa: ANN401  (pyarrow has no types)
        """Return the batch with the new columns.

        Raises:
            ConfigError: There is no such column, or a setting is wrong.
            DataError: A row cannot be embedded, and `on_error` is "raise".
        """
        table, values = _columns_of(batch, self.text_column)
        new = self.columns(self.embed(values))
        if hasattr(batch, "assign"):
            return batch.assign(**_series(new, batch.index))
        for name in new.column_names:
            if name in table.column_names:
                table = table.drop_columns([name])
            table = table.append_column(new.schema.field(name), new[name])
        return table

    def embed(self, values: Sequence[object], *, first: int = 1) -> EmbeddedRows:
        """Embed texts; `first` is the number of the first one, for messages.

        Raises:
            DataError: One cannot be embedded, and `on_error` is "raise".
        """
        problems = [self._problem(value) for value in values]
        self._complain(problems, first)
        texts = [self._text(value) for value, problem in zip(values, problems, strict=True) if not problem]
        rows: list[Row | None] = []
        truncated = unknown = 0
        with _one_at_a_time:
            torch.set_num_threads(self.threads or int(os.environ.get("OMP_NUM_THREADS") or 1))
            embedder, choice = self.opened()
            sentences = embedder.stream(texts, copy=False)
            for number, problem in enumerate(problems):
                if problem is not None:
                    rows.append(None)
                    continue
                sentence = next(sentences)
                row = _in_dtype(choice.row(sentence), self.dtype)
                if row is None:
                    problems[number] = "a number too large for float16"
                    self._complain([problems[number]], first + number)
                rows.append(row)
                truncated += len(sentence.truncated)
                unknown += len(sentence.unknown)
        bad = sum(problem is not None for problem in problems)
        if bad:
            logger.warning("%d of %d rows could not be embedded; the column error says why", bad, len(rows))
        return EmbeddedRows(rows, problems, truncated, unknown)

    def columns(self, embedded: EmbeddedRows) -> Any:  # noqa: ANN401
        """Return an Arrow table of the new columns."""
        import pyarrow

        table = vector_table(embedded.rows, self.opened()[1].layout)
        if self.on_error == "null":
            table = table.append_column("error", pyarrow.array(embedded.problems, pyarrow.string()))
        return table

    def empty(self) -> Any:  # noqa: ANN401
        """Return an Arrow table of the new columns without rows, which shows their types."""
        return self.columns(EmbeddedRows([], [], 0, 0))

    def opened(self) -> tuple[TextEmbedder, FileChoice]:
        """Return the model, opened once in each process, and what of its vectors is wanted."""
        settings = {
            "weights": self.weights,
            "tokenizer": self.tokenizer,
            "words": self.words,
            "precision": self.precision,
            "mix": tuple(self.mix) if isinstance(self.mix, list) else self.mix,
            "batch_tokens": self.batch_tokens,
        }
        embedder = _opened(self.model, tuple(settings.items()))
        choice = FileChoice.of(
            _LIKE,
            embedder,
            layers=self.layers,
            dtype=self.dtype,
            pooling=self.pooling,
            word=None,
            match_case=False,
        )
        return embedder, choice

    def _problem(self, value: object) -> str | None:
        """Say why a value cannot be embedded."""
        if value is None or (isinstance(value, float) and np.isnan(value)):
            return "null"
        if isinstance(value, np.ndarray):
            value = value.tolist()
        parts = [value] if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            return f"{type(value).__name__} {shown(value, 30)}, expected a text or a list of tokens"
        size = sum(map(len, parts)) + max(0, len(parts) - 1)
        if size > self.max_characters:
            return f"a text of {size:,} characters, max_characters is {self.max_characters:,}"
        if found := _LONE_SURROGATE.search(" ".join(parts)):
            return f"a lone surrogate at character {found.start()}"
        return None

    def _complain(self, problems: Sequence[str | None], first: int) -> None:
        if self.on_error == "null":
            return
        for number, problem in enumerate(problems, start=first):
            if problem:
                raise DataError(
                    f"row {number} has {problem}; correct it, or leave such rows empty with on_error='null'"
                )

    def _text(self, value: Any) -> str | list[str]:  # noqa: ANN401
        if isinstance(value, str):
            return value.split() if self.tokens else value
        return list(value)


@lru_cache(maxsize=2)
def _opened(model: str, settings: tuple[tuple[str, Any], ...]) -> TextEmbedder:
    embedder: TextEmbedder = load(model, **dict(settings))
    embedder.share_weights()
    return embedder


def _in_dtype(row: Row, dtype: DType) -> Row | None:
    """Return the row with numbers of this type in memory of its own; None if one is too large for it."""
    with np.errstate(over="raise"):
        try:
            return replace(row, vectors=row.vectors.astype(dtype))
        except FloatingPointError:
            return None


def _columns_of(batch: Any, name: str) -> tuple[Any, Sequence[object]]:  # noqa: ANN401
    """Return a batch as an Arrow table (a data frame as it is), and the values of one column."""
    import pyarrow

    names = list(
        getattr(batch, "column_names", batch) if not hasattr(batch, "schema") else batch.schema.names
    )
    if name not in names:
        raise ConfigError(f"expected a column {name!r}, found {', '.join(map(str, names))}; name text_column")
    if isinstance(batch, Mapping):
        values = list(batch[name])
        columns = {key: _storable(column) if key == name else list(column) for key, column in batch.items()}
        return pyarrow.table(columns), values
    if hasattr(batch, "assign"):
        missing = batch[name].isna()  # pandas has several values for that
        values = [None if gone else value for value, gone in zip(batch[name], missing, strict=True)]
        return batch, values
    table = pyarrow.Table.from_batches([batch]) if isinstance(batch, pyarrow.RecordBatch) else batch
    return table, arrow_values(table[name])


def _storable(values: Sequence[object]) -> list[object]:
    """Return what Arrow can hold of a column: texts, or lists of tokens if there are no texts."""
    lists = [None if isinstance(value, str) else _tokens(value) for value in values]
    if not any(isinstance(value, str) for value in values):
        return list(lists)
    return [
        storable_text(value if tokens is None else " ".join(tokens))
        for value, tokens in zip(values, lists, strict=True)
    ]


def _tokens(value: object) -> list[str] | None:
    found = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(found, list | tuple) or not all(isinstance(token, str) for token in found):
        return None
    return [str(storable_text(token)) for token in found]


def storable_text(value: object) -> str | None:
    """Return a text as Arrow can hold it, a lone surrogate as its escape; None for what is no text."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else None


def _series(table: Any, index: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the columns of a table for a data frame, with the types of Arrow."""
    import pandas

    return {
        name: pandas.Series(pandas.arrays.ArrowExtensionArray(table[name]), index=index)
        for name in table.column_names
    }
