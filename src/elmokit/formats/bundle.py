"""A model with everything that its files contain."""

from collections.abc import Callable
from dataclasses import dataclass

from elmokit.errors import ModelFileError
from elmokit.model import BiLM, Softmax
from elmokit.text import Lexicon, TokenizerSpec, Vocabulary


@dataclass(frozen=True)
class SoftmaxFile:
    """A softmax that is read on demand: it is often larger than the model, and embedding does not need it."""

    num_words: int
    read: Callable[[], Softmax]


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
    """

    model: BiLM
    tokenizer: TokenizerSpec
    vocabulary: Vocabulary | None = None
    softmax: SoftmaxFile | None = None
    source: str = "made in memory"
    card: str | None = None
    lexicon: Lexicon | None = None

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
