"""What a model is made of, whatever the files it comes from."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from elmokit.errors import ConfigError, ModelFileError
from elmokit.model import BiLM, LexiconConfig, WordConfig
from elmokit.text import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, Lexicon, TokenizerSpec, Vocabulary, lexicon

SOFTMAX_TENSORS = ("weight", "bias", "cluster_weight", "cluster_bias")
# Logits worked on at a time: 16 MB in float32, however large the vocabulary.
_ROWS_AT_ONCE = 1024
_WORDS_AT_ONCE = 4096


@dataclass(frozen=True)
class Softmax:
    """The output layer of the language model, shared by both directions: logits = h · weightᵀ + bias.

    Without cutoffs, p(w) = softmax(logits)_w. With cutoffs c_1 < … < c_k (an adaptive softmax, Grave et al.
    2017, whose tails are as wide as its head) the words are parted into the head [0, c_1) and k clusters
    [c_i, c_{i+1}), the last of which ends at V:

        p(w) = softmax(head)_w                              for w in the head
        p(w) = softmax(head)_{cluster i} · softmax(logits of cluster i)_w        for w in cluster i

    where `head` are the logits of the head's words and then those of the clusters,
    h · cluster_weightᵀ + cluster_bias. Probabilities are computed without gradients; log-sum-exps of blocks
    are summed in float64, so that nothing is lost in sums over a large vocabulary.

    Attributes:
        weight: (V, P).
        bias: (V,).
        cutoffs: c_1 … c_k, or none.
        cluster_weight: (k, P), with cutoffs.
        cluster_bias: (k,), with cutoffs.
    """

    weight: Tensor
    bias: Tensor
    cutoffs: tuple[int, ...] = ()
    cluster_weight: Tensor | None = None
    cluster_bias: Tensor | None = None

    def __post_init__(self) -> None:
        words, *dim = self.weight.shape
        clusters = len(self.cutoffs)
        expected: dict[str, tuple[Tensor | None, tuple[int, ...]]] = {"bias": (self.bias, (words,))}
        if self.cutoffs or self.cluster_weight is not None or self.cluster_bias is not None:
            expected["cluster_weight"] = (self.cluster_weight, (clusters, *dim))
            expected["cluster_bias"] = (self.cluster_bias, (clusters,))
        for name, (tensor, shape) in expected.items():
            found = "missing" if tensor is None else list(tensor.shape)
            if found != list(shape):
                raise ConfigError(
                    f"{name} of the softmax is {found}; {words} words and {clusters} cutoffs ask for "
                    f"{list(shape)}"
                )
        if any(end <= start for start, end in pairwise((0, *self.cutoffs, words))):
            raise ConfigError(
                f"the cutoffs of the softmax are {list(self.cutoffs)}; expected rising numbers between 0 "
                f"and its {words} words"
            )

    def to(self, device: torch.device) -> "Softmax":
        """The same on another device."""
        moved = {name: tensor.detach().to(device) for name, tensor in self.tensors().items()}
        return Softmax(**moved, cutoffs=self.cutoffs)

    def tensors(self) -> dict[str, Tensor]:
        """What it is made of, by name; without cutoffs there are no clusters."""
        tensors = {name: getattr(self, name) for name in SOFTMAX_TENSORS}
        return {name: tensor for name, tensor in tensors.items() if tensor is not None}

    @torch.no_grad()
    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """The natural logarithm of every word's probability, (n, P) → (n, V)."""
        logits = torch.addmm(self.bias, hidden, self.weight.T)  # (n, V)
        head, *tails = logits.tensor_split(self.cutoffs, dim=1)  # views
        of_clusters = self._cluster_logits(hidden)  # (n, k)
        total = torch.cat([head, of_clusters], dim=1).logsumexp(dim=1, keepdim=True)  # (n, 1)
        for tail, of_cluster in zip(tails, of_clusters.T, strict=True):
            tail += of_cluster[:, None] - total - tail.logsumexp(dim=1, keepdim=True)
        head -= total
        return logits

    @torch.no_grad()
    def target_log_probabilities(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The natural logarithm of the probability of one word for each row, (n, P) and (n,) → (n,).

        Memory stays bounded however large n and V are; clusters in which no target lies cost nothing.
        """
        parts = zip(*(torch.split(x, _ROWS_AT_ONCE) for x in (hidden, targets)), strict=True)
        return torch.cat([self._of_targets(*part) for part in parts])

    def _of_targets(self, hidden: Tensor, targets: Tensor) -> Tensor:
        words = len(self.weight)
        head, *tails = pairwise((0, *self.cutoffs, words))
        of_clusters = self._cluster_logits(hidden).double()  # (n, k)
        target, total = self._target_and_total(hidden, targets, *head)  # (n,) each
        total = torch.cat([total[:, None], of_clusters], dim=1).logsumexp(dim=1)  # (n,)
        for cluster, (start, end) in enumerate(tails):
            (rows,) = torch.where((targets >= start) & (targets < end))  # (m,)
            if len(rows):
                inside, normaliser = self._target_and_total(hidden[rows], targets[rows], start, end)
                target[rows] = of_clusters[rows, cluster] + inside - normaliser
        return (target - total).to(hidden.dtype)

    def _target_and_total(
        self, hidden: Tensor, targets: Tensor, start: int, end: int
    ) -> tuple[Tensor, Tensor]:
        """Logit of each target (NaN if outside) and log-sum-exp over the words [start, end), in float64."""
        target = torch.full_like(targets, torch.nan, dtype=torch.float64)  # (n,)
        totals = []
        for first in range(start, end, _WORDS_AT_ONCE):
            words = slice(first, min(first + _WORDS_AT_ONCE, end))
            logits = torch.addmm(self.bias[words], hidden, self.weight[words].T)  # (n, block)
            totals.append(logits.logsumexp(dim=1).double())
            (rows,) = torch.where((targets >= words.start) & (targets < words.stop))
            target[rows] = logits[rows, targets[rows] - first].double()
        return target, torch.stack(totals).logsumexp(dim=0)

    def _cluster_logits(self, hidden: Tensor) -> Tensor:
        """(n, k); k is 0 without cutoffs."""
        if self.cluster_weight is None or self.cluster_bias is None:
            return hidden.new_empty(len(hidden), 0)
        return torch.addmm(self.cluster_bias, hidden, self.cluster_weight.T)


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
            return lexicon.BEGIN_SENTENCE_TOKEN, lexicon.END_SENTENCE_TOKEN
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
