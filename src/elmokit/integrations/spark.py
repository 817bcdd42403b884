"""The vectors of a Spark data frame's texts, computed by its executors.

>>> from elmokit.integrations.spark import EmbedBatches, embed_frame
>>> vectors = embed_frame(frame, EmbedBatches("en", pooling="mean"))                      # doctest: +SKIP
"""

from collections.abc import Iterable, Iterator
from typing import Any

from elmokit.errors import ConfigError, MissingExtra
from elmokit.integrations.embed_batches import EmbedBatches

try:
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType
except ImportError as error:
    raise MissingExtra("pyspark", "spark", "elmokit.integrations.spark") from error

__all__ = ["EmbedBatches", "embed_frame"]


def embed_frame(frame: Any, embed: EmbedBatches) -> Any:  # noqa: ANN401  (pyspark has no types)
    """Return a lazy data frame with the columns of vectors added, as arrays of arrays of float.

    Args:
        frame: A `pyspark.sql.DataFrame` with the column `embed.text_column`.
        embed: The model, and which vectors are wanted.

    Raises:
        ConfigError: A setting is wrong; or the numbers would be float16, which Spark does not have.
    """
    if embed.dtype == "float16":
        raise ConfigError("Spark has no float16; use dtype='float32'")
    new = from_arrow_schema(_without_sizes(embed.empty()).schema)
    kept = [field for field in frame.schema if field.name not in new.names]
    return frame.mapInArrow(_Batches(embed, [field.name for field in kept]), StructType([*kept, *new]))


class _Batches:
    """What an executor calls with the record batches of a partition; it can be pickled."""

    def __init__(self, embed: EmbedBatches, kept: list[str]) -> None:
        self._embed, self._kept = embed, kept

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            made = self._embed(batch)
            new = [name for name in made.column_names if name not in self._kept]
            yield from _without_sizes(made.select([*self._kept, *new])).to_batches()


def _without_sizes(table: Any) -> Any:  # noqa: ANN401
    """Return the table with plain lists in place of lists of a fixed size, which Spark does not know."""
    import pyarrow

    def plain(kind: Any) -> Any:  # noqa: ANN401
        is_list = pyarrow.types.is_list(kind) or pyarrow.types.is_fixed_size_list(kind)
        return pyarrow.list_(plain(kind.value_type)) if is_list else kind

    return table.cast(pyarrow.schema([field.with_type(plain(field.type)) for field in table.schema]))
