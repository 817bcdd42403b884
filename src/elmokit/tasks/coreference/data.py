"""Documents whose mentions are marked, and their formats.

conll    lines "#begin document NAME"; a word a line, in columns (tabs or blanks), of which the last one has
         brackets such as (3, 3) and (3); an empty line between sentences. The word is in the second column,
         or in the fourth of five or more (CoNLL-2012).
gap      the table of GAP: a text with a pronoun and two names, of which one or none is meant by the pronoun
"""

import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from pathlib import Path

from elmokit.base import parse_count, shown
from elmokit.errors import DataError
from elmokit.tasks.core import Formats, Tokenize, numbered_lines
from elmokit.text import Token

logger = logging.getLogger(__name__)

Mention = tuple[int, int]  # the tokens [start, end) of the document

_BEGIN = re.compile(r"#\s?begin document\s*(.*)")
_BRACKET = re.compile(r"\(([^()|\s]+)\)|\(([^()|\s]+)|([^()|\s]+)\)|\|")
_NO_MENTION = ("", "_", "-", "*")
_SLIPS = (
    0.01  # the share of mentions that may cross others or belong to two entities: published data have some
)
_MOST_OPEN = 100  # entities at one word; published data have some ten
_SENTENCE_END = re.compile(r"[.!?。！？…]+")
_CLOSING = re.compile(r"[\"'”’)\]»」』）]+")
_GAP = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")


@dataclass(frozen=True)
class Question:
    """Whom a pronoun means: of each candidate whether it is the one."""

    pronoun: Mention
    candidates: tuple[Mention, ...]
    answers: tuple[bool, ...] = ()


@dataclass(frozen=True)
class CorefDocument:
    """The sentences of a document and its clusters of mentions; or a question, if one pronoun is marked."""

    texts: tuple[tuple[str, ...], ...]
    clusters: tuple[tuple[Mention, ...], ...] = ()
    question: Question | None = None
    where: str = field(default="", repr=False)

    @property
    def tokens(self) -> list[str]:
        """The tokens of all sentences."""
        return list(chain.from_iterable(self.texts))


def split_tokens(text: str, tokens: Sequence[Token]) -> list[list[Token]]:
    """Group the tokens of a text into sentences, which end at stops and at blank lines.

    A tokenizer that leaves stops on their words (white space alone) gives one sentence for each paragraph.
    """
    sentences: list[list[Token]] = [[]]
    for token in tokens:
        now = sentences[-1]
        if now:
            ended = any(_SENTENCE_END.fullmatch(before.text) for before in now[-3:])
            closing = _CLOSING.fullmatch(token.text) or _SENTENCE_END.fullmatch(token.text)
            after_stop = ended and all(
                _SENTENCE_END.fullmatch(before.text) or _CLOSING.fullmatch(before.text) for before in now[-1:]
            )
            if (after_stop and not closing) or "\n\n" in text[now[-1].end : token.start]:
                sentences.append([])
        sentences[-1].append(token)
    return [sentence for sentence in sentences if sentence]


def _read_conll(path: Path, tokenize: Tokenize) -> Iterator[CorefDocument]:
    document: _Brackets | None = None
    slips = mentions = 0
    first_slip = ""
    for where, line in chain(numbered_lines(path), [(f"{path}, its end", "#begin document")]):
        if _BEGIN.match(line):
            if document is not None:
                yield document.finished()
                first_slip = first_slip or document.first_slip
                slips += document.slips
                mentions += document.mentions
            document = _Brackets(where)
        elif not line.strip():
            if document is not None:
                document.end_sentence()
        elif not line.startswith(("#end document", "# end document")):
            if document is None:
                raise DataError(
                    f'{where}: expected a line "#begin document NAME" before the first word, found '
                    f"{line!r:.60}; is it a file with coreference brackets?"
                )
            document.add(where, line)
    if slips > _SLIPS * mentions:
        raise DataError(f"{first_slip}; {slips} of {mentions} mentions are like that; repair the brackets")
    if slips:
        logger.warning("%s (%d of %d mentions are like that)", first_slip, slips, mentions)


class _Brackets:
    """One document as it is read, line by line."""

    def __init__(self, where: str) -> None:
        self.first_slip = ""
        self.slips = self.mentions = 0
        self._where = where
        self._sentences: list[list[str]] = [[]]
        self._count = 0  # of the words so far
        self._open: dict[str, list[tuple[int, str]]] = {}  # entity → starts and their places
        self._entity_of: dict[Mention, str] = {}

    def add(self, where: str, line: str) -> None:
        """Add a word with its brackets."""
        fields = line.split("\t") if "\t" in line else line.split()
        column = 1 if len(fields) < 5 else 3
        brackets = fields[-1].strip()
        if len(fields) >= 3 and not fields[column] and brackets in _NO_MENTION:
            logger.warning("%s: the word is empty and is left out", where)
            return
        if len(fields) < 3 or not fields[column]:
            raise DataError(
                f"{where}: expected a number, a word and its brackets in three columns or more, found "
                f"{line!r:.60}; repair the line or remove the document"
            )
        self._sentences[-1].append(fields[column])
        if brackets not in _NO_MENTION:
            self._read_brackets(where, brackets)
        self._count += 1

    def _read_brackets(self, where: str, brackets: str) -> None:
        found = list(_BRACKET.finditer(brackets))
        if sum(len(match.group()) for match in found) != len(brackets):
            raise DataError(f"{where}: {brackets!r} are no brackets; expected for example (3, 3) or (1|(2)")
        closing: list[tuple[Mention, str]] = []
        for single, opened, closed in (match.groups() for match in found):
            if opened:
                self._open.setdefault(opened, []).append((self._count, where))
                if len(self._open) > _MOST_OPEN:
                    raise DataError(f"{where}: more than {_MOST_OPEN} mentions are open; repair the brackets")
            elif closed and closed not in self._open:
                raise DataError(f"{where}: {closed}) closes a mention that was not opened in this sentence")
            elif single or closed:
                start = self._close(closed) if closed else self._count
                closing.append(((start, self._count + 1), single or closed))
        for mention, entity in closing:
            self.mentions += 1
            self._check(where, mention, entity)

    def _close(self, entity: str) -> int:
        """Return where the mention of an entity began that was opened last."""
        starts = self._open[entity]
        start, _ = starts.pop()
        if not starts:
            del self._open[entity]
        return start

    def _check(self, where: str, mention: Mention, entity: str) -> None:
        """Note a mention, and whether it is that of two entities or crosses one that is still open."""
        other = self._entity_of.setdefault(mention, entity)
        if other != entity:
            self._slip(f"{where}: a mention belongs to both entities {other} and {entity}")
        for name, starts in self._open.items():
            if starts[-1][0] > mention[0]:
                self._slip(f"{where}: mentions of the entities {entity} and {name} cross")

    def _slip(self, message: str) -> None:
        self.first_slip = self.first_slip or message
        self.slips += 1

    def end_sentence(self) -> None:
        """Begin a new sentence; no mention may go on in it."""
        for entity, starts in self._open.items():
            for _, opened in starts:
                raise DataError(f"{opened}: the mention ({entity} is not closed in its sentence")
        if self._sentences[-1]:
            self._sentences.append([])

    def finished(self) -> CorefDocument:
        """Return the document."""
        self.end_sentence()
        sentences = tuple(tuple(sentence) for sentence in self._sentences if sentence)
        if not sentences:
            raise DataError(f"{self._where}: the document has no words; remove it")
        clusters: dict[str, list[Mention]] = defaultdict(list)
        for mention, entity in sorted(self._entity_of.items()):
            clusters[entity].append(mention)
        return CorefDocument(sentences, tuple(map(tuple, clusters.values())), where=self._where)


def _read_gap(path: Path, tokenize: Tokenize) -> Iterator[CorefDocument]:
    lines = numbered_lines(path)
    where, header = next(lines, (str(path), ""))
    columns = header.split("\t")
    missing = [name for name in _GAP if name not in columns]
    if missing:
        raise DataError(
            f"{where}: the header has no {', '.join(missing)}; expected the columns of GAP, "
            f"found {', '.join(columns):.100}"
        )
    for where, line in lines:
        cells = line.split("\t")
        if not line.strip():
            continue
        if len(cells) != len(columns):
            raise DataError(f"{where}: found {len(cells)} columns, expected {len(columns)} as in the header")
        yield _gap_document(dict(zip(columns, cells, strict=True)), tokenize, where)


def _gap_document(row: dict[str, str], tokenize: Tokenize, where: str) -> CorefDocument:
    sentences = split_tokens(row["Text"], tokenize(row["Text"]))
    tokens = list(chain.from_iterable(sentences))
    mentions = [_gap_mention(row, name, tokens, where) for name in ("Pronoun", "A", "B")]
    answers = []
    for name in ("A-coref", "B-coref"):
        if row[name].upper() not in ("TRUE", "FALSE"):
            raise DataError(f"{where}: {name} is {row[name]!r}, expected TRUE or FALSE")
        answers.append(row[name].upper() == "TRUE")
    question = Question(mentions[0], tuple(mentions[1:]), tuple(answers))
    texts = tuple(tuple(token.text for token in sentence) for sentence in sentences)
    return CorefDocument(texts, question=question, where=where)


def _gap_mention(row: dict[str, str], name: str, tokens: Sequence[Token], where: str) -> Mention:
    """Return the tokens of a marked word or name."""
    offset = row[f"{name}-offset"]
    start = parse_count(offset)
    end = (start or 0) + len(row[name])
    inside = [place for place, token in enumerate(tokens) if token.start < end and token.end > (start or 0)]
    if start is None or not row["Text"].startswith(row[name], start) or not inside:
        raise DataError(
            f"{where}: {name} {shown(row[name])} is not at {shown(offset)} in the text; get the file again"
        )
    return inside[0], inside[-1] + 1


def sentence_starts(texts: Sequence[Sequence[str]]) -> list[int]:
    """Return where each sentence starts in the document, and the document's length."""
    return list(accumulate(map(len, texts), initial=0))


FORMATS = Formats[CorefDocument](
    {"conll": _read_conll, "gap": _read_gap},
    dict.fromkeys(("", ".txt", ".conll"), "conll") | {".tsv": "gap"},
    with_offsets=True,
)
