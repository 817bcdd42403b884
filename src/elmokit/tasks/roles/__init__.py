"""Semantic roles: who did what to whom, when and where, for each predicate of a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.errors import DataError
from elmokit.tasks.core import (
    Decision,
    Scores,
    TaskModel,
    TextInput,
    by_frequency,
    check_labels,
    warn_of_labels,
)
from elmokit.tasks.roles.data import FORMATS, Frame, FramedSentence
from elmokit.tasks.roles.head import PredictedFrame, RolesHead, RolesHeadSettings, RolesSettings
from elmokit.tasks.roles.prediction import (
    RoleFrame,
    RolesInput,
    RolesPrediction,
    frame_decisions,
    present_frames,
)
from elmokit.tasks.roles.scores import arguments_of, score_roles
from elmokit.tasks.tagger import OUTSIDE, find_spans, kind_of, labelled_spans
from elmokit.text import Run

__all__ = [
    "Frame", "FramedSentence", "PredictedFrame", "RoleFrame", "RoleLabeller", "RolesHead",
    "RolesHeadSettings", "RolesInput", "RolesPrediction", "RolesSettings", "RolesTask", "arguments_of",
    "score_roles",
]  # fmt: skip


@dataclass(frozen=True)
class RolesTask:
    """Semantic roles with a known tag set; see `Task`.

    Attributes:
        settings: of encoders, head and training.
        tags: BIO, the most frequent first.
    """

    name = "roles"
    formats = FORMATS
    read_input = staticmethod(RolesInput.read)
    settings_type = RolesSettings

    settings: RolesSettings
    tags: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls, settings: RolesSettings, examples: Sequence[FramedSentence]
    ) -> tuple["RolesTask", list[FramedSentence]]:
        """Find the tags of the training data."""
        frames = [frame for example in examples for frame in example.frames]
        if not frames:
            raise DataError(f"{examples[0].where}: no sentence has a predicate, so there is nothing to learn")
        warn_of_labels([[span.label for span in find_spans(f.tags)] for f in frames], examples[0].where)
        return cls(settings, by_frequency(frame.tags for frame in frames)), list(examples)

    def prepare(self, examples: Sequence[FramedSentence], *, allow_unseen: bool) -> list[FramedSentence]:
        """Check the roles."""
        if not allow_unseen:
            known = [OUTSIDE, *(kind_of(tag, "BIO") for tag in self.tags)]
            kinds = (
                (example.where, [kind_of(tag, "BIO") for frame in example.frames for tag in frame.tags])
                for example in examples
            )
            check_labels(kinds, known)
        return list(examples)

    def make_head(self, dim: int, examples: Sequence[FramedSentence] = ()) -> RolesHead:
        """Build the head that finds predicates and tags their roles."""
        return RolesHead(dim, self.tags, self.settings.head)

    def score(
        self,
        examples: Sequence[FramedSentence],
        outputs: Sequence[list[PredictedFrame]],
        *,
        strict: bool = False,
    ) -> Scores:
        """Return F1 of the arguments by CoNLL-2005's rules; all tags are legal, also without `strict`."""
        return score_roles(examples, outputs)

    def describe(self, example: FramedSentence, output: list[PredictedFrame]) -> tuple[str, str]:
        """Return the true and the predicted arguments of each true predicate."""
        predicted = {frame.predicate: frame.tags.tags for frame in output}
        return (
            _in_words(example.tokens, example.frames),
            _in_words(example.tokens, [Frame(p, tuple(predicted[p])) for p in example.predicates]),
        )

    def present(self, item: RolesInput, output: list[PredictedFrame]) -> RolesPrediction:
        """Return frames with the places of their roles in the text."""
        return present_frames(item, output)

    def parts(self, item: RolesInput) -> list[TextInput]:
        """Return the text."""
        return [item]

    def decisions(
        self, item: RolesInput, output: list[PredictedFrame], *, label: str | None, at: Run | None
    ) -> list[Decision]:
        """Return predicates and roles, or those that are asked for."""
        return frame_decisions(item, output, label=label, at=at)

    def labelled(self, example: FramedSentence) -> list[tuple[str, Run | None]]:
        """Return the predicates and the roles around them."""
        return [place for frame in example.frames for place in labelled_spans(frame.tags, "BIO")]


def _in_words(tokens: Sequence[str], frames: Sequence[Frame]) -> str:
    shown = []
    for frame in frames:
        arguments = (
            f"{role}:{' … '.join(' '.join(tokens[start:end]) for start, end in pieces)}@{pieces[0][0]}"
            for role, pieces in arguments_of(frame.tags)
        )
        shown.append(" | ".join([f"{tokens[frame.predicate]}@{frame.predicate}", *arguments]))
    return " || ".join(shown)


class RoleLabeller(TaskModel[FramedSentence, list[PredictedFrame], RolesPrediction]):
    """A model that finds the predicates of a sentence and the roles around each.

    Example:
        >>> print(RoleLabeller.load("roles").predict("Ada sold Grace a book."))        # doctest: +SKIP
        [ARG0 Ada] [V sold] [ARG2 Grace] [ARG1 a book].
    """

    task_type = RolesTask


MODEL = RoleLabeller
