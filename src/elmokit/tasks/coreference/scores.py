"""Scores of coreference: MUC, B³, CEAFφ4 and their mean F1, the CoNLL score; and the F1 of GAP.

With K the true clusters and R the predicted ones, for all documents together:

    MUC     recall   Σ_k (|k| - parts of k) / Σ_k (|k| - 1),   a part being what one r has of k, or a mention
                     that no r has                                                     (Vilain et al. 1995)
    B³      recall   Σ_k Σ_r |k ∩ r|² / |k| / Σ_k |k|                                 (Bagga and Baldwin 1998)
    CEAFφ4  recall   max over one-to-one alignments of Σ φ(k, r) / |K|,   φ = 2 |k ∩ r| / (|k| + |r|)
                                                                                                  (Luo 2005)

Precision is the same with K and R exchanged.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elmokit.tasks.core import ClassScore, Counted, Items, Scores, count_items, scores_from_counts
from elmokit.tasks.coreference.data import CorefDocument, Mention, Question

Clusters = Sequence[Sequence[Mention]]
Numbers = npt.NDArray[np.float64]

METRICS = ("muc", "b3", "ceafe")
_MASCULINE = frozenset(("he", "him", "his"))
_RESAMPLES = 1000


def score_clusters(gold: Sequence[Clusters], predicted: Sequence[Clusters]) -> Scores:
    """Return the CoNLL score of documents, and what it is made of."""
    counts = np.array([count_clusters(*both) for both in zip(gold, predicted, strict=True)])  # (n, 3, 4)
    sums = counts.sum(axis=0)  # (3, 4)
    recall, precision = _divided(sums[:, 0], sums[:, 1]), _divided(sums[:, 2], sums[:, 3])
    f1 = _f1(sums)
    mentions = count_items(_mentions(gold), _mentions(predicted))
    support = sum(len(cluster) for clusters in gold for cluster in clusters)
    values = dict(zip(METRICS, f1.tolist(), strict=True))
    times = np.random.default_rng(0).multinomial(len(gold), np.full(len(gold), 1 / len(gold)), _RESAMPLES)
    resampled = _f1(np.tensordot(times, counts, axes=1)).mean(axis=1)  # (resamples,)
    low, high = np.quantile(resampled, [0.025, 0.975]).tolist()
    return Scores(
        main="conll_f1",
        values={"conll_f1": float(f1.mean()), **values, "mention_f1": mentions.total()[2]},
        interval=(low, high),
        classes=[
            ClassScore(name, float(precision[row]), float(recall[row]), float(f1[row]), support)
            for row, name in enumerate(METRICS)
        ],
    )


def _mentions(documents: Sequence[Clusters]) -> list[Items]:
    return [{(mention, "") for cluster in clusters for mention in cluster} for clusters in documents]


def count_clusters(gold: Clusters, predicted: Clusters) -> Numbers:
    """Return (3, 4) for the three scores: numerator and denominator of recall, then of precision."""
    overlaps = _overlaps(gold, predicted)  # (K, R)
    of_gold = np.array([len(set(cluster)) for cluster in gold], dtype=float)
    of_predicted = np.array([len(set(cluster)) for cluster in predicted], dtype=float)
    links = overlaps.sum() - (overlaps > 0).sum()
    muc = [links, (of_gold - 1).sum(), links, (of_predicted - 1).sum()]
    b3 = [
        (overlaps**2 / of_gold[:, None]).sum(),
        of_gold.sum(),
        (overlaps**2 / of_predicted).sum(),
        of_predicted.sum(),
    ]
    aligned = best_alignment(2 * overlaps / (of_gold[:, None] + of_predicted))
    return np.array([muc, b3, [aligned, len(gold), aligned, len(predicted)]])


def _overlaps(gold: Clusters, predicted: Clusters) -> Numbers:
    place = {mention: row for row, cluster in enumerate(gold) for mention in cluster}
    overlaps = np.zeros((len(gold), len(predicted)))
    for column, cluster in enumerate(predicted):
        for mention in set(cluster):
            if mention in place:
                overlaps[place[mention], column] += 1
    return overlaps


def best_alignment(weights: Numbers) -> float:
    """Return the greatest sum of weights (none negative) with at most one in each row and each column.

    Rows are added one by one, each along the cheapest chain of changes to the alignment so far (the Hungarian
    method with potentials, Kuhn 1955).
    """
    weights = weights[weights.any(axis=1)][:, weights.any(axis=0)]
    if not weights.size:
        return 0.0
    costs = -(weights if weights.shape[0] <= weights.shape[1] else weights.T)
    rows, columns = costs.shape
    of_row, of_column = np.zeros(rows), np.zeros(columns + 1)  # potentials; the last column is the start
    row_at = np.full(columns + 1, -1)
    for row in range(rows):
        row_at[columns], at = row, columns
        least, before = np.full(columns, np.inf), np.full(columns, columns)
        seen = np.zeros(columns + 1, dtype=bool)
        while row_at[at] >= 0:
            seen[at] = True
            reached = costs[row_at[at]] - of_row[row_at[at]] - of_column[:columns]
            better = ~seen[:columns] & (reached < least)
            least[better], before[better] = reached[better], at
            open_ = np.where(seen[:columns], np.inf, least)
            following = int(open_.argmin())
            step = open_[following]
            of_row[row_at[seen]] += step
            of_column[seen] -= step
            least[~seen[:columns]] -= step
            at = following
        while at != columns:
            row_at[at], at = row_at[before[at]], before[at]
    aligned = np.flatnonzero(row_at[:columns] >= 0)
    return float(-costs[row_at[aligned], aligned].sum())


def score_questions(
    documents: Sequence[tuple[Question, Sequence[str]]], answers: Sequence[Sequence[bool]]
) -> Scores:
    """Return GAP's F1 over all pairs of pronoun and name, by gender of the pronoun, and their ratio.

    Args:
        documents: each question with the tokens of its document.
        answers: for each question, whether each candidate was chosen.
    """
    parts: dict[str, list[int]] = {"masculine": [], "feminine": []}
    for row, (question, tokens) in enumerate(documents):
        he = tokens[question.pronoun[0]].lower() in _MASCULINE
        parts["masculine" if he else "feminine"].append(row)

    def counted(rows: Sequence[int]) -> Counted:
        gold = [_chosen(documents[row][0].answers) for row in rows]
        return count_items(gold, [_chosen(answers[row]) for row in rows])

    whole = counted(range(len(documents)))
    precision, recall, _ = whole.total()
    of_parts = {f"{name}_f1": counted(rows).total()[2] for name, rows in parts.items()}
    bias = of_parts["feminine_f1"] / max(of_parts["masculine_f1"], 1e-9)
    others = {"precision": precision, "recall": recall, **of_parts, "bias": bias}
    return scores_from_counts({"gap_f1": whole}, others=others)


def _chosen(answers: Sequence[bool]) -> Items:
    return {(place, "same") for place, yes in enumerate(answers) if yes}


def scores_of(
    documents: Sequence[CorefDocument], clusters: Sequence[Clusters], answers: Sequence[Sequence[bool]]
) -> Scores:
    """Score questions if there are some among the documents, else clusters."""
    asked = [
        (document.question, document.tokens, answer)
        for document, answer in zip(documents, answers, strict=True)
        if document.question is not None
    ]
    if asked:
        return score_questions(
            [(question, tokens) for question, tokens, _ in asked], [a for _, _, a in asked]
        )
    return score_clusters([document.clusters for document in documents], clusters)


def _f1(sums: Numbers) -> Numbers:
    """(…, 3, 4) → (…, 3)."""
    recall, precision = _divided(sums[..., 0], sums[..., 1]), _divided(sums[..., 2], sums[..., 3])
    return _divided(2 * recall * precision, recall + precision)


def _divided(numerator: Numbers, denominator: Numbers) -> Numbers:
    """Return the quotients; 0 where there is nothing to divide by."""
    return numerator / np.where(denominator > 0, denominator, np.inf)
