"""What a model is made of, whatever the files it comes from."""

from collections.abc import Callable
from dataclasses import dataclass

from elmokit.errors import ModelFileError
from elmokit.model import BiLM, LexiconConfig, Softmax, WordConfig
from elmokit.text import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, Lexicon, TokenizerSpec, Vocabulary


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
        if self.lexicon is not None:
            return self.lexicon.boundaries
        return BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN

    def __post_init__(self) -> None:
        encoder = self.model.config.encoder
        size = None if self.vocabulary is None else len(self.vocabulary)
        if isinstance(encoder, LexiconConfig):
            self._check_lexicon(encoder)
        if isinstance(encoder, WordConfig) and size is None:
            raise ModelFileError(
                f"{self.source}: a model of {encoder.num_words} word vectors needs the vocabulary that names "
                "them; put the vocab.txt that came with it into the same folder"
            )
        wanted = self.softmax.num_words if self.softmax is not None else None
        if isinstance(encoder, WordConfig):
            wanted = encoder.num_words
        if size is not None and wanted is not None and size != wanted:
            raise ModelFileError(
                f"{self.source}: the vocabulary has {size} words, the weights have {wanted} rows; "
                "use the vocabulary file that this model was trained with"
            )

    def _check_lexicon(self, encoder: LexiconConfig) -> None:
        rows = {"characters": encoder.characters.num_characters, "words": encoder.num_words}
        for name, count in rows.items():
            ids = getattr(self.lexicon, name, None) or {}
            if (count > 0) != bool(ids) or not all(0 <= number < count for number in ids.values()):
                last = max(ids.values(), default=0)
                raise ModelFileError(
                    f"{self.source}: the lexicon has {len(ids)} {name}, numbered to {last}, the weights have "
                    f"{count} rows; use the lexicon that this model was trained with"
                )
