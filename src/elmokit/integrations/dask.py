"""The vectors of a Dask data frame's texts, computed by its workers.

>>> from elmokit.integrations.dask import EmbedBatches, embed_frame
>>> vectors = embed_frame(frame, EmbedBatches("en", pooling="mean"))                      # doctest: +SKIP
"""

from typing import Any

from elmokit.errors import MissingExtra
from elmokit.integrations.embed_batches import EmbedBatches

try:
    import dask.dataframe
except ImportError as error:
    raise MissingExtra("dask", "dask", "elmokit.integrations.dask") from error

__all__ = ["EmbedBatches", "embed_frame"]


def embed_frame(frame: Any, embed: EmbedBatches) -> Any:  # noqa: ANN401  (dask has no types)
    """Return a lazy data frame with the columns of vectors added; each partition is one batch.

    Run it with processes, not with threads: a process opens the model once, and embeds with it one partition
    at a time.

    Args:
        frame: A `dask.dataframe.DataFrame` with the column `embed.text_column`.
        embed: The model, and which vectors are wanted.

    Raises:
        ConfigError: A setting is wrong.
    """
    new = embed.empty().to_pandas(types_mapper=_arrow_type)
    meta = frame._meta.assign(**{name: new[name].set_axis(frame._meta.index) for name in new})
    return dask.dataframe.map_partitions(embed, frame, meta=meta)


def _arrow_type(kind: Any) -> Any:  # noqa: ANN401
    import pandas

    return pandas.ArrowDtype(kind)
