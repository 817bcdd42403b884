"""What a coreference model says about one document."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import Any

from elmokit.embed import Text, refuse_unless
from elmokit.tasks.core import Decision, choose, plain_data
from elmokit.tasks.coreference.data import Question, split_tokens
from elmokit.tasks.coreference.head import LinkedMentions
from elmokit.text import Run, Token, Tokenizer, tokens_from_list

_TERMINAL = (31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96)  # codes of colours in a terminal
_GOLDEN_ANGLE = 137.5  # degrees; colours of neighbouring numbers differ


@dataclass(frozen=True)
class DocumentInput:
    """A document with the tokens of its sentences and their places."""

    text: str
    sentences: list[list[Token]]

    @classmethod
    def read(cls, given: Text | Sequence[Sequence[str]], tokenize: Tokenizer) -> "DocumentInput":
        """Read running text, which is split into sentences; a list of tokens; or a list of such sentences.

        Raises:
            ConfigError: it is none of these.
        """
        if isinstance(given, str):
            return cls(given, split_tokens(given, tokenize(given)))
        refuse_unless(given, Sequence, "a text, a list of tokens, or a list of sentences")
        if given and not isinstance(given[0], str):
            texts = [list(sentence) for sentence in given]
        else:
            texts = [[str(word) for word in given]]
        words = tokens_from_list(list(chain.from_iterable(texts)))
        places = iter(words)
        sentences = [[next(places) for _ in text] for text in texts]
        return cls(" ".join(word.text for word in words), [sentence for sentence in sentences if sentence])

    @property
    def texts(self) -> list[list[str]]:
        """The tokens of each sentence."""
        return [[token.text for token in sentence] for sentence in self.sentences]


@dataclass(frozen=True)
class FoundMention:
    """A part of the text, `text[start:end]`, that mentions something, and the probability that it does."""

    text: str
    start: int
    end: int
    probability: float


@dataclass(frozen=True)
class CoreferencePrediction:
    """A document with clusters of mentions.

    Attributes:
        text: as given (tokens that were given as lists are joined by blanks).
        sentences: the tokens of each sentence.
        clusters: the mentions of each thing or person, in the order of the text.
    """

    text: str
    sentences: list[list[str]]
    clusters: list[list[FoundMention]]

    def __str__(self) -> str:
        """Return the text with its mentions in brackets, each with the number of its cluster."""
        return self._marked(lambda number: f"[{number} ", lambda number: "]")

    def coloured(self) -> str:
        """Return the same for a terminal, each cluster in a colour of its own."""
        return self._marked(
            lambda number: f"\x1b[{_TERMINAL[(number - 1) % len(_TERMINAL)]}m[{number}\x1b[0m ",
            lambda number: f"\x1b[{_TERMINAL[(number - 1) % len(_TERMINAL)]}m]\x1b[0m",
        )

    def html(self) -> str:
        """Return a paragraph of HTML, each cluster on a ground of its own colour."""

        def opening(number: int) -> str:
            style = (
                f"background:hsl({number * _GOLDEN_ANGLE % 360:.0f} 70% 85%);border-radius:3px;padding:0 2px"
            )
            return f'<span style="{style}" data-cluster="{number}"><sub>{number}</sub>'

        return f"<p>{self._marked(opening, lambda number: '</span>', escape)}</p>"

    def table(self) -> str:
        """Return a line for each cluster with its mentions."""
        return "\n".join(
            f"{number:>3}  {' | '.join(mention.text for mention in cluster)}"
            for number, cluster in enumerate(self.clusters, start=1)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with probabilities rounded to four places."""
        return plain_data(self)

    def _marked(self, opening: Any, closing: Any, escaped: Any = str) -> str:  # noqa: ANN401 (functions)
        """Return the text with marks around mentions, of which the longer ones are opened first."""
        marks: dict[int, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}
        for number, cluster in enumerate(self.clusters, start=1):
            for mention in cluster:
                marks.setdefault(mention.start, ([], []))[0].append((-mention.end, number))
                marks.setdefault(mention.end, ([], []))[1].append((-mention.start, number))
        shown, at = [], 0
        for place in sorted(marks):
            shown.append(escaped(self.text[at:place]))
            opened, closed = marks[place]
            shown += [closing(number) for _, number in sorted(closed)]
            shown += [opening(number) for _, number in sorted(opened)]
            at = place
        return "".join([*shown, escaped(self.text[at:])])


def present_clusters(item: DocumentInput, output: LinkedMentions) -> CoreferencePrediction:
    """Return the clusters with the places of their mentions in the text."""
    tokens = list(chain.from_iterable(item.sentences))
    clusters = []
    for cluster in output.clusters:
        places = [
            (tokens[start].start, tokens[end - 1].end, output.probabilities[start, end])
            for start, end in cluster
        ]
        clusters.append([FoundMention(item.text[start:end], start, end, p) for start, end, p in places])
    return CoreferencePrediction(item.text, item.texts, clusters)


def link_decisions(
    item: DocumentInput, output: LinkedMentions, *, label: str | None, at: Run | None
) -> list[Decision]:
    """Return for each mention but the first of a cluster that it means the same as those before it."""
    tokens = list(chain.from_iterable(item.sentences))
    made = []
    for cluster in output.clusters:
        (start, end), *_ = mentions = sorted(cluster)
        name = item.text[tokens[start].start : tokens[end - 1].end]
        for number, mention in enumerate(mentions[1:], start=1):
            made.append(Decision(name, Question(mention, tuple(mentions[:number])), mention))
    return choose(made, label, at)
