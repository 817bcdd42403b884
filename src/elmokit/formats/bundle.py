"""What a model is made of, whatever the files it comes from."""

from collections.abc import Callable
from dataclasses import dataclass

from elmokit.errors import ModelFileError
from elmokit.model import BiLM, Softmax
from elmokit.text import Lexicon, TokenizerSpec, Vocabulary


@dataclass(frozen=True)
class SoftmaxFile:
    """A softmax that is read when asked for: it is often larger than the model, and embedding needs none."""

    num_words: int
    read: Callable[[], Softmax]


@dataclass(frozen=True)
class ModelBundle:
    """A biLM with all that its files say.

    Attributes:
        model: the network, float32, in evaluation mode.
        tokenizer: how the text was tokenised that it was trained on, as far as the files tell.
        vocabulary: the words of the softmax, or of the word vectors of a model without characters.
        softmax: the output layer, where there is one.
        lexicon: the characters and words of a model that has an own number for each.
        source: what was read, in words.
        card: the model card, where there is one.
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
        """The tokens that the model reads before and after a sentence."""
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
