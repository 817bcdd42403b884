"""One labelled sentence or text, and where it stands."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.schemes import OUTSIDE, SPAN_SCHEMES, Scheme, fitting_schemes, has_kind

logger = logging.getLogger(__name__)

Task = Literal["tagger", "classifier", "intent"]
TASKS: tuple[Task, ...] = get_args(Task)

_SLIPS = 0.05  # the share of sentences that may be of another scheme than the rest

Cut = Callable[[str], Sequence[str]]  # running text into tokens


@dataclass(frozen=True)
class Example:
    """A text with its labels.

    Attributes:
        tokens: of the text.
        tags: one for each token; none for a classifier.
        labels: of the whole text: its class or classes, or its intent; none for a tagger.
        where: file and line, for messages.
    """

    tokens: tuple[str, ...]
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    where: str = ""


def check_task(name: str) -> Task:
    """Return the name of a task as such.

    Raises:
        ConfigError: there is no such task.
    """
    for task in TASKS:
        if task == name:
            return task
    raise ConfigError(f"{name!r} is no task; expected one of {', '.join(TASKS)}")


def scheme_of(examples: Sequence[Example], known: Scheme | None = None) -> Scheme:
    """The scheme of the tags, or a look whether it is the `known` one.

    Published data have slips (CoNLL-2003 too), so a few sentences may differ: they are read by conlleval's
    rules, and a warning says how many there are.

    Raises:
        DataError: a tag is of no scheme, or more than a few sentences are of another one; the message names
            the place.
    """
    tagged = [example for example in examples if set(example.tags) - {OUTSIDE}]
    if known == "plain" or (known is None and _without_spans(examples)):
        if known is None and any(OUTSIDE in example.tags for example in examples):
            logger.warning(
                "%s: no tag has the form of B-PER, so these are no spans: each token is labelled by itself, "
                "and %r is a label as others are",
                examples[0].where, OUTSIDE,
            )  # fmt: skip
        return "plain"
    for example in tagged:
        strange = next((tag for tag in example.tags if not has_kind(tag)), None)
        if strange is not None:
            raise DataError(
                f"{example.where}: tag {strange!r} is of no scheme; expected O or, for example, B-PER"
            )
    candidates = SPAN_SCHEMES if known is None else (known,)
    fitting = [set(fitting_schemes(example.tags, candidates)) for example in tagged]
    best = max(candidates, key=lambda scheme: sum(scheme in fits for fits in fitting))
    others = [example for example, fits in zip(tagged, fitting, strict=True) if best not in fits]
    if len(others) > _SLIPS * len(tagged):
        raise DataError(
            f"{others[0].where}: the tags {' '.join(others[0].tags):.80} are not of the scheme {best}, nor "
            f"are those of {len(others) - 1} more of {len(tagged)} sentences; bring all files to one scheme"
        )
    if others:
        logger.warning(
            "%s: tags are not quite of the scheme %s (%d of %d sentences); read by conlleval's rules",
            others[0].where, best, len(others), len(tagged),
        )  # fmt: skip
    return best


def _without_spans(examples: Sequence[Example]) -> bool:
    """Whether the tags are of no span scheme: none has a kind, or there is no "O" and some have none."""
    tags = {tag for example in examples for tag in example.tags}
    others = tags - {OUTSIDE}
    if OUTSIDE in tags:  # bare letters are spans whose kinds were forgotten
        return not any(map(has_kind, others)) and not others <= set("BIMES")
    return not all(map(has_kind, others))


def kind_of(tag: str, scheme: Scheme) -> str:
    """What a tag says: the kind of its span, or the tag itself where there are no spans."""
    return tag if scheme == "plain" or tag == OUTSIDE else tag.partition("-")[2]


def check_labels(
    examples: Iterable[Example], known: Iterable[str], of: Callable[[Example], Iterable[str]]
) -> None:
    """See that no label is new.

    Args:
        examples: to look at.
        known: the labels of the training data.
        of: what to look at in an example.

    Raises:
        DataError: one is new; the message names the place.
    """
    known = set(known)
    for example in examples:
        new = next((label for label in of(example) if label not in known), None)
        if new is not None:
            raise DataError(
                f"{example.where}: label {new!r} does not occur in the training data, which has "
                f"{', '.join(sorted(known)):.100}; correct it, or let it count as an error (--allow-unseen)"
            )
