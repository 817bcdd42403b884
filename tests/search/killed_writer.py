"""A program that kills writers of an index with SIGKILL, each just before another of its file operations.

    python -m tests.search.killed_writer FOLDER KILLS

It prints nothing and ends with 0 if after every kill the index opened, was one of the states that a writer
commits, and had the right content when the same work was done again.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elmokit.embed import Embedder
from elmokit.search import Document, Index, segment_writer
from elmokit.search import index as index_module
from elmokit.search.manifest import Manifest
from elmokit.text import TokenizerSpec
from tests.tiny import tiny_bundle

OLD = [Document(id=str(number), text=f"The cat has the number {number}.") for number in range(8)]
NEW = [Document(id=str(number), text=f"The dog has the number {number}.") for number in range(5, 12)]
_CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")


def work(folder: Path, embedder: Embedder) -> None:
    """Index, append and replace, delete, merge."""
    with Index.build(OLD, folder, model=embedder, language="en") as index:
        index.add(NEW)
        index.delete(["1", "6", "11"])
        index.merge()


def content(folder: Path, embedder: Embedder) -> tuple[tuple[str, str], ...]:
    """Return the documents in their order of names, each as often as it is there."""
    index = Index.open(folder, model=embedder)
    index.check()
    assert len(index) == len(list(index)) == len(index.vectors()[0])
    return tuple(sorted((one.id, one.text) for one in index))


def in_fork(run: Callable[[], Any]) -> int:
    """Run in a process of its own; return how it ended, negative for a signal."""
    child = os.fork()
    if child == 0:
        run()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class _Counter:
    """Counts the operations on files of a folder, and stops the process before one of them."""

    def __init__(self, folder: Path, stop: int | None = None) -> None:
        self._folder, self._stop, self.count = str(folder), stop, 0
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CHANGES and str(arguments[0]).startswith(self._folder):
            self.count += 1
            if self.count == self._stop:
                os.kill(os.getpid(), signal.SIGKILL)


def states_of(root: Path, embedder: Embedder) -> tuple[int, set[Any]]:
    """Return the number of file operations of the work, and the content after each commit."""
    counter = _Counter(root / "counted")
    work(root / "counted", embedder)
    operations = counter.count
    states: set[Any] = {()}
    write = Manifest.write

    def recorded(self: Manifest, folder: Path) -> None:
        write(self, folder)
        states.add(content(folder, embedder))

    Manifest.write = recorded  # type: ignore[method-assign]
    work(root / "recorded", embedder)
    Manifest.write = write  # type: ignore[method-assign]
    return operations, states


def main(root: Path, kills: int) -> None:
    index_module._SEGMENT_CHARACTERS = 700  # three documents
    segment_writer._MOST_SEGMENTS = 3
    embedder = Embedder(tiny_bundle(), tokenizer=TokenizerSpec(name="rules", language="en"))
    operations, states = states_of(root, embedder)
    expected = content(root / "recorded", embedder)
    for number in range(kills):
        folder = root / f"killed-{number}"
        stop = 1 + operations * number // kills

        def killed(folder: Path = folder, stop: int = stop) -> None:
            _Counter(folder, stop)
            work(folder, embedder)

        assert in_fork(killed) == -signal.SIGKILL, f"operation {stop} of {operations} was not reached"
        if (folder / "index.json").exists():
            found = content(folder, embedder)
            assert found in states, f"killed before operation {stop}: {found}"
        work(folder, embedder)
        assert content(folder, embedder) == expected
        assert len(list(folder.iterdir())) == 2  # the manifest and one segment
    assert not [path for path in root.rglob(".*") if path.name != ".lock"]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
