"""The exceptions of elmokit, all in one tree.

* ElmoError: whatever elmokit itself refuses.
  - ConfigError (also a ValueError): a setting or argument that cannot be.
  - ModelFileError: a model file that is missing, damaged, or not what it should be.
  - DataError: text, labels or result files that cannot be read or written.
  - TrainingError: training that cannot go on.
  - MissingExtra (also an ImportError): an optional library is not installed.

Each message says what was found, what was expected and what to do.
"""


class ElmoError(Exception):
    """Base of all errors that elmokit raises on purpose."""


class ConfigError(ElmoError, ValueError):
    """A setting or argument that cannot be."""


class ModelFileError(ElmoError):
    """A model file that is missing, damaged, or not what it should be."""


class DataError(ElmoError):
    """Text, labels or result files that cannot be read or written."""


class TrainingError(ElmoError):
    """Training that cannot go on."""


class MissingExtra(ElmoError, ImportError):
    """An optional library is needed and not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}, which is not installed; pip install 'elmokit[{extra}]'")
