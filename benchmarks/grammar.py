"""Does the language model know grammar? The share of BLiMP's pairs whose good sentence is the likelier one.

    ELMOKIT_DATA=… python benchmarks/grammar.py MODEL

Read from the left, from the right, and with both logarithms added; a masked model (bert:FOLDER) by its
pseudo-log-likelihood. A term's figure is the mean of its phenomena, the overall one the mean of all 67.
"""

from collections import defaultdict
from itertools import islice
from statistics import fmean

from common import data_file, markdown_table, model_parser, percent, report
from elmokit.base import progress_display
from elmokit.language_model import LanguageModel, MaskedLanguageModel, MaskedScore, SentenceScore
from elmokit.text import read_lines

# Warstadt et al. 2020, table 3. The LSTM was trained on 83 million words.
PUBLISHED = {"5-gram": 61.2, "LSTM": 69.8, "Transformer-XL": 69.6, "GPT-2": 83.0}
WAYS = ("forward", "backward", "both")
MASKED_WAYS = ("masked",)

Shares = dict[str, float]  # by the way of reading
Score = SentenceScore | MaskedScore


def totals(score: Score) -> tuple[float, ...]:
    """Log p of the sentence in each of the ways."""
    if isinstance(score, MaskedScore):
        return (score.total,)
    return score.forward_total, score.backward_total, score.forward_total + score.backward_total


def likelier(good: Score, bad: Score) -> tuple[bool, ...]:
    """For each of the ways whether the good sentence is the likelier one."""
    return tuple(one > other for one, other in zip(totals(good), totals(bad), strict=True))


def shares(decisions: list[tuple[bool, ...]]) -> Shares:
    """Percent of decisions that are right, for each of the ways."""
    columns = list(zip(*decisions, strict=True))
    ways = WAYS if len(columns) == len(WAYS) else MASKED_WAYS
    return {way: percent(fmean(column)) for way, column in zip(ways, columns, strict=True)}


def mean(several: list[Shares]) -> Shares:
    """The mean of each of the ways."""
    return {way: round(fmean(one[way] for one in several), 2) for way in several[0]}


def main() -> None:
    """Measure, print, write."""
    arguments = model_parser(__doc__).parse_args()
    path = data_file("tasks/blimp/dev.tsv.xz", "pairs of BLiMP: phenomenon, term, good, bad")
    pairs = [line.split("\t") for line in islice(read_lines(path), 1, None)]
    model: LanguageModel | MaskedLanguageModel
    if arguments.model.startswith("bert:"):
        model = MaskedLanguageModel(arguments.model)
    else:
        model = LanguageModel.load(arguments.model, precision=arguments.precision)
    scores = model.stream(text for pair in pairs for text in pair[2:])

    decisions = defaultdict(list)
    term_of: dict[str, str] = {}
    unequal = 0  # pairs of which one sentence has more words out of vocabulary, whose spelling costs nothing
    with progress_display(shown=True) as start:
        advance = start("BLiMP", len(pairs))
        for phenomenon, term, *_ in pairs:
            good, bad = next(scores), next(scores)
            decisions[phenomenon].append(likelier(good, bad))
            term_of[phenomenon] = term
            if isinstance(good, SentenceScore) and isinstance(bad, SentenceScore):
                unequal += good.known.count(False) != bad.known.count(False)
            advance()

    phenomena = {phenomenon: shares(several) for phenomenon, several in decisions.items()}
    by_term = defaultdict(list)
    for phenomenon, share in phenomena.items():
        by_term[term_of[phenomenon]].append(share)
    terms = {term: mean(several) for term, several in sorted(by_term.items())}
    overall = mean(list(phenomena.values()))

    ways = list(overall)

    def rows(of: dict[str, Shares]) -> list[list[str]]:
        return [[name, *(f"{share[way]:.1f}" for way in ways)] for name, share in of.items()]

    ordered = dict(sorted(phenomena.items(), key=lambda item: (term_of[item[0]], item[0])))
    sample = f"{len(pairs):,} pairs, {len(pairs) // len(phenomena)} of each of {len(phenomena)} phenomena"
    note = f"a sample of BLiMP ({sample}); the published figures are of all its 67,000 pairs"
    published = [[name, f"{share:.1f}", *[""] * (len(ways) - 1)] for name, share in PUBLISHED.items()]
    text = "\n\n".join(
        [
            markdown_table(["phenomenon", *ways], rows(ordered)),
            markdown_table(["term", *ways], rows(terms)),
            markdown_table(["overall", *ways], [*rows({arguments.model: overall}), *published]),
            f"{note}; in {unequal} pairs one sentence has more words out of vocabulary than the other",
        ]
    )
    result = {
        "data": note, "overall": overall, "published": PUBLISHED, "terms": terms, "phenomena": ordered,
        "pairs with unequal numbers of unknown words": unequal,
    }  # fmt: skip
    report("grammar", arguments, text, result)


if __name__ == "__main__":
    main()
