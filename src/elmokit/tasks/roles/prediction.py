"""What a model of semantic roles says about one text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elmokit.errors import ConfigError
from elmokit.tasks.core import Decision, TextInput, choose, overlap, plain_data
from elmokit.tasks.roles.data import VERB
from elmokit.tasks.roles.head import PredictedFrame
from elmokit.tasks.tagger import LabelledSpan, TagRun
from elmokit.text import Run, Tokenizer


@dataclass(frozen=True)
class RolesInput(TextInput):
    """A text, and the positions of its predicates if they are given."""

    predicates: tuple[int, ...] | None = None

    @classmethod
    def read(cls, given: Any, tokenize: Tokenizer) -> "RolesInput":  # noqa: ANN401 (checked here)
        """Read a string, a list of tokens, or {"text" or "tokens": …, "predicates": [positions]}.

        Raises:
            ConfigError: it is none of these, or a predicate is not among the tokens.
        """
        predicates = None
        if isinstance(given, Mapping):
            unknown = given.keys() - {"text", "tokens", "predicates"}
            if unknown or len(given.keys() & {"text", "tokens"}) != 1:
                raise ConfigError(
                    'expected "text" or "tokens", and "predicates" (positions of tokens) if they are known; '
                    f"found {', '.join(map(str, given)) or 'nothing'}"
                )
            predicates = given.get("predicates")
            given = given.get("text", given.get("tokens"))
        read = TextInput.read(given, tokenize)
        if predicates is None:
            return cls(read.text, read.tokens)
        positions = range(len(read.tokens))
        if not isinstance(predicates, Sequence) or not all(one in positions for one in predicates):
            raise ConfigError(
                f"predicates are {predicates!r:.60}, expected positions from 0 to {len(positions) - 1} in "
                f"the {len(positions)} tokens"
            )
        return cls(read.text, read.tokens, tuple(sorted(set(predicates))))


@dataclass(frozen=True)
class RoleFrame:
    """The roles around one predicate.

    Attributes:
        predicate: the word.
        position: which token it is.
        start, end: its place in the text.
        probability: that it is a predicate.
        roles: the arguments in the order of the text, pieces of an argument (C-ARG1) each for itself; V is
            the predicate.
        tags: BIO, one for each token.
    """

    predicate: str
    position: int
    start: int
    end: int
    probability: float
    roles: list[LabelledSpan]
    tags: list[str]

    def brackets(self, text: str) -> str:
        """Return the text with its roles in brackets."""
        shown, at = "", 0
        for span in self.roles:
            shown += f"{text[at : span.start]}[{span.label} {span.text}]"
            at = span.end
        return shown + text[at:]


@dataclass(frozen=True)
class RolesPrediction:
    """A text with the frames of its predicates.

    Attributes:
        text: as given (tokens that were given as a list are joined by blanks).
        tokens: of the text.
        offsets: start and end of each token in the text.
        frames: one for each predicate, in the order of the text.
    """

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    frames: list[RoleFrame]

    def __str__(self) -> str:
        """Return a line for each predicate, with the roles in brackets; the bare text if there is none."""
        return "\n".join(frame.brackets(self.text) for frame in self.frames) or self.text

    def table(self) -> str:
        """Return a table for people: each predicate, and below it a line for each of its roles."""
        lines = []
        for frame in self.frames:
            lines.append(f"{frame.predicate}  ({frame.probability:.2f})")
            roles = [span for span in frame.roles if span.label != VERB]
            width = max((len(span.label) for span in roles), default=0)
            lines += [f"  {span.label:<{width}}  {span.probability:.2f}  {span.text}" for span in roles]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with probabilities rounded to four places."""
        return plain_data(self)


def frame_decisions(
    item: RolesInput, frames: Sequence[PredictedFrame], *, label: str | None, at: Run | None
) -> list[Decision]:
    """Return the predicates that were found and the roles around them, or those that are asked for.

    Args:
        item: the text.
        frames: of its predicates.
        label: a role.
        at: a predicate, with all its roles, or the words of a role.
    """
    made = []
    for frame in _asked(item, frames):
        place, word = (frame.predicate, frame.predicate + 1), item.tokens[frame.predicate].text
        own = [Decision(VERB, (frame.predicate, None), place)]
        for span, _ in frame.tags.spans:
            tags = tuple((tag,) for tag in frame.tags.tags[span.start : span.end])
            if span.label != VERB:
                key = (frame.predicate, TagRun(span.start, tags))
                own.append(Decision(span.label, key, (span.start, span.end), of=word))
        if at is not None and not overlap(place, at):
            own = [one for one in own if one.place is not None and overlap(one.place, at)]
        made += own
    return choose(made, label, None) if made or at is None else choose(made, label, at)


def _asked(item: RolesInput, frames: Sequence[PredictedFrame]) -> list[PredictedFrame]:
    """Return the frames of the predicates that were given or, if none were, of those that were found."""
    return [frame for frame in frames if item.predicates is None or frame.predicate in item.predicates]


def present_frames(item: RolesInput, frames: Sequence[PredictedFrame]) -> RolesPrediction:
    """Return the frames of the predicates that were given or, if none were, of those that were found."""
    shown = []
    for frame in _asked(item, frames):
        roles = []
        for span, probability in frame.tags.spans:
            start, end = item.tokens[span.start].start, item.tokens[span.end - 1].end
            roles.append(LabelledSpan(item.text[start:end], start, end, span.label, probability))
        token = item.tokens[frame.predicate]
        place = (token.text, frame.predicate, token.start, token.end)
        shown.append(RoleFrame(*place, frame.probability, roles, frame.tags.tags))
    return RolesPrediction(**item.fields(), frames=shown)
