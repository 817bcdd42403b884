"""Load a model from a path. Files are recognised by their content, not by their names."""

from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from elmokit.base import Kind, other_kind, plain_reason
from elmokit.errors import ModelFileError
from elmokit.formats import archives, bilm_hdf5, native, tf_checkpoint
from elmokit.formats.bundle import ModelBundle, SoftmaxFile, read_vocabulary, vocabulary_rows
from elmokit.formats.inspect import describe_file, file_kind, read_json, try_json
from elmokit.formats.many_langs_files import is_many_langs, read_many_langs
from elmokit.formats.options import looks_like_options
from elmokit.text import TokenizerSpec, Vocabulary

BUNDLED = Path(__file__).parent.parent / "models"
BUNDLED_TASKS = BUNDLED / "tasks"

# Published models do not record their tokenizer; our rules tokenise as Moses and the treebanks do.
UNRECORDED = TokenizerSpec(name="rules")


def bundled_names() -> list[str]:
    """Return the names of the models that come with the package."""
    return sorted(config.parent.name for config in BUNDLED.glob("*/config.json"))


def bundled_task_names() -> list[str]:
    """Return the names of the task models that come with the package."""
    return sorted(config.parent.name for config in BUNDLED_TASKS.glob("*/config.json"))


def load_model(path: str | Path, weights: str | Path | None = None) -> ModelBundle:
    """Read a model of any supported format.

    Args:
        path: a folder, an options file, a weights file or TensorFlow checkpoint beside its options, a zip of
            these, or the name of a bundled model.
        weights: the weights, if they are not in the folder of the options, or not the only ones there. A
            checkpoint is named by its prefix (model.ckpt-100) or by its .index file.

    Raises:
        ModelFileError, ConfigError: there is no model, it is damaged, or its files do not fit together.
    """
    place = find_model(path)
    try:
        return _load(place, None if weights is None else _index_of(Path(weights)))
    except ModelFileError as error:
        if str(path) in bundled_names() and place != BUNDLED / str(path):
            raise ModelFileError(f"{error}. It hides the bundled model {path}: rename it") from error
        raise
    except OSError as error:
        raise ModelFileError(
            f"{str(error.filename or path)[:300]}: cannot be read ({plain_reason(error)})"
        ) from error


def _load(place: Path, weights: Path | None) -> ModelBundle:
    if weights is not None and not weights.is_file():
        raise ModelFileError(f"weights {weights}: expected a file, it is {describe_file(weights)}")
    wrong = other_kind(place, Kind.MODEL)
    if wrong is not None and weights is None:
        raise ModelFileError(wrong)
    if place.is_dir():
        return _load_folder(place, None, weights)
    kind = file_kind(place)
    if kind == "hdf5" and bilm_hdf5.holds_vectors(bilm_hdf5.dataset_shapes(place)):
        raise ModelFileError(f"{place} is {Kind.VECTORS}, not {Kind.MODEL}")
    if kind == "zip":
        return _load_zip(place, weights)
    if (kind == "hdf5" or tf_checkpoint.is_checkpoint(place)) and weights is None:
        return _load_folder(place.parent, None, place)
    if kind == "json":
        data = read_json(place)
        if native.looks_native(data) and weights is None:
            return native.read_native(place.parent)
        if looks_like_options(data):
            return _load_folder(place.parent, place, weights)
    raise ModelFileError(
        f"{place}: is {describe_file(place)}; expected a model folder, an options.json with the sizes of an "
        "LSTM, HDF5 weights or a TensorFlow checkpoint beside their options, or a zip of these"
    )


def find_model(path: str | Path) -> Path:
    """Return the path, or that of the bundled model with this name."""
    try:
        place = _index_of(Path(path))
        if place.exists():
            return place
    except OSError as error:  # for example a whole text instead of a path
        raise ModelFileError(f"{str(path)[:60]}…: is not a path to a model ({error.strerror})") from error
    names = bundled_names()
    if str(path) in names:
        return BUNDLED / str(path)
    if str(path).startswith(("bert:", "bert-mean:")):
        raise ModelFileError(
            f"{path}: is a BERT, and this needs an ELMo; a BERT embeds, fills gaps, scores sentences and is "
            "an encoder of tasks"
        )
    if "://" in str(path):
        raise ModelFileError(
            f"{path}: elmokit never downloads; fetch the files yourself and pass their folder"
        )
    if str(path) in bundled_task_names():
        raise ModelFileError(f"{path} is {Kind.TASK}, not {Kind.MODEL}")
    bundled = f"or one of the bundled {', '.join(names)}" if names else "(no models are bundled)"
    raise ModelFileError(f"{path}: no such file or folder; expected a path to a model {bundled}")


def _index_of(path: Path) -> Path:
    """Return the path; for the prefix of a TensorFlow checkpoint, that of its index file."""
    index = path.with_name(path.name + ".index") if path.name else path
    return index if not path.exists() and index.is_file() else path


@dataclass
class _Contents:
    """The files of a folder by kind."""

    options: list[Path] = field(default_factory=list)
    weights: list[Path] = field(default_factory=list)
    checkpoints: list[Path] = field(default_factory=list)
    softmax: list[tuple[Path, dict[str, tuple[int, ...]]]] = field(default_factory=list)
    vocabularies: list[Path] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    damaged: list[ModelFileError] = field(default_factory=list)


def _survey(folder: Path) -> _Contents:
    found = _Contents()
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            continue
        try:
            kind = file_kind(path)
            shapes = bilm_hdf5.dataset_shapes(path) if kind == "hdf5" else {}
            data = read_json(path) if kind == "json" else {}
        except ModelFileError as error:  # reported only if the model is not found
            found.damaged.append(error)
            continue
        if kind == "hdf5":
            if bilm_hdf5.holds_weights(shapes):
                found.weights.append(path)
            if bilm_hdf5.holds_softmax(shapes):
                found.softmax.append((path, shapes))
        elif looks_like_options(data):
            found.options.append(path)
        elif path.suffix == ".index" and tf_checkpoint.is_checkpoint(path):
            found.checkpoints.append(path)
        elif path.name.startswith("vocab") and path.suffix in (".txt", ".gz", ".xz"):
            found.vocabularies.append(path)
        else:
            found.others.append(path.name)
    return found


def _load_folder(folder: Path, options: Path | None, weights: Path | None) -> ModelBundle:
    if options is None and weights is None:
        if native.looks_native(try_json(folder / "config.json")):
            return native.read_native(folder)
        if is_many_langs(folder):
            return read_many_langs(folder, UNRECORDED)
    found = _survey(folder)
    options = options or _only(
        found.options, folder, "options file", "pass that file instead of the folder", found
    )
    if weights is None:
        hint = "pass one of them as weights="
        if found.weights or not found.checkpoints:
            weights = _only(found.weights, folder, "HDF5 file with the weights of a biLM", hint, found)
        else:
            latest = tf_checkpoint.latest_checkpoint(folder, found.checkpoints)
            weights = _only(latest, folder, "TensorFlow checkpoint", hint, found)
    if tf_checkpoint.is_checkpoint(weights):
        model, softmax = tf_checkpoint.read_checkpoint(weights, read_json(options))
        source = f"TensorFlow checkpoint {weights.with_suffix('')}"
    else:
        model = bilm_hdf5.read_weights(weights, read_json(options))
        softmax = _softmax(found, folder, model.config.projection_dim)
        source = f"HDF5 weights {weights}"
    return ModelBundle(
        model=model,
        tokenizer=UNRECORDED,
        vocabulary=_vocabulary(found.vocabularies, vocabulary_rows(model.config, softmax)),
        softmax=softmax,
        source=f"options {options} and {source}",
    )


def _only(candidates: list[Path], folder: Path, what: str, hint: str, found: _Contents) -> Path:
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        names = ", ".join(path.name for path in candidates)
        raise ModelFileError(f"{folder}: holds more than one {what}: {names}; {hint}")
    if found.damaged:
        raise found.damaged[0]
    others = ", ".join(found.others[:5]) or "nothing else"
    raise ModelFileError(
        f"{folder}: holds no {what} (found {others}); pass the folder or file of an ELMo model"
    )


def _vocabulary(candidates: list[Path], rows: int | None) -> Vocabulary | None:
    """Load the folder's vocabulary; as in simple_elmo, a compressed one comes first."""
    if not candidates:
        return None
    first = max(candidates, key=lambda path: (path.suffix == ".gz", path.name == "vocab.txt"))
    return read_vocabulary(first, rows)


def _softmax(found: _Contents, folder: Path, dim: int) -> SoftmaxFile | None:
    if len(found.softmax) > 1:
        names = ", ".join(path.name for path, _ in found.softmax)
        raise ModelFileError(f"{folder}: holds more than one softmax: {names}; keep only one")
    return bilm_hdf5.softmax_file(*found.softmax[0], dim) if found.softmax else None


def _load_zip(path: Path, weights: Path | None) -> ModelBundle:
    with archives.unpacked(path) as folder:
        bundle = _load_folder(model_home(folder), None, weights)
        softmax = bundle.softmax
        if softmax is not None:  # the file is gone when this block ends
            softmax = SoftmaxFile(softmax.num_words, partial(copy, softmax.read()))
    return replace(bundle, softmax=softmax, source=f"zip {path}")


def model_home(folder: Path) -> Path:
    """Return the folder of an unpacked archive that holds the model: the top one, or one inside it."""
    files = sorted((file for file in folder.rglob("*") if file.is_file()), key=lambda file: len(file.parts))
    for file in files:
        data = try_json(file)
        if looks_like_options(data) or native.looks_native(data) or is_many_langs(file.parent):
            return file.parent
    return files[0].parent if files else folder
