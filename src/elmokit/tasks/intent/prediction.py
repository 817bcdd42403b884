"""What an intent model says about one text."""

from dataclasses import dataclass

from elmokit.tasks.classifier import labels_text
from elmokit.tasks.tagger import TaggerPrediction


@dataclass(frozen=True)
class IntentPrediction(TaggerPrediction):
    """A text with its slots (`spans`) and its intent.

    Attributes:
        labels: the intent, as the only label; none for a text without tokens.
        scores: the probability of every intent.
    """

    labels: list[str]
    scores: dict[str, float]

    @property
    def label(self) -> str | None:
        """The intent."""
        return self.labels[0] if self.labels else None

    def __str__(self) -> str:
        """Return a line for people: the intent, and the text with its slots in brackets."""
        return f"{labels_text(self.labels, self.scores)}\t{super().__str__()}".rstrip("\t")
