"""A model with everything that its files contain."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import DataError, ModelFileError
from elmokit.model import BiLM, BiLMConfig, FillWeights, FittedPooling, Softmax
from elmokit.text import Lexicon, TokenizerSpec, Vocabulary


@dataclass(frozen=True)
class SoftmaxFile:
    """A softmax that is read on demand: it is often larger than the model, and embedding does not need it."""

    num_words: int
    read: Callable[[], Softmax]

    @classmethod
    def later(cls, num_words: int, path: Path, read: Callable[[], Softmax]) -> "SoftmaxFile":
        """Return the softmax of a file; reading it fails if the file has changed meanwhile."""
        before = _state(path)

        def read_unchanged() -> Softmax:
            softmax = read()
            if _state(path) != before:
                raise ModelFileError(f"{path}: has changed since the model was loaded; load the model again")
            return softmax

        return cls(num_words, read_unchanged)


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def vocabulary_rows(config: BiLMConfig, softmax: SoftmaxFile | None) -> int | None:
    """Return how many rows the vocabulary of a model numbers; None if nothing says so."""
    return softmax.num_words if softmax is not None else config.encoder.vocabulary_size


def read_vocabulary(path: Path, rows: int | None) -> Vocabulary:
    """Read a vocabulary that numbers so many rows.

    Raises:
        ModelFileError: it has other ones, or cannot be read.
    """
    try:
        return Vocabulary.load(path, rows=rows)
    except DataError as error:
        raise ModelFileError(str(error)) from error


@dataclass(frozen=True)
class ModelBundle:
    """A biLM with everything that its files contain.

    Attributes:
        model: the network, float32, in evaluation mode.
        tokenizer: the tokenizer of the training text, if the files record it.
        vocabulary: the words of the softmax, or of the word vectors of a model without characters.
        softmax: the output layer.
        source: a description of what was read.
        card: the model card.
        lexicon: ids of characters and words, for models that have their own.
        fill_weights: how the language model combines its directions to fill a gap, if that was fitted.
        pooling: how sentence vectors are made, if that was fitted.
    """

    model: BiLM
    tokenizer: TokenizerSpec
    vocabulary: Vocabulary | None = None
    softmax: SoftmaxFile | None = None
    source: str = "made in memory"
    card: str | None = None
    lexicon: Lexicon | None = None
    fill_weights: FillWeights | None = None
    pooling: FittedPooling | None = None

    @property
    def boundaries(self) -> tuple[str, str]:
        """Return the tokens that the model reads before and after a sentence."""
        return self.model.config.encoder.boundaries

    def __post_init__(self) -> None:
        problem = self.model.config.encoder.misfit(self.vocabulary, self.lexicon)
        if problem is None and self.vocabulary is not None and self.softmax is not None:
            size, wanted = len(self.vocabulary), self.softmax.num_words
            if size != wanted:
                problem = (
                    f"the vocabulary has {size} words, the weights have {wanted} rows; "
                    "use the vocabulary file that this model was trained with"
                )
        if problem is not None:
            raise ModelFileError(f"{self.source}: {problem}")
