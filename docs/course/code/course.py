"""What all chapters share: where the pictures go, and the cosine."""

import os
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from elmokit.base import drawing

PICTURES = Path(os.environ.get("COURSE_PICTURES", "pictures"))


@contextmanager
def picture(name, width=6.4, height=3.6):
    """Yield an empty matplotlib figure; the end of the block saves it as pictures/NAME.png."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with drawing(PICTURES / f"{name}.png", width=width, height=height) as figure:
        yield figure


def cosine(a, b):
    """Return the cosine of the angle between two vectors: 1 for the same direction."""
    return float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))
