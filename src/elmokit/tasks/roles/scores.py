"""Scores of roles by the rules of CoNLL-2005 (Carreras and Màrquez 2005).

An argument is its role and all its pieces: C-ARG1 continues the ARG1 before it (or is an ARG1, if there is
none), R-ARG1 is a role of its own, and V, the predicate itself, does not count.
"""

from collections.abc import Iterable, Sequence

from elmokit.tasks.core import Items, Scores, count_items, scores_from_counts
from elmokit.tasks.roles.data import VERB, FramedSentence
from elmokit.tasks.roles.head import PredictedFrame
from elmokit.tasks.tagger import find_spans, kind_of

CONTINUES = "C-"

Argument = tuple[str, tuple[tuple[int, int], ...]]  # the role, and start and end of each piece


def arguments_of(tags: Sequence[str]) -> list[Argument]:
    """Return the arguments in the tags of a frame, with their pieces joined, and without the predicate.

    Example:
        >>> arguments_of("B-ARG1 I-ARG1 B-V B-ARG0 B-C-ARG1 B-C-ARG2".split())
        [('ARG1', ((0, 2), (4, 5))), ('ARG0', ((3, 4),)), ('ARG2', ((5, 6),))]
    """
    found: list[tuple[str, list[tuple[int, int]]]] = []
    latest: dict[str, list[tuple[int, int]]] = {}
    for span in find_spans(tags):
        role = span.label.removeprefix(CONTINUES)
        piece = (span.start, span.end)
        if role != span.label and role in latest:
            latest[role].append(piece)
        else:
            latest[role] = [piece]
            found.append((role, latest[role]))
    return [(role, tuple(pieces)) for role, pieces in found if role != VERB]


def score_roles(examples: Sequence[FramedSentence], outputs: Sequence[Sequence[PredictedFrame]]) -> Scores:
    """Return F1 of the arguments where the predicates are given, and where they have to be found, too."""
    gold = [_items((frame.predicate, frame.tags) for frame in example.frames) for example in examples]
    given = [
        [frame for frame in frames if frame.predicate in example.predicates]
        for example, frames in zip(examples, outputs, strict=True)
    ]
    found = [[frame for frame in frames if frame.found] for frames in outputs]
    counted = count_items(gold, [_items((f.predicate, f.tags.tags) for f in frames) for frames in given])
    whole = count_items(gold, [_items((f.predicate, f.tags.tags) for f in frames) for frames in found])
    predicates = count_items(
        [{(place, VERB) for place in example.predicates} for example in examples],
        [{(frame.predicate, VERB) for frame in frames} for frames in found],
    )
    precision, recall, _ = counted.total()
    others = {
        "precision": precision,
        "recall": recall,
        "predicate_f1": predicates.total()[2],
        "found_f1": whole.total()[2],
    }
    return scores_from_counts({"f1": counted}, others=others, pairs=_pairs(examples, given))


def _items(frames: Iterable[tuple[int, Sequence[str]]]) -> Items:
    return {((place, pieces), role) for place, tags in frames for role, pieces in arguments_of(tags)}


def _pairs(
    examples: Sequence[FramedSentence], given: Sequence[Sequence[PredictedFrame]]
) -> list[tuple[str, str]]:
    """Return the true and the predicted role of each token in each frame."""
    return [
        (kind_of(true, "BIO"), kind_of(predicted, "BIO"))
        for example, frames in zip(examples, given, strict=True)
        for gold, frame in zip(example.frames, frames, strict=True)
        for true, predicted in zip(gold.tags, frame.tags.tags, strict=True)
    ]
