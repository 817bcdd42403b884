"""Continue sentences with a forward language model, by the searches of `elmokit.decoding`.

Shapes: R rows, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from elmokit.base import check_whole_number
from elmokit.decoding import Constraints, beam_search, new_generator, sample_sequences
from elmokit.embed import Text
from elmokit.model import LayerState
from elmokit.text import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, SPECIAL_TOKENS, Vocabulary


class ForwardModel(Protocol):
    """What a language model offers to generate sentences."""

    vocabulary: Vocabulary

    def tokens(self, text: Text) -> list[str]:
        """Tokenise a string; return a list of tokens as it is."""
        ...

    def predict_next(
        self, rows: Sequence[Sequence[str]], state: Sequence[LayerState] | None = None
    ) -> tuple[Tensor, Sequence[LayerState]]:
        """Read rows of words on from a state; return log p (R, V) of the next words, and the new state."""
        ...


@dataclass(frozen=True)
class Continuation:
    """A sentence that begins with a prompt.

    Attributes:
        tokens: those of the prompt and the new ones.
        log_probability: of the new ones and the end, given the prompt.
        score: the same with the length penalty of `elmokit.decoding.beam_search`.
    """

    tokens: list[str]
    log_probability: float
    score: float


@dataclass(frozen=True)
class ReadRows:
    """The words of each row, and the model's state after all that it has read; none if it carries none."""

    words: tuple[tuple[str, ...], ...]
    layers: tuple[LayerState, ...] = ()
    begun: bool = False

    def rows(self, index: Tensor) -> "ReadRows":
        """Return the rows `index`."""
        words = tuple(self.words[row] for row in index.tolist())
        return ReadRows(words, tuple(layer.rows(index) for layer in self.layers), self.begun)


def sampled_continuation(
    model: ForwardModel,
    prompt: Text,
    *,
    generator: torch.Generator | None,
    temperature: float,
    top_p: float,
    max_tokens: int,
    no_repeat: int,
) -> list[str]:
    """Sample a sentence; see `LanguageModel.generate`."""
    tokens = model.tokens(prompt)
    (found,) = sample_sequences(
        **_search(model, tokens, max_tokens, no_repeat),
        generators=[new_generator() if generator is None else generator],
        temperature=temperature,
        top_p=top_p,
    )
    return [*tokens, *(model.vocabulary.tokens[number] for number in found.tokens)]


def continuations(
    model: ForwardModel,
    prompt: Text = (),
    *,
    beam: int = 5,
    length_penalty: float = 1.0,
    max_tokens: int = 30,
    no_repeat: int = 0,
) -> list[Continuation]:
    """Find likely continuations of a sentence by beam search.

    Args:
        model: a `LanguageModel`.
        prompt: how the sentence begins, a string or a list of tokens; may be empty.
        beam: how many beginnings are kept.
        length_penalty: 0 prefers short sentences; see `elmokit.decoding.beam_search`.
        max_tokens: how many new tokens a sentence has at most.
        no_repeat: no run of so many new tokens occurs twice; 0 for no such rule.

    Returns:
        At most `beam` sentences, the best first.

    Raises:
        ConfigError: a number is out of range.
    """
    tokens = model.tokens(prompt)
    (found,) = beam_search(
        **_search(model, tokens, max_tokens, no_repeat), beam=beam, length_penalty=length_penalty
    )
    words = model.vocabulary.tokens
    return [
        Continuation([*tokens, *(words[number] for number in one.tokens)], one.log_probability, one.score)
        for one in found
    ]


def words_in(vocabulary: Vocabulary) -> list[bool]:
    """Return for each row whether it is a word: no special token, empty line or repetition."""
    return [
        bool(token) and token not in SPECIAL_TOKENS and vocabulary.id(token) == row
        for row, token in enumerate(vocabulary.tokens)
    ]


def _search(model: ForwardModel, tokens: list[str], max_tokens: int, no_repeat: int) -> dict[str, Any]:
    """Return the arguments that all searches share."""
    check_whole_number("max_tokens", max_tokens, least=0)
    vocabulary = model.vocabulary
    end = vocabulary.id(END_SENTENCE_TOKEN)
    refused = tuple(row for row, known in enumerate(words_in(vocabulary)) if not known and row != end)

    def step(last: Tensor, state: ReadRows) -> tuple[Tensor, ReadRows]:
        words = state.words
        new: Sequence[Sequence[str]] = words
        if state.begun:  # before the first word the prompts are read
            added = [vocabulary.tokens[number] for number in last.tolist()]
            words = tuple((*row, word) for row, word in zip(words, added, strict=True))
            new = [[word] for word in added] if state.layers else words  # without a state, all is read again
        logs, layers = model.predict_next(new, state.layers or None)
        return logs.cpu(), ReadRows(words, tuple(layers), True)

    return {
        "step": step,
        "state": ReadRows(((BEGIN_SENTENCE_TOKEN, *tokens),)),
        "begin": end,
        "end": end,
        "most": [max_tokens],
        "constraints": Constraints(banned=refused, no_repeat=no_repeat),
    }
