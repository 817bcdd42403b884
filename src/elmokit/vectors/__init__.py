"""Vector files, written and read: HDF5 as AllenNLP wrote it, npz, Parquet, Arrow; npy for sentence vectors.

None of these formats survives a killed process, so rows first go to a `Spool` (a folder of small finished
parts beside the target), which can be resumed. At the end they are packed into the target.
"""

from elmokit.vectors.hdf5 import open_hdf5
from elmokit.vectors.read_vectors import VectorFile, read_vectors
from elmokit.vectors.rows import Layout, Row, StoredSentence
from elmokit.vectors.spool import Spool
from elmokit.vectors.writers import ENDINGS, check_ending, write_vectors

__all__ = [
    "ENDINGS",
    "Layout",
    "Row",
    "Spool",
    "StoredSentence",
    "VectorFile",
    "check_ending",
    "open_hdf5",
    "read_vectors",
    "write_vectors",
]
