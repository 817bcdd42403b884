"""Tagged sentences: their formats, and which tag scheme they use.

columns    token, …, tag in columns (tabs or blanks); an empty line, or -DOCSTART-, ends a sentence
conllu     CoNLL-U; the tag is UPOS
jsonl      one object per line: "text" or "tokens"; "tags", or "slots" by their values
seq        a folder with seq.in and seq.out
multihead  the entities of a file with entities and relations; see `multi_head`
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from elmokit.base import shown
from elmokit.errors import DataError
from elmokit.tasks.core import Formats, Tokenize, json_lines, numbered_lines, parallel_lines, string_list
from elmokit.tasks.tagger.multi_head import read_multi_head
from elmokit.tasks.tagger.schemes import OUTSIDE, SPAN_SCHEMES, Scheme, fitting_schemes, has_kind

logger = logging.getLogger(__name__)

_NO_WORD = re.compile(r"\d+[-.]\d+")  # a multi-word token ("1-2") or an empty node ("2.1")
_SLIPS = 0.05  # the share of sentences that may be of another scheme than the rest


@dataclass(frozen=True)
class TaggedText:
    """A sentence with a tag for each token."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    where: str = field(default="", repr=False)

    @property
    def texts(self) -> tuple[tuple[str, ...]]:
        """The one text."""
        return (self.tokens,)


def _read_columns(path: Path, tokenize: Tokenize) -> Iterator[TaggedText]:
    yield from _sentences(numbered_lines(path), lambda fields: (fields[0], fields[-1]), least=2)


def _read_conllu(path: Path, tokenize: Tokenize) -> Iterator[TaggedText]:
    words = ((where, line) for where, line in numbered_lines(path) if _is_word(line, where))
    yield from _sentences(words, lambda fields: (fields[1], fields[3]), least=10)


def _is_word(line: str, where: str) -> bool:
    """Return whether a line of CoNLL-U is a word or the end of a sentence; others do not count.

    Raises:
        DataError: it is none of the lines that CoNLL-U has.
    """
    number = line.partition("\t")[0]
    if not line.strip() or number.isdecimal():
        return True
    if line.startswith("#") or _NO_WORD.fullmatch(number):
        return False
    raise DataError(
        f"{where}: expected ten columns separated by tabs, the first a number such as 1, 1-2 or 1.1, found "
        f"{shown(line)}; repair the line or remove it"
    )


def _sentences(
    lines: Iterable[tuple[str, str]], pick: Callable[[list[str]], tuple[str, str]], *, least: int
) -> Iterator[TaggedText]:
    """Group lines of one token each into sentences; `pick` takes token and tag from the fields of a line."""
    tokens: list[tuple[str, str]] = []
    first, width = "", 0
    for where, line in chain(lines, [("", "")]):
        if not line.strip() or line.startswith("-DOCSTART-"):
            if tokens:
                yield TaggedText(tuple(token for token, _ in tokens), tuple(tag for _, tag in tokens), first)
            tokens = []
            continue
        # Split at blanks alone: a token may contain a no-break space.
        fields = line.split("\t") if "\t" in line else [part for part in line.split(" ") if part]
        if len(fields) < least or not all(pick(fields)):
            raise DataError(
                f"{where}: expected a token and its tag in {least} columns or more, found {shown(line)}; "
                "label the line or remove it"
            )
        if tokens and len(fields) != width:  # running text, for example
            raise DataError(
                f"{where}: expected a token and its tag in {width} columns, as in the line before, found "
                f"{len(fields)}, {shown(line)}; each line is one token, and a blank line ends a sentence"
            )
        first, width = (first if tokens else where), len(fields)
        token, tag = pick(fields)
        tokens.append((token, tag.strip()))


def _read_jsonl(path: Path, tokenize: Tokenize) -> Iterator[TaggedText]:
    for where, data, tokens in json_lines(path, tokenize):
        yield json_tags(data, tokens, where)


def json_tags(data: Mapping[str, Any], tokens: tuple[str, ...], where: str) -> TaggedText:
    """Return the tokens with the tags of a JSON object."""
    tags = string_list(data, "tags", where) if isinstance(data.get("tags"), list) else ()
    if isinstance(data.get("slots"), dict):
        tags = _slot_tags(tokens, data["slots"], where)
    return tagged_text(tokens, tags, where)


def tagged_text(tokens: Sequence[str], tags: Sequence[str], where: str) -> TaggedText:
    """Return tokens with their tags.

    Raises:
        DataError: there are not as many tags as tokens.
    """
    if len(tags) != len(tokens):
        raise DataError(
            f"{where}: expected a tag for each token, found {len(tokens)} tokens and {len(tags)} tags"
        )
    return TaggedText(tuple(tokens), tuple(tags), where)


def _slot_tags(tokens: tuple[str, ...], slots: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return BIO tags for slots that are given by value: each where its characters first occur."""
    tags = [OUTSIDE] * len(tokens)
    text = "".join(tokens)
    places = [0, *accumulate(map(len, tokens))]  # of each token in the text, and its end
    first = {place: number for number, place in reversed(list(enumerate(places[:-1])))}
    last = {place: number for number, place in reversed(list(enumerate(places[1:], start=1)))}
    for slot, value in slots.items():
        wanted = "".join(str(value).split())
        place = text.find(wanted) if wanted else -1
        while place >= 0:
            start, end = first.get(place), last.get(place + len(wanted))
            if start is not None and end is not None and set(tags[start:end]) == {OUTSIDE}:
                tags[start:end] = [f"B-{slot}"] + [f"I-{slot}"] * (end - start - 1)
                break
            place = text.find(wanted, place + 1)
        else:
            logger.warning("%s: slot %r is left out: its value %r is not in the text", where, slot, value)
    return tuple(tags)


def _read_seq(folder: Path, tokenize: Tokenize) -> Iterator[TaggedText]:
    for where, (words, tags) in parallel_lines(folder, ("seq.in", "seq.out")):
        if words.strip():
            yield tagged_text(words.split(), tags.split(), where)


def _read_multi_head(path: Path, tokenize: Tokenize) -> Iterator[TaggedText]:
    for one in read_multi_head(path):
        yield TaggedText(one.tokens, one.tags, one.where)


FORMATS = Formats(
    {
        "columns": _read_columns,
        "conllu": _read_conllu,
        "jsonl": _read_jsonl,
        "seq": _read_seq,
        "multihead": _read_multi_head,
    },
    dict.fromkeys(("", ".txt", ".tsv", ".conll", ".bio", ".iob", ".bmes", ".bioes"), "columns")
    | {".conllu": "conllu", ".jsonl": "jsonl", "/seq.in": "seq"},
)


def scheme_of(examples: Sequence[TaggedText], known: Scheme | None = None) -> Scheme:
    """Return the scheme of the tags; if one is `known`, check that they follow it.

    Published data have slips (CoNLL-2003 too), so a few sentences may differ: they are read by conlleval's
    rules, and a warning says how many there are.

    Raises:
        DataError: a tag belongs to no scheme, or more than a few sentences use another one; the message names
            the place.
    """
    tagged = [example for example in examples if set(example.tags) - {OUTSIDE}]
    if known == "plain" or (known is None and _without_spans(examples)):
        if known is None and any(OUTSIDE in example.tags for example in examples):
            logger.warning(
                "%s: no tag looks like B-PER, so the tags are not read as spans: each token is labelled by "
                "itself, and %r is a label like any other",
                examples[0].where, OUTSIDE,
            )  # fmt: skip
        return "plain"
    for example in tagged:
        strange = next((tag for tag in example.tags if not has_kind(tag)), None)
        if strange is not None:
            raise DataError(
                f"{example.where}: tag {strange!r} is of no scheme; expected O or, for example, B-PER"
            )
    candidates = SPAN_SCHEMES if known is None else (known,)
    fitting = [set(fitting_schemes(example.tags, candidates)) for example in tagged]
    best = max(candidates, key=lambda scheme: sum(scheme in fits for fits in fitting))
    others = [example for example, fits in zip(tagged, fitting, strict=True) if best not in fits]
    if len(others) > _SLIPS * len(tagged):
        raise DataError(
            f"{others[0].where}: the tags {' '.join(others[0].tags):.80} are not of the scheme {best}, nor "
            f"are those of {len(others) - 1} more of {len(tagged)} sentences; bring all files to one scheme"
        )
    if others:
        logger.warning(
            "%s: tags are not quite of the scheme %s (%d of %d sentences); read by conlleval's rules",
            others[0].where, best, len(others), len(tagged),
        )  # fmt: skip
    return best


def _without_spans(examples: Sequence[TaggedText]) -> bool:
    """Return whether the tags are of no span scheme: no kinds at all, or no "O" and some without a kind."""
    tags = {tag for example in examples for tag in example.tags}
    others = tags - {OUTSIDE}
    if OUTSIDE in tags:  # bare letters are spans whose kinds were forgotten
        return not any(map(has_kind, others)) and not others <= set("BIMES")
    return not all(map(has_kind, others))
