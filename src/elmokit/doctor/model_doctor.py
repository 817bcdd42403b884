"""Find out what a file or folder is, whether it is a complete model, and what is wrong with it."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from elmokit.errors import DataError, ElmoError
from elmokit.formats import (
    ModelBundle,
    dataset_shapes,
    describe_file,
    file_kind,
    file_sha256,
    find_model,
    holds_vectors,
    holds_weights,
    is_checkpoint,
    load_model,
    looks_like_options,
    looks_native,
    model_home,
    try_json,
    unpacked,
)

Level = Literal["ok", "note", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """Something that was found: ok, worth knowing (note), probably wrong (warning), or wrong (error)."""

    level: Level
    message: str


def diagnose_model(path: str | Path, weights: str | Path | None = None) -> list[Finding]:
    """Check the files of a model.

    Args:
        path: a model, or what should be one; see `elmokit.load`.
        weights: the weights, if they are not beside the options.
    """
    try:
        place = find_model(path)
        if place.is_file() and file_kind(place) == "zip":
            with unpacked(place) as folder:
                inside = diagnose_model(model_home(folder), weights)
            named = [Finding(f.level, f.message.replace(str(folder), str(place))) for f in inside]
            return [Finding("ok", f"{place}: a zip archive that is not damaged"), *named]
        bundle = load_model(place, weights)
    except ElmoError as error:
        return [Finding("error", str(error)), *_reasons(Path(path), weights)]
    return [*_content(bundle), *_files_of_model(place)]


def _content(bundle: ModelBundle) -> Iterator[Finding]:
    """Describe a model that loads, and check its numbers."""
    config = bundle.model.config
    parameters = sum(parameter.numel() for parameter in bundle.model.parameters())
    size = f"{config.num_outputs} layers of {config.output_dim} numbers per token"
    yield Finding("ok", f"a complete model: {bundle.source}; {size}, {parameters:,} parameters")
    tensors: dict[str, torch.Tensor] = dict(bundle.model.named_parameters())
    try:
        if bundle.softmax is not None:
            tensors |= {f"softmax {name}": tensor for name, tensor in bundle.softmax.read().tensors().items()}
    except ElmoError as error:
        yield Finding("error", str(error))
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            yield Finding("error", f"{name} holds NaN or infinite numbers; get the file again")
    if bundle.vocabulary is not None:
        try:
            bundle.vocabulary.require_specials()
        except DataError as error:
            yield Finding("warning", f"{error}; without it the language model cannot be scored")
    if bundle.tokenizer.language is None:
        yield Finding(
            "note",
            "the files do not record the tokenizer and language of the training text; the tokenizer "
            f"{bundle.tokenizer.name!r} is used: choose another if you know better",
        )


def _files_of_model(place: Path) -> Iterator[Finding]:
    """Check the files of a model that loads: have they changed since, and can other systems read them?"""
    for path in _files(place):
        data = try_json(path)
        if looks_native(data):
            yield from _changed(path.parent, data.get("sha256"))
        elif looks_like_options(data):
            yield from _unlike_allennlp(path, data)
        else:
            yield from _by_kind(path)


def _changed(folder: Path, recorded: object) -> Iterator[Finding]:
    if not isinstance(recorded, dict):
        yield Finding("note", f"{folder}: config.json has no sha256 of the weights")
        return
    for name, digest in recorded.items():
        path = folder / Path(str(name)).name
        if path.is_file() and file_sha256(path) != digest:
            message = "has changed: its sha256 differs from that in config.json; get the folder again"
            yield Finding("error", f"{path}: {message}")
        elif path.is_file():
            yield Finding("ok", f"{path}: unchanged (sha256)")


def _unlike_allennlp(path: Path, options: dict[str, Any]) -> Iterator[Finding]:
    characters = options.get("char_cnn") or {}
    if characters.get("n_characters") == 261:
        yield Finding(
            "note",
            f"{path}: n_characters is 261, as bilm-tf's training writes it: elmokit reads it, but bilm-tf's "
            "prediction does not; convert it with format='hdf5', which writes 262",
        )
    if not options["lstm"].get("use_skip_connections"):
        yield Finding("note", f"{path}: no skip connections: elmokit reads it, but AllenNLP does not")
    if characters and characters.get("max_characters_per_token", 50) != 50:
        count = characters["max_characters_per_token"]
        yield Finding("note", f"{path}: {count} characters per token: elmokit reads it, AllenNLP only 50")


def _reasons(path: Path, weights: str | Path | None) -> Iterator[Finding]:
    """Say why a model does not load: what is there instead, and which sizes do not agree."""
    with suppress(OSError):
        files = _files(path) if path.exists() else []
        for file in files:
            yield from _by_kind(file)
        options, found = _options(files), _weights([Path(weights)] if weights else files)
        if path.is_file() and (options or found):  # the other one may be beside it
            beside = _files(path.parent)
            options, found = options or _options(beside), found or _weights(beside)
        if len(found) == 1 and len(options) <= 1:
            yield from _sizes_apart(options[0] if options else None, sizes_of(found[0]))


def _by_kind(path: Path) -> Iterator[Finding]:
    """Report files that are often mistaken for a model's."""
    with suppress(ElmoError):
        kind = describe_file(path)
        if kind == "empty" or kind.startswith(("a Git LFS pointer", "a web page")):
            yield Finding("error", f"{path}: is {kind}")
    if re.search(r"\.ckpt(-\d+)?\.index$", path.name) and not is_checkpoint(path):
        yield Finding("error", f"{path}: the index of a TensorFlow checkpoint, truncated; get it again")
    shapes = _shapes(path)
    if holds_vectors(shapes):
        yield Finding("note", f"{path}: vectors of {len(shapes):,} sentences, not weights")


def _sizes_apart(options: dict[str, Any] | None, sizes: dict[str, Any]) -> Iterator[Finding]:
    if options is None:
        known = ", ".join(f"{name} {size}" for name, size in sizes.items())
        yield Finding(
            "note",
            f"the options file is missing; the weights have {known}, but not the activation, clips and skip "
            "connections: get the options file that came with them",
        )
        return
    for name, size in sizes.items():
        said: Any = options
        for key in name.split("."):
            said = said.get(key) if isinstance(said, dict) else None
        if said != size and not (
            said is None and size in (0, 1)
        ):  # a missing key means no highway, or one layer
            yield Finding("error", f"the weights have {name} {size}, the options say {said}")


def sizes_of(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Return the sizes that follow from the shapes of weights, under their names in options.json.

    Example:
        >>> sizes_of({"RNN_0/RNN/LSTMCell/W_0": (32, 256), "char_embed": (261, 4)})["lstm.dim"]
        64
    """
    kernels = [shape for name, shape in shapes.items() if re.fullmatch(r"RNN_0/.*LSTMCell/W_0", name)]
    filters = [shapes.get(f"CNN/W_cnn_{i}", ()) for i in range(len(shapes))]
    sizes: dict[str, Any] = {"lstm.n_layers": len(kernels)}
    if kernels and len(kernels[0]) == 2:
        sizes |= {"lstm.projection_dim": kernels[0][0] // 2, "lstm.dim": kernels[0][1] // 4}
    if len(shapes.get("char_embed", ())) == 2:
        sizes["char_cnn.embedding.dim"] = shapes["char_embed"][1]
        sizes["char_cnn.filters"] = [[shape[1], shape[3]] for shape in filters if len(shape) == 4]
        sizes["char_cnn.n_highway"] = sum(name.endswith("/W_carry") for name in shapes)
    return sizes


def _files(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.is_file()) if place.is_dir() else [place]


def _options(files: list[Path]) -> list[dict[str, Any]]:
    return [data for data in map(try_json, files) if looks_like_options(data)]


def _weights(files: list[Path]) -> list[dict[str, tuple[int, ...]]]:
    return [shapes for shapes in map(_shapes, files) if holds_weights(shapes)]


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    with suppress(ElmoError):
        if path.is_file() and file_kind(path) == "hdf5":
            return dataset_shapes(path)
    return {}
