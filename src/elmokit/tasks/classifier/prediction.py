"""What a classifier says about one text."""

from dataclasses import dataclass
from typing import Any

from elmokit.tasks.core import plain_data


@dataclass(frozen=True)
class ClassifierPrediction:
    """A text with its labels.

    Attributes:
        text: as given (tokens that were given as a list are joined by blanks).
        tokens: of the text.
        offsets: start and end of each token in the text.
        labels: the one that was chosen, or several; none for a text without tokens.
        scores: the probability of every label.
    """

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    labels: list[str]
    scores: dict[str, float]

    @property
    def label(self) -> str | None:
        """The first label, which is the only one unless a text may have several."""
        return self.labels[0] if self.labels else None

    def __str__(self) -> str:
        """Return a line for people: the labels with their probabilities, and the text."""
        return f"{labels_text(self.labels, self.scores)}\t{self.text}".rstrip("\t")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with probabilities rounded to four places."""
        return plain_data(self)


def labels_text(labels: list[str], scores: dict[str, float]) -> str:
    """Return the labels with their probabilities, for people."""
    return ", ".join(f"{label} ({scores[label]:.2f})" for label in labels)
