"""The exceptions of elmokit. Each message says what was found, what was expected and what to do."""


class ElmoError(Exception):
    """The base of all errors that elmokit itself raises."""


class ConfigError(ElmoError, ValueError):
    """An invalid setting or argument."""


class ModelFileError(ElmoError):
    """A model file that is missing, damaged, or not what it should be."""


class DataError(ElmoError):
    """Text, labels or result files that cannot be read or written."""


class BusyError(DataError):
    """A file or folder that another process is writing."""


class TrainingError(ElmoError):
    """Training that cannot continue."""


class MissingExtra(ElmoError, ImportError):
    """An optional library is needed and not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}, which is not installed; pip install 'elmokit[{extra}]'")
