"""The preparation of a corpus from beginning to end.

Until it is finished, its folder is `OUT.part/`:

* `job.json`: the settings and sources;
* `chunks/`: the finished chunks, from which an interrupted preparation resumes;
* `types/`: temporary files of the later steps, which are fast and start again.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.base import (
    StartStep,
    can_fork,
    draft_folder,
    fresh_folder,
    locked,
    ordered_map,
    progress_display,
    remove_folder,
    remove_remains,
    write_errors,
    write_json,
)
from elmokit.corpus.chunks import Chunk, write_chunk
from elmokit.corpus.corpus_job import JOB, check_job, comparable, describe_job, is_begun
from elmokit.corpus.corpus_report import PartCounts, make_report
from elmokit.corpus.corpus_settings import PrepareSettings
from elmokit.corpus.prepared_corpus import (
    COUNTS,
    FACTS,
    FORMAT_VERSION,
    PARTS,
    SPELLING_STARTS,
    SPELLINGS,
    VOCABULARY,
    PreparedCorpus,
    is_prepared,
    part_folder,
)
from elmokit.corpus.selection import Selection
from elmokit.corpus.shards import ShardWriter
from elmokit.corpus.sources import blocks, find_files, is_plain_text, read_documents
from elmokit.corpus.type_table import TypeTable
from elmokit.errors import ConfigError, DataError
from elmokit.text import SPECIAL_TOKENS, Vocabulary, make_word_tokenizer

_Block = tuple[Path, list[str], bool]  # the file of its chunk, its documents, whether they are held out


def prepare_corpus(
    sources: Sequence[str | Path],
    out: str | Path,
    settings: PrepareSettings,
    *,
    workers: int | None = None,
    progress: bool = False,
) -> PreparedCorpus:
    """Turn raw text into a corpus for pretraining, or resume doing so after an interruption.

    Args:
        sources: Files or globs: text, plain or compressed, JSON lines (.jsonl), Parquet (.parquet).
        out: The folder to write. If it holds a corpus of the same sources and settings, that is opened.
        settings: How to split, tokenise, count and hold out.
        workers: The number of processes that tokenise, by default that of the cores. It does not change the
            result.
        progress: Show progress on standard error, if that is a terminal.

    Raises:
        ConfigError: A setting is not allowed.
        DataError: A source cannot be read, no text is left, `out` cannot be written, or it was made from
            other sources or settings.
        BusyError: Another process is writing `out`.
        KeyboardInterrupt: Ctrl-C; the message says how to resume.

    Example:
        >>> import tempfile
        >>> from elmokit.text import default_spec
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = Path(folder, "text.txt")
        ...     _ = text.write_text("The bank is open. The bank is closed.")
        ...     settings = PrepareSettings(tokenizer=default_spec("en"))
        ...     corpus = prepare_corpus([text], Path(folder, "corpus"), settings, workers=1)
        ...     corpus.vocabulary.tokens, corpus.train[0].tokens.tolist()
        (('<S>', '</S>', '<UNK>', '.', 'The', 'bank', 'is'), [0, 4, 5, 6, 8, 3, 1, 0, 4, 5, 6, 7, 3, 1])
    """
    if workers is not None and workers < 1:
        raise ConfigError(f"workers must be 1 or more, found {workers}")
    out = Path(out)
    files, heldout = find_files(sources), find_files(settings.heldout)
    job = describe_job(files, heldout, settings)
    part = part_folder(out)

    def advice() -> str:
        if (part / JOB).exists():
            return f"what is done so far is kept in {part}: run the same again to resume"
        return "nothing is kept yet: start again"

    with locked(out, parents=True), write_errors(out, advice):
        remove_remains(part)
        if is_prepared(out):
            corpus = PreparedCorpus(out)
            check_job(corpus.job, job, out, "prepared")
            _delete_part(part)  # a run that was killed at its very end has left it
            return corpus
        try:
            with progress_display(shown=progress) as start_step:
                _prepare(files, heldout, out, settings, job, workers or _cores(), start_step)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted; {advice()}") from None
    return PreparedCorpus(out)


def _prepare(
    files: Sequence[Path],
    heldout: Sequence[Path],
    out: Path,
    settings: PrepareSettings,
    job: dict[str, Any],
    workers: int,
    start_step: StartStep,
) -> None:
    part = part_folder(out)
    begun = is_begun(out, part, job)
    given = _given_vocabulary(settings)
    if not begun:
        _check_sources([*files, *heldout], settings)
        with draft_folder(part) as draft:
            (draft / "chunks").mkdir()
            write_json(draft / JOB, job)
    chunks = _tokenise(files, heldout, part / "chunks", settings, workers, start_step)
    with draft_folder(out) as draft:
        _finish(chunks, part, draft, settings, given, job, start_step)
    _delete_part(part)


def _given_vocabulary(settings: PrepareSettings) -> Vocabulary | None:
    if settings.vocabulary is None:
        return None
    vocabulary = Vocabulary.load(settings.vocabulary)
    vocabulary.require_specials()
    if [vocabulary.id(token) for token in SPECIAL_TOKENS] != list(range(len(SPECIAL_TOKENS))):
        raise DataError(
            f"{settings.vocabulary} begins with {', '.join(vocabulary.tokens[:3])}; expected the lines "
            f"{', '.join(SPECIAL_TOKENS)} first, and only there; put them in this order"
        )
    return vocabulary


def _check_sources(files: Sequence[Path], settings: PrepareSettings) -> None:
    """Read the first document of each file, so that a bad file is found before hours of work."""
    for file in files:
        next(read_documents(file, settings), None)


def _cores() -> int:
    if not can_fork():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tokenise(
    files: Sequence[Path],
    heldout: Sequence[Path],
    folder: Path,
    settings: PrepareSettings,
    workers: int,
    start_step: StartStep,
) -> list[Chunk]:
    """Make the chunks that are missing; return all, in the order of the text."""
    every = [*files, *heldout]
    total = sum(file.stat().st_size for file in every) if all(map(is_plain_text, every)) else None
    advance = start_step("tokenising", total)
    tokenize = make_word_tokenizer(settings.tokenizer)
    chunks: list[Chunk] = []
    began = time.monotonic()
    tokens = 0

    def missing() -> Iterator[_Block]:
        parts = chain(
            zip(blocks(files, settings), repeat(False)), zip(blocks(heldout, settings), repeat(True))
        )
        for number, (block, is_heldout) in enumerate(parts):
            chunks.append(Chunk(folder / f"{number:06d}.safetensors"))
            if chunks[-1].path.exists():
                advance(chunks[-1].facts["bytes"])
            else:
                yield chunks[-1].path, block, is_heldout

    def make(block: _Block) -> Path:
        path, documents, is_heldout = block
        write_chunk(documents, path, tokenize=tokenize, settings=settings, heldout=is_heldout)
        return path

    one_by_one = (make(block) for block in missing())
    # Closing ends the processes at once if Ctrl-C comes between two results.
    with closing(one_by_one if workers == 1 else ordered_map(make, missing(), workers=workers)) as made:
        for path in made:
            facts = Chunk(path).facts
            tokens += facts["tokens"]
            speed = tokens / (time.monotonic() - began + 1e-9)
            advance(facts["bytes"], f"{tokens:,} tokens, {speed:,.0f}/s")
    return chunks


def _finish(
    chunks: Sequence[Chunk],
    part: Path,
    folder: Path,
    settings: PrepareSettings,
    given: Vocabulary | None,
    job: dict[str, Any],
    start_step: StartStep,
) -> None:
    """Select sentences, merge the types of all chunks, and write the corpus into `folder`."""
    selection = Selection(chunks, settings)
    table = TypeTable(
        chunks, selection, settings, given, fresh_folder(part / "types"), start_step("counting")
    )
    _refuse_nothing(chunks, selection, table, settings, part)
    Vocabulary(table.tokens).save(folder / VOCABULARY)
    np.save(folder / COUNTS, table.counts)
    table.write(folder / SPELLINGS, folder / SPELLING_STARTS)
    writers, part_counts = _write_shards(chunks, selection, table, folder, start_step)
    report = make_report(chunks, selection, table, part_counts)
    content = json.dumps([comparable(job), report], sort_keys=True)
    facts = {
        "format_version": FORMAT_VERSION,
        "fingerprint": hashlib.sha256(content.encode()).hexdigest()[:16],
        "num_types": table.num_types,
        "shards": {name: writer.shards for name, writer in zip(PARTS, writers, strict=True)},
        "report": report,
        "job": job,
    }
    write_json(folder / FACTS, facts)


def _refuse_nothing(
    chunks: Sequence[Chunk], selection: Selection, table: TypeTable, settings: PrepareSettings, part: Path
) -> None:
    """Raise a DataError if no text is left, or no word is frequent enough to be learnt."""
    if table.counts[0] and len(table.tokens) > len(SPECIAL_TOKENS):
        return
    _delete_part(part)  # or it would block another try with other settings
    if table.counts[0]:
        raise DataError(
            f"none of the {table.num_seen:,} distinct words of the text occurs {settings.min_count} times or "
            "more, so there is nothing to learn; use more text, or min_count=1"
        )
    report = make_report(chunks, selection, table, [PartCounts(), PartCounts()])
    dropped = ", ".join(f"{count:,} {name}" for name, count in report["dropped"].items() if count)
    raise DataError(
        f"the corpus is empty: of {report['characters']:,} characters no sentence is left to train on; "
        f"dropped: {dropped or 'nothing'}; check the files, min_tokens and max_tokens"
    )


def _write_shards(
    chunks: Sequence[Chunk], selection: Selection, table: TypeTable, folder: Path, start_step: StartStep
) -> tuple[list[ShardWriter], list[PartCounts]]:
    """Write the sentences of both parts as ids of the corpus."""
    total = sum(chunk.facts["tokens"] + 2 * chunk.facts["sentences"] for chunk in chunks)
    writers = [ShardWriter(folder / name, total) for name in PARTS]
    counts = [PartCounts() for _ in PARTS]
    advance = start_step("writing shards", len(chunks))
    for number, chunk in enumerate(chunks):
        lengths, documents = chunk.array("lengths"), chunk.array("documents")
        document_of = np.repeat(np.arange(len(documents)), documents)  # (sentences,)
        words = table.ids(number)[chunk.array("tokens")]
        for mask, writer, count in zip(selection.masks(number), writers, counts, strict=True):
            chosen = words[np.repeat(mask, lengths)]
            kept = np.bincount(document_of[mask])  # sentences of each document
            writer.add(chosen, lengths[mask], kept[kept > 0])
            count.add(chosen, lengths[mask], len(table.tokens))
        advance()
    return writers, counts


def _delete_part(part: Path) -> None:
    """Delete the folder of an unfinished preparation."""
    if (part / JOB).exists():
        remove_folder(part)
