"""Why a task model decided as it did: which words, which layers, and which training examples are like it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from elmokit.base import check_whole_number, progress_display
from elmokit.errors import ConfigError, DataError
from elmokit.tasks.core.attribution import Attribution, attribute
from elmokit.tasks.core.explanation import Explanation, LayerContribution, WordContribution
from elmokit.tasks.core.inputs import WeightedLayers
from elmokit.tasks.core.labelled_files import Columns
from elmokit.tasks.core.near_examples import nearest_examples
from elmokit.tasks.core.protocol import E_in, O_in
from elmokit.tasks.core.task_model import TaskModel
from elmokit.tasks.core.text_input import TextInput
from elmokit.text import Run, Token, find_one


@dataclass(frozen=True)
class Decision:
    """Something that a model decided about an item.

    Attributes:
        label: what it decided, or could have decided.
        key: what the head needs to know, see `Head.evidence`.
        place: the tokens [start, end) of the item that it is about; None if it is about the whole item.
        of: what else it belongs to, such as the predicate of a role.
        unit: of the evidence: "log-odds", or "score" where a number is predicted.
    """

    label: str
    key: Any
    place: Run | None = None
    of: str = ""
    unit: str = "log-odds"


@runtime_checkable
class ExplainableTask(Protocol[E_in, O_in]):
    """A task whose decisions can be explained; its head has `evidence`."""

    def parts(self, item: Any) -> list[TextInput]:  # noqa: ANN401 (what `read_input` returned)
        """Return the texts of an item as they were given, whose tokens are those of `item.texts`, in order.

        A token that is read several times is there several times.
        """
        ...

    def decisions(self, item: Any, output: O_in, *, label: str | None, at: Run | None) -> list[Decision]:  # noqa: ANN401
        """Return what was decided; or one decision that is asked for by its label, its tokens, or both.

        Raises:
            ConfigError: there is no such decision.
        """
        ...

    def labelled(self, example: E_in) -> list[tuple[str, Run | None]]:
        """Return the labels of a training example with their tokens; None is the whole example."""
        ...


def explain(
    model: TaskModel[Any, Any, Any],
    given: Any,  # noqa: ANN401 (whatever the task takes)
    *,
    label: str | None = None,
    at: str | int | None = None,
    examples: str | Path | None = None,
    k: int = 5,
    format: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    progress: bool = False,
) -> list[Explanation]:
    """Explain the decisions of a model about one input by the words and layers they are made of.

    The contributions of words are integrated gradients over the vectors that the encoders give: they add up
    to what speaks for the decision, less what would if no word had a vector. A vector of ELMo or BERT knows
    its sentence, so that a word also counts for what its neighbours put into its vector.

    Args:
        model: any task model whose decisions can be explained.
        given: one input as `predict` takes it.
        label: explain this label, also one that was not chosen. By default everything that was decided.
        at: explain what was decided about a word (one that occurs once, or several) or a token, by its
            position in all texts of the input.
        examples: a labelled file, such as the training data, to find examples in that are like this one.
        k: how many of them.
        format: of that file, by its ending if not given.
        text_column: its column with the text; see `train`.
        label_column: the same for the label.
        progress: show progress on standard error, if that is a terminal.

    Raises:
        ConfigError: the task cannot be explained, or there is no such decision.
        DataError: the input has no words, or the labelled file cannot be used.

    Example:
        >>> import elmokit
        >>> ner = elmokit.load_task("ner-en")
        >>> (found,) = elmokit.explain(ner, "She lives in Paris.")
        >>> found.span, found.label, max(found.words, key=lambda word: word.contribution).text
        ('Paris', 'LOC', 'Paris')
    """
    task = model.task
    if not isinstance(task, ExplainableTask):
        raise ConfigError(
            f"the decisions of {task.name} models cannot be explained; docs/guides/add-a-task.md says what a "
            "task needs for it"
        )
    check_whole_number("k", k, least=1)
    item = model.read(given)
    if not any(item.texts):
        raise DataError("the text has no words, so there is nothing to explain; give a text with words")
    parts = task.parts(item)
    (output,) = model.decode([item])
    decisions = task.decisions(item, output, label=label, at=None if at is None else _run_of(parts, at))
    mixes = model.inputs.weighted_layers([tuple(text) for text in item.texts])
    explained = []
    with progress_display(shown=progress) as begin:
        advance = begin("decisions", len(decisions))
        for decision in decisions:
            found = attribute(model, item, mixes, decision.key)
            explained.append(_explanation(decision, parts, mixes, found))
            advance()
    if examples is None:
        return explained
    columns = Columns(text_column, label_column)
    read = model.task.formats.read(
        Path(examples), tokenize=task.formats.tokenizer(model.tokenizer), format=format, columns=columns
    )
    places = [decision.place for decision in decisions]
    prepared = task.prepare(read, allow_unseen=True)
    near = nearest_examples(model, task.labelled, item, places, prepared, k, progress=progress)
    return [replace(one, examples=own) for one, own in zip(explained, near, strict=True)]


def _run_of(parts: Sequence[TextInput], at: str | int) -> Run:
    """Return the tokens of a word, or the one at a position, counted through all texts."""
    tokens, offsets, start = [], [], 0
    for part in parts:
        tokens += part.texts[0]
        offsets += [(start + token.start, start + token.end) for token in part.tokens]
        start += len(part.text) + 1
    return find_one(tokens, offsets, at)


def _explanation(
    decision: Decision, parts: Sequence[TextInput], mixes: Sequence[WeightedLayers], found: Attribution
) -> Explanation:
    layers = [
        LayerContribution(mix.encoder, mix.place, mix.weights, shares.tolist())
        for mix, shares in zip(mixes, found.layers, strict=True)
    ]
    rows = [(number, token) for number, part in enumerate(parts) for token in part.tokens]
    shares: dict[tuple[int, Token], float] = {}
    for row, share in zip(rows, found.tokens.tolist(), strict=True):
        shares[row] = shares.get(row, 0.0) + share
    words = [
        WordContribution(parts[number].text[token.start : token.end], number, token.start, token.end, share)
        for (number, token), share in sorted(shares.items(), key=lambda pair: (pair[0][0], pair[0][1].start))
    ]
    span = ""
    if decision.place is not None:
        (number, first), (_, last) = rows[decision.place[0]], rows[decision.place[1] - 1]
        span = parts[number].text[first.start : last.end]
    return Explanation(
        label=decision.label,
        of=decision.of,
        span=span,
        probability=1 / (1 + math.exp(-found.evidence)) if decision.unit == "log-odds" else None,
        unit=decision.unit,
        evidence=found.evidence,
        without=found.without,
        error=found.error,
        texts=[part.text for part in parts],
        words=words,
        layers=layers,
    )


def refuse_at(at: Run | None, what: str) -> None:
    """Raise a ConfigError if a word was asked for, because the decisions are about something else."""
    if at is not None:
        raise ConfigError(f"{what}: do not ask about a word")


def choose(decisions: Sequence[Decision], label: str | None, at: Run | None) -> list[Decision]:
    """Return the decisions with this label that are about these tokens, as far as both are given.

    Raises:
        ConfigError: there is none.
    """
    found = [
        one
        for one in decisions
        if label in (None, one.label) and (at is None or (one.place is not None and overlap(one.place, at)))
    ]
    if not found and (label is not None or at is not None):
        known = ", ".join(dict.fromkeys(one.label for one in decisions))
        asked = "" if label is None else f" {label!r}"
        raise ConfigError(
            f"the model did not decide{asked or ' anything'}{' there' if at is not None else ''}; "
            + (f"it decided {known}: ask for one of these" if known else "it found nothing in this text")
        )
    return found


def overlap(one: Run, other: Run) -> bool:
    """Return whether two runs of tokens have a token in common."""
    return one[0] < other[1] and other[0] < one[1]
