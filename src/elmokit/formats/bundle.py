"""What a model is made of, whatever the files it comes from."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from elmokit.errors import ModelFileError
from elmokit.model import BiLM, CharCNNConfig
from elmokit.text import TokenizerSpec, Vocabulary


@dataclass(frozen=True)
class Softmax:
    """The output layer of the language model, shared by both directions: logits = h · weightᵀ + bias."""

    weight: Tensor  # (V, P)
    bias: Tensor  # (V,)


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
        source: what was read, in words.
        card: the model card, where there is one.
    """

    model: BiLM
    tokenizer: TokenizerSpec
    vocabulary: Vocabulary | None = None
    softmax: SoftmaxFile | None = None
    source: str = "made in memory"
    card: str | None = None

    def __post_init__(self) -> None:
        encoder = self.model.config.encoder
        size = None if self.vocabulary is None else len(self.vocabulary)
        if not isinstance(encoder, CharCNNConfig) and size is None:
            raise ModelFileError(
                f"{self.source}: a model of {encoder.num_words} word vectors needs the vocabulary that names "
                "them; put the vocab.txt that came with it into the same folder"
            )
        wanted = self.softmax.num_words if self.softmax is not None else None
        if not isinstance(encoder, CharCNNConfig):
            wanted = encoder.num_words
        if size is not None and wanted is not None and size != wanted:
            raise ModelFileError(
                f"{self.source}: the vocabulary has {size} words, the weights have {wanted} rows; "
                "use the vocabulary file that this model was trained with"
            )
