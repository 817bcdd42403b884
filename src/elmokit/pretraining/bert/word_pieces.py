"""The WordPiece vocabulary of a corpus, and its text as pieces.

The words of the corpus are split into pieces once each. The text is then one long array of pieces on the
disk, without boundary marks, beside the places where sentences begin and the first sentence of each document.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.base import draft_folder
from elmokit.corpus import PreparedCorpus, Shard
from elmokit.errors import DataError, MissingExtra
from elmokit.text import SPECIAL_TOKENS

Integers = npt.NDArray[np.integer[Any]]

# In this order they are pieces 0 to 4.
SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = range(len(SPECIAL_PIECES))
CONTINUES = "##"  # what a piece begins with that is not the first one of its word
_WORDS_READ = 20_000_000  # from which the vocabulary is made; of a longer text, as many in proportion
_MOST_LETTERS = 1_000_000
_TYPES_AT_ONCE = 100_000
_ARRAYS = ("pieces", "sentences", "documents")


@dataclass(frozen=True)
class PieceText:
    """A text as pieces.

    Attributes:
        pieces: (P,) of all sentences, one after another.
        sentences: Where each sentence begins, then P.
        documents: The first sentence of each document, then their number.
    """

    pieces: Integers
    sentences: Integers
    documents: Integers

    @classmethod
    def open(cls, folder: Path) -> "PieceText":
        """Open what `write_pieces` has written.

        Raises:
            DataError: A file is missing or damaged.
        """
        try:
            return cls(*(np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS))
        except (OSError, ValueError) as error:
            raise DataError(f"{folder} is damaged ({error}); delete it and resume the run") from error


def train_pieces(corpus: PreparedCorpus, size: int) -> Any:  # noqa: ANN401 (of tokenizers, untyped)
    """Make a WordPiece vocabulary from the training text; a Chinese character is a word of its own.

    Returns:
        A `tokenizers.Tokenizer` that reads text as BERT's does, in the case that the corpus has.

    Raises:
        MissingExtra: transformers (which brings tokenizers) is not installed.
    """
    try:
        from tokenizers import processors, trainers
    except ImportError as error:
        raise MissingExtra("tokenizers", "transformers", "pretraining a BERT") from error

    def trained(words: Iterator[str], size: int, letters: int, first: list[str]) -> dict[str, int]:
        tokenizer = _tokenizer({}, corpus)
        trainer = trainers.WordPieceTrainer(
            vocab_size=size, limit_alphabet=letters, special_tokens=first, show_progress=False
        )
        tokenizer.train_from_iterator(words, trainer)
        found: dict[str, int] = tokenizer.get_vocab()
        return found

    # The trainer numbers the letters inside words as it meets them, in an order that differs from call to
    # call, and breaks ties by these numbers. So they are found first, and come in a fixed order.
    letters = trained(_words(corpus, 0.0), 1, _MOST_LETTERS, [])
    inside = sorted(piece for piece in letters if piece.startswith(CONTINUES) and len(piece) == 3)
    vocabulary = trained(_words(corpus, 1.0), size, size // 2, [*SPECIAL_PIECES, *inside[: size // 2]])
    tokenizer = _tokenizer(vocabulary, corpus)
    tokenizer.add_special_tokens(list(SPECIAL_PIECES))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(SPECIAL_PIECES[piece], piece) for piece in (CLS, SEP)],
    )
    return tokenizer


def _tokenizer(vocabulary: dict[str, int], corpus: PreparedCorpus) -> Any:  # noqa: ANN401
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIAL_PIECES[UNK]))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=corpus.tokenizer.lowercase, strip_accents=False, handle_chinese_chars=True
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _words(corpus: PreparedCorpus, share: float) -> Iterator[str]:
    """Yield the words of the training text, each so often in proportion to its count, but at least once."""
    shards = (np.bincount(shard.tokens, minlength=corpus.num_types) for shard in corpus.train)
    counts = reduce(np.add, shards)
    counts[: len(SPECIAL_TOKENS)] = 0
    share *= min(1.0, _WORDS_READ / max(1, counts.sum()))
    times = np.maximum(np.ceil(counts * share), counts > 0).astype(np.int64)
    for ids in _parts(corpus.num_types):
        for word, number in zip(corpus.spellings(ids), times[ids].tolist(), strict=True):
            if number:
                yield f"{word} " * number


def _parts(num_types: int) -> Iterator[Integers]:
    for first in range(0, num_types, _TYPES_AT_ONCE):
        yield np.arange(first, min(first + _TYPES_AT_ONCE, num_types))


def write_pieces(corpus: PreparedCorpus, tokenizer: Any, folder: Path) -> None:  # noqa: ANN401
    """Write the training and the held-out text of a corpus as pieces, into folders of these names."""
    starts, pieces = _pieces_of_types(corpus, tokenizer)
    kind = np.uint16 if tokenizer.get_vocab_size() <= 1 << 16 else np.int32
    with draft_folder(folder) as draft:
        for name, shards in (("train", corpus.train), ("heldout", corpus.heldout)):
            (draft / name).mkdir()
            _write_part(shards, starts, pieces.astype(kind), draft / name)


def _pieces_of_types(corpus: PreparedCorpus, tokenizer: Any) -> tuple[Integers, Integers]:  # noqa: ANN401
    """Return the pieces of all types, one after another, and where those of each begin; `<S>` has none."""
    lengths = np.zeros(corpus.num_types + 1, np.int64)
    found = []
    for ids in _parts(corpus.num_types):
        for number, one in zip(
            ids.tolist(),
            tokenizer.encode_batch(corpus.spellings(ids), add_special_tokens=False),
            strict=True,
        ):
            if number >= len(SPECIAL_TOKENS) - 1:  # no sentence boundary
                found.append(np.array(one.ids, np.int32))
                lengths[number + 1] = len(one.ids)
    return np.cumsum(lengths), np.concatenate(found)


def _write_part(shards: Sequence[Shard], starts: Integers, pieces: Integers, folder: Path) -> None:
    sizes = np.diff(starts)
    totals = [int(sizes[shard.tokens].sum()) for shard in shards]
    out = np.lib.format.open_memmap(folder / "pieces.npy", "w+", pieces.dtype, (sum(totals),))
    sentences, documents = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    done = 0
    for shard, total in zip(shards, totals, strict=True):
        size = sizes[shard.tokens]
        ends = np.cumsum(size)  # after each token, in pieces of this shard
        within = np.arange(total) - np.repeat(ends - size, size)
        out[done : done + total] = pieces[np.repeat(starts[shard.tokens], size) + within]
        documents.append(sentences_so_far(sentences) + shard.documents[1:])
        sentences.append(done + ends[shard.starts[1:] - 1])
        done += total
    out.flush()
    np.save(folder / "sentences.npy", np.concatenate(sentences))
    np.save(folder / "documents.npy", np.concatenate(documents))


def sentences_so_far(parts: Sequence[Integers]) -> int:
    """Return how many sentences lie in arrays of their ends, of which the first holds only the beginning."""
    return sum(map(len, parts)) - 1
