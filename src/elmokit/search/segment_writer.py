"""Write segments: from new documents, or from the live documents of other segments."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from elmokit.base import group_until
from elmokit.search.documents import Document
from elmokit.search.index_arrays import Array, save_arrays, text_arrays
from elmokit.search.metadata import metadata_arrays
from elmokit.search.passage_vectors import PassageVectors
from elmokit.search.passages import PassageSettings, cut_sentences, group_passages
from elmokit.search.postings import PostingsBuilder
from elmokit.search.quantised import Floats, Quantised
from elmokit.search.segments import Segment, document_digest, id_hash, write_graph

_WORDS_AT_ONCE = 100_000  # vectors of words that are copied at once
_MOST_SEGMENTS = 10  # of one size; more are merged
_LARGE = 150_000  # passages; a segment of so many is merged only when asked for, so that memory is bounded


def write_segment(
    folder: Path,
    documents: Sequence[Document],
    vectors: PassageVectors,
    *,
    find_terms: Callable[[str], list[str]],
    language: str,
    passages: PassageSettings,
    words: bool,
) -> None:
    """Embed documents and write them into an empty folder.

    Args:
        folder: Where to write.
        documents: The documents, each name once.
        vectors: Makes their vectors.
        find_terms: Makes terms of a text.
        language: Whose rules split sentences.
        passages: How passages are cut.
        words: Whether to store the vectors of words.
    """
    spans = [cut_sentences(document.text, language) for document in documents]
    texts = [
        document.text[start:end] for document, own in zip(documents, spans, strict=True) for start, end in own
    ]
    sums: list[tuple[Floats, float]] = []
    lengths: list[int] = []
    stored: list[Quantised] = []
    for group in group_until(vectors.embedder.stream(texts, copy=False), len, _WORDS_AT_ONCE // 10):
        sums += map(vectors.sums, group)
        if words:
            lengths += map(len, group)
            stored.append(Quantised.of(vectors.words(group)))
    rows, found = [], []
    builder = PostingsBuilder()
    first = 0
    for number, (document, own) in enumerate(zip(documents, spans, strict=True)):
        for start, end in group_passages(own, passages):
            rows.append((number, first + start, first + end))
            found.append(vectors.passage(sums[first + start : first + end]))
            builder.add(find_terms(document.text[own[start][0] : own[end - 1][1]]))
        first += len(own)
    dim = vectors.passage_dim
    dense = Quantised.of(np.array(found, np.float32).reshape(-1, dim))
    save_arrays(
        folder,
        _document_arrays(documents)
        | {
            "sentences": np.array([span for own in spans for span in own], np.int32).reshape(-1, 2),
            "sentence-starts": np.cumsum([0, *map(len, spans)], dtype=np.int64),
            "passages": np.array(rows, np.int32).reshape(-1, 3),
            "vectors": dense.numbers,
            "scales": dense.scales,
        }
        | builder.arrays(),
    )
    if words:
        word_dim = vectors.word_dim
        numbers = [np.zeros((0, word_dim), np.int8), *(one.numbers for one in stored)]
        scales = [np.zeros(0, np.float16), *(one.scales for one in stored)]
        save_arrays(folder, {"words": np.concatenate(numbers), "word-scales": np.concatenate(scales)})
        save_arrays(folder, {"word-starts": np.cumsum([0, *lengths], dtype=np.int64)})
    write_graph(folder, dense)


def _document_arrays(documents: Sequence[Document]) -> dict[str, Array]:
    hashes = np.array([id_hash(document.id) for document in documents], np.uint64)
    order = np.argsort(hashes, kind="stable")
    return {
        **text_arrays("texts", (document.text for document in documents)),
        **text_arrays("ids", (document.id for document in documents)),
        "id-hashes": hashes[order],
        "id-order": order.astype(np.int32),
        "digests": np.array([document_digest(document) for document in documents], np.uint64),
        **metadata_arrays([document.metadata for document in documents]),
    }


def last_segments(sizes: Sequence[int]) -> range:
    """Return which segments should be merged, given how many passages each has.

    These are the last ones, once there are too many of one order of magnitude; none before.

    Example:
        >>> last_segments([5000, *[20] * 10]), last_segments([5000, *[20] * 11])
        (range(0, 0), range(1, 12))
    """
    for digits in range(1, len(str(_LARGE)) + 1):
        start = len(sizes)
        while start and sizes[start - 1] < min(_LARGE, 10**digits):
            start -= 1
        if sum(max(1, size) >= 10 ** (digits - 1) for size in sizes[start:]) > _MOST_SEGMENTS:
            return range(start, len(sizes))
    return range(0)


def merge_segments(folder: Path, segments: Sequence[Segment]) -> None:
    """Write the live documents of several segments into an empty folder; nothing is embedded again."""
    documents: list[Document] = []
    sentences, counts, passages, lengths = [], [], [], []
    kept_passages, kept_sentences = [], []
    first_sentence = 0
    for segment in segments:
        live = np.ones(len(segment.ids), bool) if segment.deleted is None else ~segment.deleted
        own = np.flatnonzero(live)
        for number in own.tolist():
            text, name = segment.texts[number], segment.ids[number]
            documents.append(Document(id=name, text=text, metadata=segment.metadata[number]))
        per_document = np.diff(segment.sentence_starts)
        keep = np.repeat(live, per_document)  # of sentences
        new_sentence = first_sentence + np.cumsum(keep) - keep  # the new number of each old sentence
        rows = np.flatnonzero(live[segment.passages[:, 0]])
        old = segment.passages[rows]
        new_document = len(documents) - len(own) + np.cumsum(live) - live
        start = new_sentence[old[:, 1]]
        passages.append(np.stack([new_document[old[:, 0]], start, start + old[:, 2] - old[:, 1]], axis=1))
        sentences.append(segment.sentences[keep])
        counts.append(per_document[live])
        kept_passages.append(rows)
        kept_sentences.append(keep)
        if segment.word_starts is not None:
            lengths.append(np.diff(segment.word_starts)[keep])
        first_sentence += int(keep.sum())
    pairs = list(zip(segments, kept_passages, strict=True))
    dense = Quantised(
        np.concatenate([segment.vectors.numbers[rows] for segment, rows in pairs]),
        np.concatenate([segment.vectors.scales[rows] for segment, rows in pairs]),
    )
    save_arrays(
        folder,
        _document_arrays(documents)
        | {
            "sentences": np.concatenate(sentences).astype(np.int32),
            "sentence-starts": np.cumsum([0, *np.concatenate(counts).tolist()], dtype=np.int64),
            "passages": np.concatenate(passages).astype(np.int32),
            "vectors": dense.numbers,
            "scales": dense.scales,
        }
        | _merged_postings(segments, kept_passages),
    )
    if lengths:
        _copy_words(folder, segments, kept_sentences, np.concatenate(lengths))
    write_graph(folder, dense)


def _merged_postings(segments: Sequence[Segment], kept: Sequence[Array]) -> dict[str, Array]:
    terms: dict[str, int] = {}
    numbers, passages, counts, lengths = [], [], [], []
    first = 0
    for segment, rows in zip(segments, kept, strict=True):
        postings = segment.postings
        place = np.full(len(segment.passages), -1, np.int64)
        place[rows] = first + np.arange(len(rows))
        own = [postings.terms[number] for number in range(len(postings.terms))]
        codes = np.array([terms.setdefault(term, len(terms)) for term in own], np.int64)
        of_posting = np.repeat(codes, np.diff(postings.starts))
        new = place[postings.passages]
        numbers.append(of_posting[new >= 0])
        passages.append(new[new >= 0])
        counts.append(postings.counts[new >= 0])
        lengths.append(postings.lengths[rows])
        first += len(rows)
    number = np.concatenate(numbers)
    found = np.bincount(number, minlength=len(terms))
    used = sorted((term for term, code in terms.items() if found[code]), key=_by_bytes)
    rank = np.zeros(len(terms), np.int64)
    rank[[terms[term] for term in used]] = np.arange(len(used))
    order = np.argsort(rank[number], kind="stable")
    return {
        **text_arrays("terms", used),
        "posting-starts": np.cumsum([0, *(found[terms[term]] for term in used)], dtype=np.int64),
        "posting-passages": np.concatenate(passages)[order].astype(np.int32),
        "posting-counts": np.concatenate(counts)[order].astype(np.uint16),
        "lengths": np.concatenate(lengths).astype(np.int32),
    }


def _by_bytes(term: str) -> bytes:
    return term.encode(errors="replace")


def _copy_words(folder: Path, segments: Sequence[Segment], kept: Sequence[Array], lengths: Array) -> None:
    """Copy the vectors of words piece by piece: they may be larger than the memory."""
    total = int(lengths.sum())
    starts = np.cumsum([0, *lengths.tolist()], dtype=np.int64)
    save_arrays(folder, {"word-starts": starts})
    for name in ("words", "word-scales"):
        stored = [one.words for one in segments if one.words is not None]
        sources: list[Array] = [one.numbers if name == "words" else one.scales for one in stored]
        like = sources[0]
        header = {"descr": like.dtype.str, "fortran_order": False, "shape": (total, *like.shape[1:])}
        with (folder / f"{name}.npy").open("wb") as file:  # a mapped file would end in a crash on a full disk
            np.lib.format.write_array_header_1_0(file, header)
            for segment, source, keep in zip(segments, sources, kept, strict=True):
                assert segment.word_starts is not None
                of_token = np.repeat(keep, np.diff(segment.word_starts))
                for start in range(0, len(source), _WORDS_AT_ONCE):
                    part = slice(start, start + _WORDS_AT_ONCE)
                    file.write(source[part][of_token[part]].tobytes())
