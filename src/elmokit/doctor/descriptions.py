"""Describe anything that elmokit writes, or reads as a model, as plain data."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from elmokit.base import Kind, is_held, kind_of, parse_json
from elmokit.corpus import PreparedCorpus
from elmokit.doctor.model_info import model_info
from elmokit.errors import DataError, ElmoError
from elmokit.formats import file_kind, find_model, load_model
from elmokit.pretraining import RunRecord, pretraining_summary
from elmokit.search import describe_index
from elmokit.tasks.core import find_task_folder, read_config
from elmokit.training import summarise_run
from elmokit.vectors import read_vectors


def describe(path: str | Path, weights: str | Path | None = None) -> dict[str, Any]:
    """Describe a model, a task model, a corpus, an index, a file of vectors, or an unfinished run.

    Args:
        path: Of anything that elmokit writes; or a model as `elmokit.load` takes it, or the name of a
            bundled task model.
        weights: The weights of a model, if they are not beside its options.

    Returns:
        Data for JSON. `kind` says what it is. Of work that is not finished, `run` says whether it is running
        or interrupted, `progress` how much of it is done, and `continue` how to go on.

    Raises:
        ModelFileError, ConfigError, DataError: It is nothing of these, or damaged.

    Example:
        >>> describe("en")["kind"], describe("en")["layers"]
        ('an ELMo model', 3)
    """
    path = find_task_folder(path)
    kind = path_kind(path)
    describer = _DESCRIBERS.get(kind)
    if describer is None or weights is not None:
        place = find_model(path)
        facts = model_info(load_model(path, weights))
        run = unfinished_run(place) if place.is_dir() else {}
        return {"kind": str(Kind.MODEL), **run, **facts}
    try:
        return {"kind": str(kind), "path": str(path), **describer(Path(path))}
    except (
        LookupError,
        TypeError,
        AttributeError,
        ValueError,
        OSError,
    ) as error:  # in whatever way
        raise DataError(
            f"{path} is {kind}, but damaged ({type(error).__name__}: {error}); copy or make it again"
        ) from error


def path_kind(path: str | Path) -> Kind | None:
    """Return what elmokit has written at a path, vectors in HDF5 and tables included; None if nothing."""
    place = Path(path)
    try:
        kind = kind_of(place)
        if kind is None and place.is_file() and file_kind(place) in ("hdf5", "other"):
            with read_vectors(place):
                return Kind.VECTORS
    except (ElmoError, OSError):
        return None
    return kind


def unfinished_run(folder: Path) -> dict[str, Any]:
    """Describe the pretraining run in a folder; nothing if there is none, or it is finished."""
    found = pretraining_summary(folder)
    if found is None or (found.progress is not None and found.progress >= 1):
        return {}
    return _state(folder, f"elmokit.pretrain(out={str(folder)!r}, resume=True)") | asdict(found)


def _pretraining(folder: Path) -> dict[str, Any]:
    record = RunRecord.load(folder / "training")
    started = {} if record is None else {"command": record.command, "date": record.date}
    return unfinished_run(folder) | started


def _task(folder: Path) -> dict[str, Any]:
    config = read_config(folder)
    return {
        "task": config["task"],
        **_task_run(folder),
        "labels": config.get("labels"),
        "encoders": [encoder["spec"] for encoder in config["encoders"]],
        "tokenizer": config["tokenizer"],
        "dev scores": _scores(folder / "scores.json"),
        "settings": config["settings"],
    }


def _scores(path: Path) -> dict[str, Any] | None:
    """Return the scores alone; the file also has those of each label, and what was taken for what."""
    scores = parse_json(path.read_bytes()) if path.is_file() else None
    return None if scores is None else {name: scores.get(name) for name in ("main", "values", "interval")}


def _task_run(folder: Path) -> dict[str, Any]:
    found = summarise_run(folder)
    if found is None:
        return {}
    return _state(folder, "train with the same arguments and resume=True") | asdict(found)


def _corpus(folder: Path) -> dict[str, Any]:
    corpus = PreparedCorpus(folder)
    shown = ("documents", "sentences", "tokens", "characters", "types", "train", "heldout", "dropped")
    return {
        "fingerprint": corpus.fingerprint,
        "tokenizer": corpus.tokenizer.to_dict(),
        "vocabulary": len(corpus.vocabulary),
        **{name: corpus.report[name] for name in shown},
        "sources": [source["path"] for source in corpus.job["sources"]],
    }


def _vectors(path: Path) -> dict[str, Any]:
    with read_vectors(path) as file:
        facts: dict[str, Any] = {"sentences": len(file)}
        if len(file):
            first = file[0]
            array = first.vectors if first.layers is None else first.layers
            if array is None:  # the first row could not be embedded
                return facts | {"first row": first.error, "written with": file.metadata}
            per = file.metadata.get("unit", "sentence" if array.ndim == 1 else "token")
            layers = len(array) if array.ndim == 3 else 1
            facts |= {"layers": layers, "dim": array.shape[-1], "dtype": str(array.dtype), "vectors per": per}
            facts |= {"first text": first.text, "tokens and offsets": first.tokens is not None}
        facts |= {"written with": file.metadata} if file.metadata else {}
    return facts


def _index(folder: Path) -> dict[str, Any]:
    facts = describe_index(folder)
    unfinished = facts.pop("unfinished") or is_held(folder)
    return (_state(folder, "index the same documents again") if unfinished else {}) | facts


def _unfinished(folder: Path) -> dict[str, Any]:
    target = Path(str(folder).removesuffix(".part"))
    job = parse_json((folder / "job.json").read_bytes())
    return {"target": str(target), **_state(target, "embed the same text again with resume=True"), "job": job}


def _state(output: Path, how: str) -> dict[str, Any]:
    """Say whether a process is at work on an output, and if not, how to go on."""
    return {"run": "running"} if is_held(output) else {"run": "interrupted", "continue": how}


_DESCRIBERS: dict[Kind | None, Callable[[Path], dict[str, Any]]] = {
    Kind.TASK: _task,
    Kind.TASK_RUN: _task_run,
    Kind.PRETRAINING: _pretraining,
    Kind.CORPUS: _corpus,
    Kind.INDEX: _index,
    Kind.VECTORS: _vectors,
    Kind.PREPARATION: lambda folder: _unfinished(folder) | {"continue": "prepare the same text again"},
    Kind.EMBEDDING: _unfinished,
    Kind.COMPARISON: lambda folder: {"table": (folder / "comparison.md").read_text(encoding="utf-8")},
}
