"""An index of documents on disk: added to, deleted from and searched; see docs/guides/search.md."""

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from elmokit.base import (
    check_whole_number,
    draft_folder,
    group_until,
    locked,
    progress_display,
    settings_from_dict,
    temporary_folder,
    write_errors,
)
from elmokit.embed import Embedder, load_elmo
from elmokit.errors import ConfigError, DataError
from elmokit.search.documents import Document, as_documents
from elmokit.search.index_arrays import check_files
from elmokit.search.index_creation import IndexReport, create_index, index_settings, interruption, may_replace
from elmokit.search.manifest import Manifest, SegmentEntry, entry_of, mark_deleted
from elmokit.search.metadata import Filter
from elmokit.search.passage_vectors import PassageVectors
from elmokit.search.passages import PassageSettings
from elmokit.search.quantised import Floats, to_unit
from elmokit.search.query import RETRIEVERS, Hit, Searcher
from elmokit.search.segment_writer import last_segments, merge_segments, write_segment
from elmokit.search.segments import document_digest
from elmokit.search.terms import make_term_finder

_SEGMENT_CHARACTERS = 8_000_000  # of text; its words take some 300 MB while they are written


class Index:
    """An open index; `Index.build` makes one, `Index.open` opens one. It can be used as a context manager.

    Searching sees the index as it was when it was opened, or last changed through this object. Several
    processes may read an index while one writes it.

    Attributes:
        path: Its folder.
        report: What `build` has added; None for an index that was opened.
    """

    report: IndexReport | None = None

    def __init__(self, path: Path, embedder: Embedder | None, temporary: contextlib.ExitStack) -> None:
        self.path = path
        self._given = embedder
        self._temporary = temporary
        self._read()

    @classmethod
    def build(
        cls,
        documents: Iterable[str | Document],
        path: str | Path | None = None,
        *,
        model: str | Path | Embedder = "en",
        words: bool = True,
        language: str | None = None,
        passages: PassageSettings | None = None,
        overwrite: bool = False,
        progress: bool = False,
    ) -> "Index":
        """Build an index, or go on with one that was interrupted.

        Args:
            documents: Texts, which are named by their position, or Documents.
            path: The folder; by default a temporary one that is deleted with the index.
            model: What `elmokit.load` opens, or a loaded model.
            words: Whether to store the vectors of words, about 200 bytes each: for late interaction.
            language: The language of the text, for sentences and words; by default the model's.
            passages: How documents are cut into passages.
            overwrite: Replace an index that is there, once the new one is whole.
            progress: Show progress on standard error, if that is a terminal.

        Raises:
            ConfigError: The language is not known, or the index there has other settings.
            DataError: The folder cannot be written, or has something else in it.
            BusyError: Another process is writing the index.
        """
        temporary = contextlib.ExitStack()
        folder = temporary.enter_context(temporary_folder()) / "index" if path is None else Path(path)
        embedder = model if isinstance(model, Embedder) else load_elmo(model)
        language = language or embedder.tokenizer_spec.language
        if language is None:
            raise ConfigError("the model does not say its language; pass that of the text, language='en'")
        make_term_finder(language)
        read = as_documents(documents)
        documents = chain(list(islice(read, 1)), read)  # what cannot be read leaves no empty index
        settings = index_settings(embedder, language, words=words, passages=passages or PassageSettings())
        with locked(folder, parents=True), write_errors(folder):
            replaced = overwrite and may_replace(folder)  # by what is whole
            with (
                draft_folder(folder, overwrite=True) if replaced else contextlib.nullcontext(folder) as place
            ):
                create_index(place, settings)
                new = cls(place, embedder, contextlib.ExitStack())
                report = (new._add if replaced else new.add)(documents, progress=progress)
        index = cls(folder, embedder, temporary)
        weakref.finalize(index, temporary.close)  # so that a forgotten index leaves no folder, and no warning
        index.report = report
        return index

    @classmethod
    def open(cls, path: str | Path, *, model: str | Path | Embedder | None = None) -> "Index":
        """Open an index.

        Args:
            path: Its folder.
            model: The model it was built with, if that is no longer where it was; it is loaded when needed.

        Raises:
            DataError: There is no index, or a file of it is damaged; the message names it.
        """
        given = model if isinstance(model, Embedder) or model is None else load_elmo(model)
        return cls(Path(path), given, contextlib.ExitStack())

    def _read(self) -> None:
        for attempt in (1, 2, 3):
            self._manifest = Manifest.read(self.path)
            try:
                self._segments = [self._manifest.open(self.path, entry) for entry in self._manifest.entries]
                break
            except DataError:
                if attempt == 3 or Manifest.read(self.path) == self._manifest:
                    raise  # else a writer has just merged segments
        self.__dict__.pop("_searcher", None)

    @cached_property
    def embedder(self) -> Embedder:
        """Return the model.

        Raises:
            ConfigError: It is not the one that the index was built with.
        """
        recorded = self._manifest.settings.get("model")
        if self._given is None and not isinstance(recorded, str):
            raise ConfigError(f"{self.path} does not say where its model is; pass it as model=")
        embedder = self._given or load_elmo(str(recorded))
        found = PassageVectors(embedder).fingerprint()
        if found != self._manifest.settings.get("fingerprint"):
            raise ConfigError(
                f"{self.path} was built with another model, or other statistics of sentence vectors, than "
                f"{embedder.source}: its vectors cannot be compared. It was {recorded}; pass that one "
                "as model=, or build the index again"
            )
        return embedder

    @property
    def settings(self) -> dict[str, Any]:
        """Return what the index records of itself: model, language, passages, version."""
        return dict(self._manifest.settings)

    def __len__(self) -> int:
        return sum(segment.num_live for segment in self._segments)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(segment.find(name) is not None for segment in self._segments)

    def __getitem__(self, name: str) -> Document:
        for segment in self._segments:
            if (row := segment.find(name)) is not None:
                return Document(id=name, text=segment.texts[row], metadata=segment.metadata[row])
        raise KeyError(f"{name!r:.60} is not in {self.path}")

    def __iter__(self) -> Iterator[Document]:
        for segment in self._segments:
            for row in range(len(segment.ids)):
                if segment.deleted is None or not segment.deleted[row]:
                    text, metadata = segment.texts[row], segment.metadata[row]
                    yield Document(id=segment.ids[row], text=text, metadata=metadata)

    def sentences(self) -> Iterator[str]:
        """Read the sentences of all documents."""
        for segment in self._segments:
            for row in range(len(segment.ids)):
                if segment.deleted is None or not segment.deleted[row]:
                    text = segment.texts[row]
                    for start, end in segment.sentences[slice(*segment.sentence_starts[row : row + 2])]:
                        yield " ".join(text[start:end].split())

    def add(self, documents: Iterable[str | Document], *, progress: bool = False) -> IndexReport:
        """Add documents; one with the name of another replaces it, unless they are the same.

        Documents are committed some megabytes at a time. After an interruption or a kill, add them again:
        those that were committed are skipped. The message of a KeyboardInterrupt says how many.

        Raises:
            DataError: The index cannot be written, or a document is not valid.
            BusyError: Another process is writing the index.
        """
        with self._writing():
            return self._add(documents, progress=progress)

    def _add(self, documents: Iterable[str | Document], *, progress: bool) -> IndexReport:
        counts = {"added": 0, "replaced": 0, "unchanged": 0}
        groups = group_until(as_documents(documents), lambda one: len(one.text) + 200, _SEGMENT_CHARACTERS)
        done = 0
        try:
            with progress_display(shown=progress) as start:
                advance = start("documents")
                for group in groups:
                    self._commit({document.id: document for document in group}, counts)
                    done += len(group)
                    self._merge_if_many()
                    advance(len(group))
        except KeyboardInterrupt:
            raise interruption(done, self.path) from None
        return IndexReport(**counts)

    def _commit(self, group: dict[str, Document], counts: dict[str, int]) -> None:
        changed = []
        for document in group.values():
            places = [(one, row) for one in self._segments if (row := one.find(document.id)) is not None]
            same = any(int(one.digests[row]) == document_digest(document) for one, row in places)
            counts["unchanged" if same else "replaced" if places else "added"] += 1
            if not same:
                changed.append(document)
        if not changed:
            return
        settings = self._manifest.settings
        name = f"segment-{self._manifest.next_number:06}"
        manifest = Manifest(settings, self._manifest.entries, self._manifest.next_number + 1)
        with draft_folder(self.path / name) as draft:
            write_segment(
                draft,
                changed,
                PassageVectors(self.embedder),
                find_terms=self._find_terms,
                language=settings["language"],
                passages=settings_from_dict(PassageSettings, settings["passages"], str(self.path)),
                words=bool(settings["words"]),
            )
        names = {document.id for document in changed}
        manifest, _ = mark_deleted(self.path, manifest, self._segments, names)
        self._become(manifest, [*manifest.entries, entry_of(self.path / name)])

    def delete(self, names: Iterable[str]) -> int:
        """Delete documents by their names; return how many there were.

        Raises:
            DataError: The index cannot be written.
            BusyError: Another process is writing it.
        """
        if isinstance(names, str):
            raise ConfigError(f"expected a list of names, found one string {names!r:.60}; pass [name]")
        with self._writing():
            manifest, count = mark_deleted(self.path, self._manifest, self._segments, set(names))
            if count:
                self._become(manifest, manifest.entries)
        return count

    def merge(self) -> None:
        """Merge all segments into one, without what was deleted: smaller, and a little faster to search.

        Raises:
            DataError: The index cannot be written.
            BusyError: Another process is writing it.
        """
        with self._writing():
            if len(self._segments) > 1 or any(one.deleted is not None for one in self._segments):
                self._merge(range(len(self._segments)))

    def _merge_if_many(self) -> None:
        while numbers := last_segments([len(segment.passages) for segment in self._segments]):
            self._merge(numbers)

    def _merge(self, numbers: range) -> None:
        """Merge neighbours, so that documents keep their order."""
        name = f"segment-{self._manifest.next_number:06}"
        entries = self._manifest.entries
        manifest = Manifest(self._manifest.settings, (), self._manifest.next_number + 1)
        chosen = [self._segments[number] for number in numbers]
        before, after = entries[: numbers.start], entries[numbers.stop :]
        if sum(one.num_live for one in chosen) == 0:
            self._become(manifest, [*before, *after])
            return
        with draft_folder(self.path / name) as draft:
            merge_segments(draft, chosen)
        self._become(manifest, [*before, entry_of(self.path / name), *after])

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the lock; see what other processes have written before."""
        with (
            locked(self.path),
            write_errors(self.path, "what was committed is kept; add the documents again"),
        ):
            if Manifest.read(self.path) != self._manifest:
                self._read()
            self._manifest.remove_others(self.path)
            yield

    def _become(self, manifest: Manifest, entries: Iterable[SegmentEntry]) -> None:
        new = Manifest(manifest.settings, tuple(entries), manifest.next_number)
        new.write(self.path)
        self._read()

    @cached_property
    def _find_terms(self) -> Callable[[str], list[str]]:
        return make_term_finder(str(self._manifest.settings.get("language")))

    @cached_property
    def _searcher(self) -> Searcher:
        return Searcher(self._segments, self._find_terms, lambda: PassageVectors(self.embedder))

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        by: Sequence[str] | None = None,
        where: Filter | None = None,
        explain: bool = False,
    ) -> list[Hit]:
        """Find the documents that answer a query best, each with its best passage.

        Args:
            query: Words, a question or a sentence.
            k: How many documents.
            by: The retrievers to fuse: "bm25" (words), "dense" (the vector of the passage), "late" (the
                vectors of words, for the first hundreds of the others); by default all that the index has.
            where: Conditions on metadata: {"year": 1999}, {"lang": ["en", "de"]}, or
                {"year": {"least": 1990, "most": 1999}}.
            explain: Find for each word of the query the word of the passage that is nearest to it.

        Raises:
            ConfigError: A retriever is unknown or not in this index, or a condition cannot be read.
        """
        return self.search_many([query], k, by=by, where=where, explain=explain)[0]

    def search_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        by: Sequence[str] | None = None,
        where: Filter | None = None,
        explain: bool = False,
    ) -> list[list[Hit]]:
        """Search for several queries, which are embedded together; see `search`."""
        check_whole_number("k", k, least=1)
        has_words = bool(self._manifest.settings.get("words"))
        by = tuple(by) if by is not None else RETRIEVERS if has_words else RETRIEVERS[:2]
        unknown = set(by) - set(RETRIEVERS)
        if unknown or not by:
            raise ConfigError(f"retrievers are {', '.join(RETRIEVERS)}, found {sorted(unknown) or 'none'}")
        if "late" in by and not has_words:
            raise ConfigError("this index was built without the vectors of words; build it with words=True")
        asked = list(queries)
        try:
            return self._searcher.search(asked, k, by=by, where=where, explain=explain)
        except DataError:
            if Manifest.read(self.path) == self._manifest:
                raise
            self._read()  # a writer has deleted a file that is opened late
            return self._searcher.search(asked, k, by=by, where=where, explain=explain)

    def check(self) -> None:
        """Compare the checksums of all files.

        Raises:
            DataError: A file is damaged; the message names it.
        """
        for entry in self._manifest.entries:
            check_files(self.path / entry.name, entry.files, thorough=True)

    def vectors(self) -> tuple[list[str], Floats]:
        """Return the document of each passage, and the passages' vectors (n, D), of length 1."""
        names: list[str] = []
        found = [np.zeros((0, int(self.settings["dim"])), np.float32)]
        for segment in self._segments:
            rows = np.arange(len(segment.passages)) if segment.live is None else np.flatnonzero(segment.live)
            names += [segment.ids[row] for row in segment.passages[rows, 0].tolist()]
            found.append(to_unit(segment.vectors.floats(rows)))
        return names, np.concatenate(found)

    def close(self) -> None:
        """Delete the index, if it is a temporary one."""
        self._segments = []
        self._temporary.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
