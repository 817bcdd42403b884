"""The head for intents with slots: a classifier and a tagger over the same vectors, learnt together."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor, nn

from elmokit.tasks.classifier import ClassifierHead
from elmokit.tasks.decisions import Decision
from elmokit.tasks.examples import Example
from elmokit.tasks.rnn import Hidden
from elmokit.tasks.tagger import TaggerHead


class IntentHead(nn.Module):
    """An intent for the text, slots for its tokens; the losses are added."""

    def __init__(self, intents: ClassifierHead, slots: TaggerHead) -> None:
        super().__init__()
        self.intents = intents
        self.slots = slots

    def loss(self, hidden: Hidden, examples: Sequence[Example]) -> Tensor:
        """Mean loss of an intent and mean loss of a slot tag."""
        return self.intents.loss(hidden, examples) + self.slots.loss(hidden, examples)

    def decide(self, hidden: Hidden) -> list[Decision]:
        """What both say."""
        pairs = zip(self.slots.decide(hidden), self.intents.decide(hidden), strict=True)
        return [replace(slots, labels=intent.labels, scores=intent.scores) for slots, intent in pairs]
