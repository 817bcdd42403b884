"""The head for intents with slots: a classifier and a tagger over the same vectors, trained together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from elmokit.tasks.classifier import ClassifierHead, PredictedLabels, TokenPooling
from elmokit.tasks.core import Hidden, Item
from elmokit.tasks.intent.data import IntentText
from elmokit.tasks.tagger import PredictedTags, TaggerHead, TaggerHeadSettings, TaggerSettings, TagRun


@dataclass(frozen=True, kw_only=True)
class IntentHeadSettings(TaggerHeadSettings):
    """The settings of a tagger's head, and how the vectors of the tokens become one for the intent."""

    pooling: TokenPooling = "attention"


@dataclass(frozen=True, kw_only=True)
class IntentSettings(TaggerSettings):
    """All settings of an intent model."""

    head: IntentHeadSettings = field(default_factory=IntentHeadSettings)


@dataclass(frozen=True)
class PredictedIntent:
    """The slots and the intent of one text."""

    slots: PredictedTags
    intent: PredictedLabels


class IntentHead(nn.Module):
    """An intent for the text and slots for its tokens; the two losses are added."""

    def __init__(self, intents: ClassifierHead, slots: TaggerHead) -> None:
        super().__init__()
        self.intents = intents
        self.slots = slots

    def loss(self, hidden: Hidden, examples: Sequence[IntentText]) -> Tensor:
        """Return the mean loss of an intent plus the mean loss of a slot tag."""
        intents = self.intents.loss(hidden, [example.intent for example in examples])
        return intents + self.slots.loss(hidden, [example.slots for example in examples])

    def decode(self, hidden: Hidden, items: Sequence[Item]) -> list[PredictedIntent]:
        """Return the outputs of both heads."""
        pairs = zip(self.slots.decode(hidden, items), self.intents.decode(hidden, items), strict=True)
        return [PredictedIntent(slots, intent) for slots, intent in pairs]

    def evidence(self, hidden: Hidden, items: Sequence[Item], key: int | TagRun) -> Tensor:
        """Return the log-odds of an intent, by its number, or of a slot, (B,)."""
        if isinstance(key, TagRun):
            return self.slots.evidence(hidden, items, key)
        return self.intents.evidence(hidden, items, key)
