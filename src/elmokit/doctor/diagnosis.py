"""Check anything that elmokit writes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.base import Kind
from elmokit.doctor.descriptions import describe, path_kind, unfinished_run
from elmokit.doctor.model_doctor import Finding, diagnose_model
from elmokit.errors import ElmoError
from elmokit.formats import find_model, load_model
from elmokit.search import Index
from elmokit.tasks import load_task
from elmokit.tasks.core import find_task_folder
from elmokit.text import known_scripts
from elmokit.training import Checkpoints
from elmokit.vectors import read_vectors


def diagnose(path: str | Path, weights: str | Path | None = None) -> list[Finding]:
    """Check the files of a model, or of anything else that elmokit writes.

    Args:
        path: A model, or what should be one (see `elmokit.load`); a task model, a corpus, an index, a
            file of vectors, or an interrupted run.
        weights: The weights of a model, if they are not beside the options.

    Returns:
        The findings. What is there can be used if none of them is an error.

    Example:
        >>> diagnose("no-such-model")[0].level
        'error'
    """
    path = find_task_folder(path)
    kind = path_kind(path)
    if kind in (None, Kind.MODEL) or weights is not None:
        found = diagnose_model(path, weights)
        if any(finding.level == "error" for finding in found):
            return found
        place = find_model(path)
        return [*found, *(_checked(_run, place) if place.is_dir() else ())]
    return [*_checked(_described, Path(path)), *_checked(_CHECKS.get(kind, _nothing), Path(path))]


def is_cased(path: str | Path, weights: str | Path | None = None) -> bool:
    """Return whether a model was trained on text with capitals; True if there is no model."""
    try:
        return not load_model(path, weights).tokenizer.lowercase
    except ElmoError:
        return True


def scripts_of(path: str | Path, weights: str | Path | None = None) -> frozenset[str]:
    """Return the scripts of the text that a model was trained on; none if they are not known."""
    try:
        vocabulary = load_model(path, weights).vocabulary
    except ElmoError:
        return frozenset()
    return known_scripts(vocabulary.tokens) if vocabulary else frozenset()


def _checked(check: Any, path: Path) -> Iterator[Finding]:  # noqa: ANN401 (a function from a path to findings)
    try:
        yield from check(path)
    except ElmoError as error:
        yield Finding("error", str(error))


def _described(path: Path) -> Iterator[Finding]:
    facts = describe(path)
    names = ("task", "encoders", "documents", "vocabulary", "tokens", "sentences", "layers", "dim")
    shown = ", ".join(f"{name} {facts[name]}" for name in names if facts.get(name) is not None)
    yield Finding("ok", f"{path} is {facts['kind']}{f': {shown}' if shown else ''}")
    yield from _state(facts)


def _state(facts: dict[str, Any]) -> Iterator[Finding]:
    """Say how far work is that is not finished."""
    if "run" not in facts:
        return
    done = f", {facts['progress']:.0%} done" if facts.get("progress") is not None else ""
    if facts["run"] == "running":
        yield Finding("note", f"a run is at work here{done}")
    else:
        yield Finding("note", f"interrupted run{done}; to go on: {facts['continue']}")


def _run(folder: Path) -> Iterator[Finding]:
    """Check the run that a model's folder holds, if it is not finished."""
    facts = unfinished_run(folder)
    yield from _state(facts)
    if facts:
        yield from _checkpoints(folder / "training")


def _checkpoints(run: Path) -> Iterator[Finding]:
    if Checkpoints(run).load() is not None:  # it verifies the checksums, and skips a damaged one
        yield Finding("ok", f"{run / 'checkpoints'}: there is a whole checkpoint to go on from")


def _task(folder: Path) -> Iterator[Finding]:
    model = load_task(folder)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    yield Finding("ok", f"a complete model, whose encoders are unchanged; {parameters:,} parameters")


def _index(folder: Path) -> Iterator[Finding]:
    index = Index.open(folder)
    index.check()
    yield Finding("ok", "all files of the index are unchanged (sha256)")
    embedder = index.embedder
    yield Finding("ok", f"its model is the one that it was built with: {embedder.path}")


def _vectors(path: Path) -> Iterator[Finding]:
    with read_vectors(path) as file:
        for number in {0, len(file) // 2, len(file) - 1} if len(file) else ():
            sentence = file[number]
            array = sentence.vectors if sentence.layers is None else sentence.layers
            if array is not None and not np.isfinite(array).all():
                yield Finding("error", f"{path}: sentence {number} has NaN or infinite numbers")


def _nothing(path: Path) -> Iterator[Finding]:
    return iter(())


_CHECKS = {
    Kind.TASK: _task,
    Kind.TASK_RUN: _checkpoints,
    Kind.PRETRAINING: lambda folder: _checkpoints(folder / "training"),
    Kind.INDEX: _index,
    Kind.VECTORS: _vectors,
}
