"""Files of computed embeddings: HDF5 as AllenNLP wrote it, npz, Parquet, Arrow, and npy for sentence vectors.

None of these formats survives a killed process, so rows first go to a `Spool` (a folder of small finished
parts beside the target), which can be resumed, and are packed into the target at the end.
"""

from elmokit.vectors.hdf5 import open_hdf5
from elmokit.vectors.rows import Layout, Row
from elmokit.vectors.spool import Spool
from elmokit.vectors.writers import ENDINGS, check_ending, write_vectors

__all__ = [
    "ENDINGS",
    "Layout",
    "Row",
    "Spool",
    "check_ending",
    "open_hdf5",
    "write_vectors",
]
