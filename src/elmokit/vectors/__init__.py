"""Vector files, written and read: HDF5 as AllenNLP wrote it, npz, Parquet, Arrow, npy, CSV.

None of these formats survives a killed process, so rows first go to a `Spool` (a folder of small finished
parts beside the target), which can be resumed. At the end they are packed into the target. Many machines
write a `ShardFolder`.
"""

from elmokit.vectors.read_vectors import VectorFile, read_vectors
from elmokit.vectors.rows import Layout, Row, StoredSentence, Unit, file_rows
from elmokit.vectors.shard_folder import ShardFolder, vector_table, write_shard
from elmokit.vectors.spool import TEXT_DIGEST, Spool, check_target, texts_digest
from elmokit.vectors.writers import ENDINGS, arrow_stream, check_ending, write_vectors

__all__ = [
    "ENDINGS",
    "TEXT_DIGEST",
    "Layout",
    "Row",
    "ShardFolder",
    "Spool",
    "StoredSentence",
    "Unit",
    "VectorFile",
    "arrow_stream",
    "check_ending",
    "check_target",
    "file_rows",
    "read_vectors",
    "texts_digest",
    "vector_table",
    "write_shard",
    "write_vectors",
]
