"""The pieces that a text is written with: subwords, words or characters.

A blank is written as ▁ at the beginning of the piece after it, so that the text can be put together again
from its pieces: "Ein Hund!" has the words ▁Ein ▁Hund ! and the characters E i n ▁ H u n d !
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

from elmokit.base import shown
from elmokit.errors import DataError, MissingExtra, ModelFileError

TargetKind = Literal["subwords", "words", "characters"]

BLANK = "▁"
END, UNKNOWN = 0, 1
_SPECIAL = ("</s>", "<unk>")  # in this order they are pieces 0 and 1
_WORD = re.compile(rf"{BLANK}?(?:\w+|[^\w{BLANK}])|{BLANK}")
_LEAST = 2  # times that a word or subword has to occur


class TargetVocabulary:
    """Texts as pieces, and back.

    Args:
        kind: of the pieces.
        pieces: by their numbers.
        merges: of subwords, a line for each: the two pieces that become one, the first ones first.

    Raises:
        ModelFileError: the pieces do not begin with the special ones.
    """

    def __init__(self, kind: TargetKind, pieces: tuple[str, ...], merges: str = "") -> None:
        if pieces[: len(_SPECIAL)] != _SPECIAL:
            raise ModelFileError(
                f"the pieces of the model begin with {shown(pieces[:2])}, expected {_SPECIAL}; get "
                "its folder again"
            )
        self.kind, self.pieces, self.merges = kind, pieces, merges
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        self._known: dict[str, list[int]] = {}  # pieces of the words that were seen
        self._model: Any = None

    @classmethod
    def fit(cls, kind: TargetKind, texts: Iterable[str], most: int) -> "TargetVocabulary":
        """Make the vocabulary of some texts, with at most so many pieces; characters are all in it.

        Raises:
            MissingExtra: subwords need tokenizers, which is not installed.
        """
        words = [word for text in texts for word in split(text, kind)]
        if kind == "subwords":
            return cls(kind, *_learn_subwords(words, most))
        counts = Counter(words)
        least = _LEAST if kind == "words" else 1
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(kind, _SPECIAL + tuple(word for word in ordered if counts[word] >= least)[: most - 2])

    def __len__(self) -> int:
        return len(self.pieces)

    def id(self, piece: str) -> int | None:
        """Return the number of a piece, or None if there is no such piece."""
        return self._ids.get(piece)

    def encode(self, text: str) -> list[int]:
        """Return the pieces of a text."""
        return [piece for word in split(text, self.kind) for piece in self.encode_word(word)]

    def encode_word(self, word: str) -> list[int]:
        """Return the pieces of a word of `split`."""
        if self.kind != "subwords":
            return [self._ids.get(word, UNKNOWN)]
        if word not in self._known:
            self._known[word] = [token.id for token in self._subwords().tokenize(word)]
        return self._known[word]

    def _subwords(self) -> Any:  # noqa: ANN401 (of tokenizers, untyped)
        if self._model is None:
            merges = [tuple(line.split(" ")) for line in str(self.merges).split("\n") if line]
            if not all(len(pair) == 2 and {*pair, "".join(pair)} <= self._ids.keys() for pair in merges):
                raise ModelFileError("a merge of the model has no piece; get its folder again")
            self._model = _library().models.BPE(self._ids, merges, unk_token=_SPECIAL[UNKNOWN])
        return self._model


def split(text: str, kind: TargetKind) -> list[str]:
    """Return the words of a text, punctuation apart, or its characters.

    >>> split("Ein Hund!", "words")
    ['▁Ein', '▁Hund', '!']
    """
    text = BLANK.join(text.split())
    return list(text) if kind == "characters" else _WORD.findall(BLANK + text) if text else []


def join(pieces: Iterable[str]) -> str:
    """Return the text that pieces make up.

    >>> join(["▁Ein", "▁Hu", "nd", "!"])
    'Ein Hund!'
    """
    return " ".join("".join(pieces).replace(BLANK, " ").split())


def _learn_subwords(words: list[str], most: int) -> tuple[tuple[str, ...], str]:
    """Learn byte-pair encoding (Sennrich et al. 2016): the pieces, and the merges as lines."""
    library = _library()
    tokenizer = library.Tokenizer(library.models.BPE(unk_token=_SPECIAL[UNKNOWN]))
    trainer = library.trainers.BpeTrainer(
        vocab_size=most, min_frequency=_LEAST, special_tokens=list(_SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator(words, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    if model["merges"] and isinstance(model["merges"][0], str):  # as older versions have it
        model["merges"] = [merge.split(" ") for merge in model["merges"]]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    if pieces[: len(_SPECIAL)] != list(_SPECIAL):
        raise DataError(f"the texts contain {' or '.join(_SPECIAL)}, which are marks; remove them")
    return tuple(pieces), "\n".join(map(" ".join, model["merges"]))


def _library() -> Any:  # noqa: ANN401 (a module)
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtra("tokenizers", "translate", "a target of subwords") from error
    return tokenizers
