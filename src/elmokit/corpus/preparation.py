"""The preparation of a corpus from end to end.

It stands in `OUT.part/` until it is finished, then it is renamed to `OUT`:

* `job.json`: settings and sources;
* `chunks/`: finished chunks, from which an interrupted preparation goes on;
* `types/`, `finished/`: the later steps, which are fast and begin anew.
"""

import errno
import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.base import (
    StartStep,
    can_fork,
    fresh_folder,
    ordered_map,
    plain_reason,
    progress_display,
    write_bytes,
    write_json,
)
from elmokit.corpus.chunks import Chunk, write_chunk
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
    part_folder,
)
from elmokit.corpus.selection import Selection
from elmokit.corpus.shards import ShardWriter
from elmokit.corpus.sources import blocks, describe_file, find_files, is_plain_text, read_documents
from elmokit.corpus.type_table import TypeTable
from elmokit.errors import ConfigError, DataError
from elmokit.text import SPECIAL_TOKENS, Vocabulary, make_word_tokenizer

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_Block = tuple[Path, list[str], bool]  # where its chunk goes, its documents, whether they are held out


def prepare_corpus(
    sources: Sequence[str | Path],
    out: str | Path,
    settings: PrepareSettings,
    *,
    workers: int | None = None,
    progress: bool = False,
) -> PreparedCorpus:
    """Turn raw text into a corpus that pretraining reads; go on with what an interrupted call has done.

    Args:
        sources: Files or globs: text, plain or compressed, JSON lines (.jsonl), Parquet (.parquet).
        out: The folder to be made. If it is there, made of the same sources and settings, it is opened.
        settings: How to cut, drop, count and hold out.
        workers: Processes that cut the text; without it as many as there are cores. The result does not
            depend on their number.
        progress: Show progress on standard error, if that is a terminal.

    Returns:
        The corpus.

    Raises:
        ConfigError: A setting cannot be.
        DataError: A source cannot be read or nothing is left of the text; `out` cannot be written, or was
            made or begun with other sources or settings.
        KeyboardInterrupt: Ctrl-C; its text says how to go on.

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
        raise ConfigError(f"workers is {workers}; expected 1 or more")
    out = Path(out)
    files, heldout = find_files(sources), find_files(settings.heldout)
    _refuse_overlap(files, heldout)
    job = _describe_job(files, heldout, settings)
    part = part_folder(out)
    if (out / FACTS).exists():
        corpus = PreparedCorpus(out)
        _check_job(corpus.job, job, out, "prepared")
        _delete_part(part)  # of a run that was killed at its very end
        return corpus
    try:
        with _write_errors(out, part), progress_display(shown=progress) as start_step:
            begun = _begin(out, part, job)
            given = _given_vocabulary(settings)
            if not begun:
                _check_sources([*files, *heldout], settings)
                (part / "chunks").mkdir(parents=True, exist_ok=True)
                write_json(part / "job.json", job)
            chunks = _cut(files, heldout, part / "chunks", settings, workers or _cores(), start_step)
            finished = _finish(chunks, part, settings, given, job, start_step)
            finished.rename(out)
            _delete_part(part)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; what is done so far is kept in {part}: run the same again to go on"
        ) from None
    return PreparedCorpus(out)


@contextmanager
def _write_errors(out: Path, part: Path) -> Iterator[None]:
    """Turn what the file system refuses into one clear error."""
    try:
        yield
    except OSError as error:
        kept = f"what is done so far is kept in {part}: run the same again to go on"
        if error.errno in _NO_ROOM:
            todo = f"free some room (about two and a half times the size of the text is needed); {kept}"
        else:
            todo = kept if part.exists() else "choose a folder you may write to"
        raise DataError(f"cannot write {out}: {plain_reason(error)}; {todo}") from error


def _refuse_overlap(files: Sequence[Path], heldout: Sequence[Path]) -> None:
    both = {file.resolve() for file in files} & {file.resolve() for file in heldout}
    if both:
        raise DataError(
            f"{min(both)} is both trained on and held out, which would make perplexities too good; "
            "leave it out of one of them"
        )


def _describe_job(
    files: Sequence[Path], heldout: Sequence[Path], settings: PrepareSettings
) -> dict[str, Any]:
    """Write down all that decides the result; files count by content, not by path."""
    given = [] if settings.vocabulary is None else find_files([settings.vocabulary])
    return {
        "settings": settings.to_dict(),
        "sources": [describe_file(file) for file in files],
        "heldout": [describe_file(file) for file in heldout],
        "vocabulary": [describe_file(file) for file in given],
    }


def _comparable(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job by name of setting, without the paths of its files."""
    values = {key: value for key, value in job["settings"].items() if key not in ("heldout", "vocabulary")}
    for key in ("sources", "heldout", "vocabulary"):
        values[key] = [f"{file['bytes']} bytes, digest {file['digest']}" for file in job[key]]
    return values


def _check_job(before: dict[str, Any], now: dict[str, Any], folder: Path, done: str) -> None:
    """Raise a DataError that says what differs, if anything does."""
    old, new = _comparable(before), _comparable(now)
    told = [f"{key} was {old.get(key)}, is now {new[key]}" for key in new if old.get(key) != new[key]]
    if told:
        raise DataError(
            f"{folder} was {done} with other settings or files: {'; '.join(told)}. "
            f"Use the same, choose another folder, or delete {folder}"
        )


def _begin(out: Path, part: Path, job: dict[str, Any]) -> bool:
    """Check what is there; return whether it is the beginning of this very job."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out} is there already and is no prepared corpus; choose another folder")
    if (part / "job.json").exists():
        _check_job(json.loads((part / "job.json").read_text(encoding="utf-8")), job, part, "begun")
        return True
    if part.exists() and any(path.name != "chunks" for path in part.iterdir()):
        raise DataError(f"{part} stands in the way and is not of elmokit; move it, or choose another folder")
    return False


def _given_vocabulary(settings: PrepareSettings) -> Vocabulary | None:
    if settings.vocabulary is None:
        return None
    vocabulary = Vocabulary.load(settings.vocabulary)
    vocabulary.require_specials()
    if [vocabulary.id(token) for token in SPECIAL_TOKENS] != list(range(len(SPECIAL_TOKENS))):
        raise DataError(
            f"{settings.vocabulary} begins with {', '.join(vocabulary.tokens[:3])}; expected the lines "
            f"{', '.join(SPECIAL_TOKENS)} first and only there; put them in this order"
        )
    return vocabulary


def _check_sources(files: Sequence[Path], settings: PrepareSettings) -> None:
    """Read the beginning of each file: better now than after hours."""
    for file in files:
        next(read_documents(file, settings), None)


def _cores() -> int:
    if not can_fork():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cut(
    files: Sequence[Path],
    heldout: Sequence[Path],
    folder: Path,
    settings: PrepareSettings,
    workers: int,
    start_step: StartStep,
) -> list[Chunk]:
    """Make the chunks that are not there yet; return all, in the order of the text."""
    every = [*files, *heldout]
    total = sum(file.stat().st_size for file in every) if all(map(is_plain_text, every)) else None
    advance = start_step("cutting text into tokens", total)
    cut = make_word_tokenizer(settings.tokenizer)
    chunks: list[Chunk] = []
    began = time.monotonic()
    tokens = 0

    def missing() -> Iterator[_Block]:
        parts = chain(
            ((block, False) for block in blocks(files, settings)),
            ((block, True) for block in blocks(heldout, settings)),
        )
        for number, (block, is_heldout) in enumerate(parts):
            chunks.append(Chunk(folder / f"{number:06d}.safetensors"))
            if chunks[-1].path.exists():
                advance(chunks[-1].facts["bytes"])
            else:
                yield chunks[-1].path, block, is_heldout

    make = partial(_make_chunk, cut=cut, settings=settings)
    one_by_one = (make(block) for block in missing())
    # Closing ends the processes at once when Ctrl-C comes between two results.
    with closing(one_by_one if workers == 1 else ordered_map(make, missing(), workers=workers)) as made:
        for path in made:
            facts = Chunk(path).facts
            tokens += facts["tokens"]
            speed = tokens / (time.monotonic() - began + 1e-9)
            advance(facts["bytes"], f"{tokens:,} tokens, {speed:,.0f}/s")
    return chunks


def _make_chunk(block: _Block, **settings: Any) -> Path:  # noqa: ANN401 (those of write_chunk)
    path, documents, heldout = block
    write_chunk(documents, path, heldout=heldout, **settings)
    return path


def _finish(
    chunks: Sequence[Chunk],
    part: Path,
    settings: PrepareSettings,
    given: Vocabulary | None,
    job: dict[str, Any],
    start_step: StartStep,
) -> Path:
    """Select, merge and write; return the folder that is the finished corpus."""
    selection = Selection(chunks, settings)
    table = TypeTable(
        chunks, selection, settings, given, fresh_folder(part / "types"), start_step("counting")
    )
    _refuse_nothing(chunks, selection, table, settings, part)
    finished = fresh_folder(part / "finished")
    Vocabulary(table.tokens).save(finished / VOCABULARY)
    counts = io.BytesIO()
    np.save(counts, table.counts)
    write_bytes(finished / COUNTS, counts.getvalue())
    table.write(finished / SPELLINGS, finished / SPELLING_STARTS)
    writers, part_counts = _write_shards(chunks, selection, table, finished, start_step)
    report = make_report(chunks, selection, table, part_counts)
    content = json.dumps([_comparable(job), report], sort_keys=True)
    facts = {
        "format_version": FORMAT_VERSION,
        "fingerprint": hashlib.sha256(content.encode()).hexdigest()[:16],
        "num_types": table.num_types,
        "shards": {name: writer.shards for name, writer in zip(PARTS, writers, strict=True)},
        "report": report,
        "job": job,
    }
    write_json(finished / FACTS, facts)
    return finished


def _refuse_nothing(
    chunks: Sequence[Chunk], selection: Selection, table: TypeTable, settings: PrepareSettings, part: Path
) -> None:
    """Raise a DataError if there is no text, or no word in it that could be learnt."""
    if table.counts[0] and len(table.tokens) > len(SPECIAL_TOKENS):
        return
    _delete_part(part)  # or it would be in the way of a try with other settings
    if table.counts[0]:
        raise DataError(
            f"none of the {table.num_seen:,} distinct words of the text occurs {settings.min_count} times or "
            "more, so there is none to learn; take more text, or min_count=1 (--min-count 1)"
        )
    report = make_report(chunks, selection, table, [PartCounts(), PartCounts()])
    dropped = ", ".join(f"{count:,} {name}" for name, count in report["dropped"].items() if count)
    raise DataError(
        f"the corpus is empty: of {report['characters']:,} characters no sentence is left to train on; left "
        f"out: {dropped or 'nothing'}; check the files, min_tokens and max_tokens"
    )


def _write_shards(
    chunks: Sequence[Chunk], selection: Selection, table: TypeTable, folder: Path, start_step: StartStep
) -> tuple[list[ShardWriter], list[PartCounts]]:
    """Write the sentences of both parts with the ids of the corpus."""
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
    for writer in writers:
        writer.finish()
    return writers, counts


def _delete_part(part: Path) -> None:
    """Delete what the preparation needed; job.json last, since it tells what the folder is."""
    if not (part / "job.json").exists():
        return
    for name in ("chunks", "types", "finished"):
        shutil.rmtree(part / name, ignore_errors=True)
    (part / "job.json").unlink()
    part.rmdir()
