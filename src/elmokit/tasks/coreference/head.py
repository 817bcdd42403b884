"""The head that links mentions: span ranking (Lee et al. 2017, 2018).

All spans of at most `width` tokens within a sentence get a score m that they are mentions; the best λ·n of a
document are kept. A kept span i has a vector g_i, and for each span j before it

    coarse_ij = m_i + m_j + g_i · C g_j                            of all j; the best `antecedents` are kept
    s_ij      = coarse_ij + w · relu(P g_i + Q g_j + R (g_i ∘ g_j) + φ_ij)
    p(j | i)  = exp s_ij / (1 + Σ_k exp s_ik),                     1 = e⁰ for "no antecedent"

The loss is -log Σ p(j | i) over the true antecedents j, plus the cross-entropy of m. First layers over
several vectors are sums of products with each vector, so that a product is computed once for a token or span
and not for each pair. Memory is O(n · width + n · antecedents) vectors and O((λn)²) numbers.

Shapes: T tokens of a document, N spans, M kept spans, A antecedents, H size of hidden layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.base import bounded
from elmokit.kernels import Dropout
from elmokit.tasks.core import HeadSettings, Hidden, Item, TaskSettings, TrainingSettings
from elmokit.tasks.coreference.data import CorefDocument, Mention, Question, sentence_starts
from elmokit.tasks.coreference.span_features import PAIR_FEATURES, SPAN_FEATURES, DocumentSpans


@dataclass(frozen=True, kw_only=True)
class CoreferenceHeadSettings(HeadSettings):
    """The settings of the head.

    Attributes:
        width: tokens that a mention has at most.
        size: of span vectors and hidden layers.
        span_dropout: rate for span vectors and hidden layers.
        spans_per_word: λ, how many spans are kept.
        antecedents: how many candidates of a span are looked at closely.
    """

    width: int = bounded(20, least=1, most=1000)
    size: int = bounded(200, least=1, most=100_000)
    span_dropout: float = bounded(0.3, least=0, most=1)
    spans_per_word: float = bounded(0.3, least=0.01, most=2)
    antecedents: int = bounded(50, least=1, most=10_000)


@dataclass(frozen=True, kw_only=True)
class CoreferenceSettings(TaskSettings):
    """All settings of a coreference model; a batch is one document."""

    head: CoreferenceHeadSettings = field(default_factory=CoreferenceHeadSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(batch=1, learning_rate=1e-3, patience=6)
    )


@dataclass(frozen=True)
class LinkedMentions:
    """What is found in one document.

    Attributes:
        clusters: of mentions, each in the order of the text.
        probabilities: of each mention, that it is one.
        answers: to the question of the document, of each candidate the probability that it is meant.
    """

    clusters: list[list[Mention]]
    probabilities: dict[Mention, float] = field(default_factory=dict)
    answers: list[float] = field(default_factory=list)

    @property
    def chosen(self) -> list[bool]:
        """Of each candidate of the question, whether it is the likeliest answer, and likelier than none."""
        best = max([*self.answers, 1 - sum(self.answers)], default=0.0)
        return [answer == best for answer in self.answers]


class CoreferenceHead(nn.Module):
    """Clusters of mentions.

    Args:
        dim: size of the vectors.
        settings: of the head.
        singletons: whether mentions without others are clusters, too.
    """

    def __init__(self, dim: int, settings: CoreferenceHeadSettings, *, singletons: bool) -> None:
        super().__init__()
        size = settings.size
        self.settings, self.singletons = settings, singletons
        self.dropout = Dropout(settings.span_dropout)
        self.of_start, self.of_end = nn.Linear(dim, size), nn.Linear(dim, size, bias=False)
        self.of_width = nn.Embedding(settings.width, size)
        self.mention = nn.Linear(size, 1)
        self.span_start, self.span_end = nn.Linear(dim, size), nn.Linear(dim, size, bias=False)
        self.span_inside = nn.Linear(dim, size, bias=False)
        self.attention = nn.Linear(dim, 1)
        self.span_features = nn.ModuleList(nn.Embedding(count, size) for count in SPAN_FEATURES)
        self.coarse = nn.Linear(size, size, bias=False)
        self.of_anaphor, self.of_antecedent = nn.Linear(size, size), nn.Linear(size, size, bias=False)
        self.of_product = nn.Linear(size, size, bias=False)
        self.pair_features = nn.ModuleList(nn.Embedding(count, size) for count in PAIR_FEATURES)
        self.pair = nn.Linear(size, 1)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.1)

    def loss(self, hidden: Hidden, examples: Sequence[CorefDocument]) -> Tensor:
        """Return the mean loss of a document."""
        losses = []
        for vectors, document in self._documents(hidden, examples):
            if document.question is not None:
                losses.append(self._question_loss(vectors, document, document.question))
            else:
                losses.append(self._cluster_loss(vectors, document))
        return torch.stack(losses).mean()

    def decode(self, hidden: Hidden, items: Sequence[Any]) -> list[LinkedMentions]:
        """Return the clusters of each document, or the answer to its question."""
        outputs = []
        for vectors, item in self._documents(hidden, items):
            question = getattr(item, "question", None)
            if not len(vectors):
                outputs.append(LinkedMentions([]))
            elif question is not None:
                shares = self._answers(vectors, item, question).softmax(dim=0)[1:].tolist()
                outputs.append(LinkedMentions([], answers=shares))
            else:
                outputs.append(self._clusters(vectors, item))
        return outputs

    def evidence(self, hidden: Hidden, items: Sequence[Any], key: Question) -> Tensor:
        """Return the log-odds that a mention means the same as one of some others and not nothing, (B,)."""
        scores = [self._answers(vectors, item, key) for vectors, item in self._documents(hidden, items)]
        return torch.stack(scores)[:, 1:].logsumexp(dim=1)

    def _documents(self, hidden: Hidden, items: Sequence[Any]) -> list[tuple[Tensor, Any]]:
        lengths = [sum(map(len, item.texts)) for item in items]
        return list(zip(torch.split(hidden.vectors, lengths), items, strict=True))

    def _cluster_loss(self, vectors: Tensor, document: CorefDocument) -> Tensor:
        spans = self._all_spans(document)
        entity = {m: number for number, cluster in enumerate(document.clusters) for m in cluster}
        numbers = torch.tensor([entity.get(one, -1) for one in spans.tuples()], device=vectors.device)  # (N,)
        scores = self._mention_scores(vectors, spans)  # (N,)
        is_mention = (numbers >= 0).to(scores)
        # Nearly all spans are easy, so that a mean over spans would be nothing: it is one over the words.
        found = functional.binary_cross_entropy_with_logits(scores, is_mention, reduction="sum")
        loss = found / len(vectors)
        kept = self._best(scores, len(vectors))
        antecedents, linked = self._links(vectors, spans.at(kept), scores[kept])  # (M, A) each
        if not antecedents.numel():
            return loss
        own = numbers[kept]  # (M,)
        legal = antecedents < torch.arange(len(kept), device=vectors.device)[:, None]
        true = legal & (own[antecedents] == own[:, None]) & (own >= 0)[:, None]  # (M, A)
        return loss + _marginal_loss(linked, legal, true).sum() / len(vectors)

    def _question_loss(self, vectors: Tensor, document: CorefDocument, question: Question) -> Tensor:
        scores = self._answers(vectors, document, question)[None, 1:]  # (1, candidates)
        true = torch.tensor([question.answers], device=vectors.device)
        return _marginal_loss(scores, torch.ones_like(true), true).sum()

    def _answers(self, vectors: Tensor, item: Item, question: Question) -> Tensor:
        """Return the scores of no candidate (0) and of each, (1 + candidates,)."""
        mentions = sorted({question.pronoun, *question.candidates})
        spans = DocumentSpans.of(mentions, item.texts, vectors.device)
        places = {mention: place for place, mention in enumerate(mentions)}
        scores = self._mention_scores(vectors, spans)
        g = self._span_vectors(vectors, spans)
        pronoun = places[question.pronoun]
        pairs = torch.tensor([sorted((pronoun, places[one])) for one in question.candidates])  # (2nd, 1st)
        earlier, later = pairs[:, :1].to(g.device), pairs[:, 1].to(g.device)
        coarse = scores[later] + scores[earlier[:, 0]] + (g[later] * self.coarse(g[earlier[:, 0]])).sum(dim=1)
        fine = self._pair_scores(g, spans, later, earlier)[:, 0]
        return torch.cat([coarse.new_zeros(1), coarse + fine])

    def _clusters(self, vectors: Tensor, item: Item) -> LinkedMentions:
        spans = self._all_spans(item)
        scores = self._mention_scores(vectors, spans)
        kept = self._best(scores, len(vectors))
        scores = scores[kept]
        antecedents, linked = self._links(vectors, spans.at(kept), scores)
        mentions = spans.at(kept).tuples()
        of: dict[int, list[int]] = {}  # span → its cluster
        if antecedents.numel():
            legal = antecedents < torch.arange(len(kept), device=vectors.device)[:, None]
            best, place = linked.masked_fill(~legal, -torch.inf).max(dim=1)
            chosen = antecedents.gather(1, place[:, None])[:, 0].tolist()
            for row, score in enumerate(best.tolist()):
                if score > 0:
                    cluster = of.setdefault(chosen[row], [chosen[row]])
                    cluster.append(row)
                    of[row] = cluster
        if self.singletons:
            for row, score in enumerate(scores.tolist()):
                if score > 0:
                    of.setdefault(row, [row])
        clusters = {id(cluster): cluster for _, cluster in sorted(of.items())}.values()
        shares = torch.sigmoid(scores).tolist()
        return LinkedMentions(
            [[mentions[row] for row in cluster] for cluster in clusters],
            {mentions[row]: shares[row] for row in of},
        )

    def _all_spans(self, item: Item) -> DocumentSpans:
        """Return all spans within sentences, in the order of their starts, then ends."""
        starts = sentence_starts(item.texts)
        mentions = [
            (start, end)
            for first, last in pairwise(starts)
            for start in range(first, last)
            for end in range(start + 1, min(start + self.settings.width, last) + 1)
        ]
        return DocumentSpans.of(mentions, item.texts, self.mention.weight.device)

    def _mention_scores(self, vectors: Tensor, spans: DocumentSpans) -> Tensor:
        """Return m of each span, (N,)."""
        width = (spans.ends - spans.starts - 1).clamp(max=self.settings.width - 1)
        x = _rows(self.of_start(vectors), spans.starts) + _rows(
            self.of_end(vectors), spans.ends - 1
        )  # (N, H)
        x = self.dropout(torch.relu(x + self.of_width(width)))
        scores: Tensor = self.mention(x)[:, 0]
        return scores

    def _best(self, scores: Tensor, words: int) -> Tensor:
        """Return the rows of the spans to keep, (M,), in order."""
        count = min(len(scores), max(2, round(self.settings.spans_per_word * words)))
        return scores.topk(count).indices.sort().values

    def _span_vectors(self, vectors: Tensor, spans: DocumentSpans) -> Tensor:
        """Return g of each span, (M, H)."""
        places, mask = spans.tokens()  # (M, W) each
        weights = self.attention(vectors)[:, 0][places].masked_fill(~mask, -1e4).softmax(dim=1)  # (M, W)
        inside = (weights[:, :, None] * _rows(self.span_inside(vectors), places)).sum(dim=1)  # (M, H)
        x = (
            _rows(self.span_start(vectors), spans.starts)
            + _rows(self.span_end(vectors), spans.ends - 1)
            + inside
        )
        for embedding, values in zip(self.span_features, spans.features(), strict=True):
            x = x + embedding(values)
        g: Tensor = self.dropout(torch.relu(x))
        return g

    def _links(self, vectors: Tensor, spans: DocumentSpans, mention_scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return for each span the rows of its likeliest antecedents, (M, A), and s, (M, A)."""
        g = self._span_vectors(vectors, spans)
        coarse = self.dropout(g) @ self.coarse(g).T + mention_scores[:, None] + mention_scores  # (M, M)
        order = torch.arange(len(g), device=g.device)
        coarse = coarse.masked_fill(order[:, None] <= order, -torch.inf)
        best, antecedents = coarse.topk(min(self.settings.antecedents, len(g)), dim=1)  # (M, A)
        return antecedents, best + self._pair_scores(g, spans, order, antecedents)

    def _pair_scores(self, g: Tensor, spans: DocumentSpans, anaphors: Tensor, antecedents: Tensor) -> Tensor:
        """Return w · relu(…) for anaphors (R,) and the antecedents of each (R, A), (R, A)."""
        x = _rows(self.of_anaphor(g), anaphors)[:, None] + _rows(
            self.of_antecedent(g), antecedents
        )  # (R, A, H)
        x = x + self.of_product(_rows(g, anaphors)[:, None] * _rows(g, antecedents))
        for embedding, values in zip(
            self.pair_features, spans.pair_features(anaphors, antecedents), strict=True
        ):
            x = x + embedding(values)
        scores: Tensor = self.pair(self.dropout(torch.relu(x)))[:, :, 0]
        return scores


def _rows(vectors: Tensor, places: Tensor) -> Tensor:
    """Return `vectors[places]`; the gradient takes a fraction of the time."""
    return vectors.index_select(0, places.flatten()).view(*places.shape, -1)


def _marginal_loss(scores: Tensor, legal: Tensor, true: Tensor) -> Tensor:
    """Return -log of the probability of all true antecedents together, or of none if none is true.

    Args:
        scores: (M, A); "no antecedent" has 0.
        legal: (M, A) which of them are candidates.
        true: (M, A) which of them are right.
    """
    lowest = -1e9  # finite, so that no gradient is infinity times zero
    none = scores.new_zeros(len(scores), 1)
    every = torch.cat([none, scores.masked_fill(~legal, lowest)], dim=1)
    right = torch.cat(
        [none.masked_fill(true.any(dim=1, keepdim=True), lowest), scores.masked_fill(~true, lowest)], dim=1
    )
    return every.logsumexp(dim=1) - right.logsumexp(dim=1)  # (M,)
