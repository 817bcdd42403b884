"""What a head decides of one text."""

from dataclasses import dataclass, field

from elmokit.tasks.schemes import Span


@dataclass(frozen=True)
class Decision:
    """Tags, spans and labels with their probabilities; what the task does not have is empty.

    Attributes:
        tags: one for each token, in the scheme that the head learnt.
        tag_probabilities: of each of them.
        spans: in the tags, each with the probability that its tokens are tagged so.
        labels: of the whole text, those that were chosen.
        scores: the probability of every label.
    """

    tags: list[str] = field(default_factory=list)
    tag_probabilities: list[float] = field(default_factory=list)
    spans: list[tuple[Span, float]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
