"""elmokit: ELMo for today. Load any published ELMo, embed text exactly and fast on a plain CPU.

>>> import elmokit
>>> elmokit.load("path/to/model")                              # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

from elmokit.errors import ConfigError, DataError, ElmoError, MissingExtra, ModelFileError

if TYPE_CHECKING:
    from elmokit.embed import Embedder, Sentence, load

__version__ = "0.1.0.dev0"
__all__ = [
    "ConfigError",
    "DataError",
    "ElmoError",
    "Embedder",
    "MissingExtra",
    "ModelFileError",
    "Sentence",
    "load",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (what a name stands for)
    """Import torch only when something of it is asked for, so that the command line answers at once."""
    if name in ("Embedder", "Sentence", "load"):
        from elmokit.embed import embedder

        return getattr(embedder, name)
    raise AttributeError(f"module 'elmokit' has no attribute {name!r}")
