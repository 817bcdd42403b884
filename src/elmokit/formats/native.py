"""elmokit's own model folder. Files in brackets are optional.

config.json             format, version, sizes, tokenizer, sha256 of the others, weights of `fill`
model.safetensors       the network: float32, float16, or int8 with a `.scale` for each matrix
[vocab.txt]             words
[softmax.safetensors]   `weight` and `bias`; of an adaptive softmax also `cluster_weight`, `cluster_bias`, and
                        the comma-separated cutoffs in the file's metadata
[pooling.safetensors]   how sentence vectors are made (see pooling_file)
[lexicon.json]          ids of `characters` and `words`, for models that have their own
[README.md]             the model card
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from elmokit.base import check_safetensors, refuse_unknown_keys, settings_from_dict, write_json, write_text
from elmokit.errors import ConfigError, DataError, ModelFileError
from elmokit.formats.bundle import ModelBundle, SoftmaxFile, read_vocabulary, vocabulary_rows
from elmokit.formats.inspect import describe_file, read_json, read_section
from elmokit.formats.layout import Shapes, check_dtypes, check_shapes
from elmokit.formats.pooling_file import read_pooling, write_pooling
from elmokit.kernels import int8_scale
from elmokit.model import BiLM, BiLMConfig, FillWeights, Softmax
from elmokit.text import Lexicon, TokenizerSpec

FORMAT = "elmokit"
FORMAT_VERSION = 1
_LEXICON_BYTES = 1024 * 1024 * 1024  # a lexicon may have millions of words
_CHECKED_BYTES = 4 * 1024 * 1024  # some milliseconds
_KEYS = ("format", "format_version", "model", "tokenizer", "sha256", "fill")

StoredType = Literal["float32", "float16", "int8"]
_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I8": "int8"}
_SCALE = ".scale"  # suffix of the tensor that holds the scale of each int8 row
_CUTOFFS = "cutoffs"
# These are small, and are not used in products of integers.
_NEVER_INT8 = (
    "encoder.embedding.",
    "encoder.convolutions.",
    "encoder.words.",
    "encoder.characters.embedding.",
    "encoder.characters.convolutions.",
)


def looks_native(data: object) -> bool:
    """Return whether parsed JSON is the config of a native folder."""
    return isinstance(data, dict) and data.get("format") == FORMAT


def read_native(folder: Path) -> ModelBundle:
    """Read a native folder; all shapes are checked before any weight is read.

    Raises:
        ModelFileError: a file is missing or damaged, or the weights do not fit the config.
        ConfigError: the config is not valid.
    """
    where = str(folder / "config.json")
    config = read_json(folder / "config.json")
    refuse_unknown_keys(config, _KEYS, where)
    version = config.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{folder}: format_version is {version!r}, this elmokit reads {FORMAT_VERSION}; update elmokit"
        )
    vocabulary, softmax = folder / "vocab.txt", folder / "softmax.safetensors"
    card, lexicon = folder / "README.md", folder / "lexicon.json"
    model_config = BiLMConfig.from_dict(read_section(config, "model", where))
    model = _read_model(folder / "model.safetensors", model_config)
    output = _softmax_file(softmax, model_config.projection_dim) if softmax.exists() else None
    rows = vocabulary_rows(model_config, output)
    bundle = ModelBundle(
        model=model,
        tokenizer=TokenizerSpec.from_dict(read_section(config, "tokenizer", where)),
        vocabulary=read_vocabulary(vocabulary, rows) if vocabulary.exists() else None,
        softmax=output,
        source=f"elmokit folder {folder}",
        card=card.read_text(encoding="utf-8", errors="replace") if card.is_file() else None,
        lexicon=_read_lexicon(lexicon, model_config) if lexicon.exists() else None,
        fill_weights=_fill_weights(config, where),
        pooling=read_pooling(folder, model_config),
    )
    _check_recorded(folder, config.get("sha256"))
    return bundle


def _check_recorded(folder: Path, recorded: object) -> None:
    """Check the files that are so small that it costs nothing; `diagnose` checks all."""
    for name, digest in recorded.items() if isinstance(recorded, dict) else ():
        path = folder / Path(str(name)).name
        if path.is_file() and path.stat().st_size <= _CHECKED_BYTES and file_sha256(path) != digest:
            raise ModelFileError(
                f"{path}: has changed since it was saved: its sha256 differs from that in config.json; get "
                "the folder again, or remove the sha256 if you changed the file yourself"
            )


def _fill_weights(config: Mapping[str, Any], where: str) -> FillWeights | None:
    if "fill" not in config:
        return None
    return settings_from_dict(FillWeights, read_section(config, "fill", where), f"{where}, fill")


def _read_lexicon(path: Path, config: BiLMConfig) -> Lexicon:
    data = read_json(path, most_bytes=_LEXICON_BYTES, values=config.encoder.lexicon_size)
    characters, words = data.get("characters"), data.get("words")
    if not isinstance(characters, dict) or not isinstance(words, dict | None):
        raise ModelFileError(f"{path}: expected 'characters' and 'words' with their ids; get it again")
    if not all(isinstance(number, int) for number in (*characters.values(), *(words or {}).values())):
        raise ModelFileError(f"{path}: expected a whole number for each symbol; get the folder again")
    try:
        return Lexicon(characters, words)
    except DataError as error:
        raise ModelFileError(f"{path}: {error}; get the folder again") from error


def write_native(
    bundle: ModelBundle, folder: Path, *, dtype: StoredType, softmax_dtype: StoredType | None
) -> None:
    """Write a model into an empty folder; the arguments are those of `save_model`."""
    names = ["model.safetensors"]
    _write_tensors(folder / names[0], bundle.model.state_dict(), dtype, {})
    if bundle.softmax is not None:
        softmax = bundle.softmax.read()
        cutoffs = {_CUTOFFS: ",".join(map(str, softmax.cutoffs))} if softmax.cutoffs else {}
        names.append("softmax.safetensors")
        _write_tensors(folder / names[1], softmax.tensors(), softmax_dtype or dtype, cutoffs)
    if bundle.vocabulary is not None:
        bundle.vocabulary.save(folder / "vocab.txt")
    if bundle.lexicon is not None:
        write_text(folder / "lexicon.json", json.dumps(vars(bundle.lexicon), ensure_ascii=False))
    names += [name for name in ("vocab.txt", "lexicon.json") if (folder / name).exists()]
    if bundle.pooling is not None:
        write_pooling(bundle.pooling, folder)
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": bundle.model.config.to_dict(),
        "tokenizer": bundle.tokenizer.to_dict(),
        "sha256": {name: file_sha256(folder / name) for name in names},
    }
    if bundle.fill_weights is not None:
        config["fill"] = bundle.fill_weights.to_dict()
    write_json(folder / "config.json", config)
    write_text(folder / "README.md", bundle.card or _card(bundle))


def file_sha256(path: Path) -> str:
    """Return the file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_tensors(
    path: Path, tensors: dict[str, Tensor], dtype: StoredType, metadata: dict[str, str]
) -> None:
    stored: dict[str, Tensor] = {}
    for key, tensor in tensors.items():
        stored |= _stored(key, tensor.detach().cpu(), dtype)
    save_file(stored, path, metadata={"format": "pt"} | metadata)


def _stored(key: str, tensor: Tensor, dtype: StoredType) -> dict[str, Tensor]:
    """Return what is stored for a tensor: itself, or int8 numbers and their scales."""
    if dtype == "int8" and tensor.dim() > 1 and not key.startswith(_NEVER_INT8):
        scale = int8_scale(tensor.float())  # (…), one for each row
        stored = {key: (tensor / scale[..., None]).round().to(torch.int8), key + _SCALE: scale}
    else:
        stored = {key: tensor.to(torch.float16 if dtype == "float16" else torch.float32)}
    if not all(torch.isfinite(part).all() for part in stored.values()):
        raise ModelFileError(
            f"{key} has numbers that {dtype} cannot hold, or that are not finite; use float32"
        )
    return {name: part.contiguous() for name, part in stored.items()}


def _read_model(path: Path, config: BiLMConfig) -> BiLM:
    with torch.device("meta"):
        model = BiLM(config)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    model.load_state_dict(_read_tensors(path, lambda found: _check(path, found, expected)), assign=True)
    return model.eval()


def _check(path: Path, found: Shapes, expected: Shapes) -> None:
    what = f"{path}: weights and config.json"
    check_shapes(expected, found, what, "use the files that were saved together")


def _read_tensors(path: Path, check: Callable[[dict[str, tuple[int, ...]]], None]) -> dict[str, Tensor]:
    """Return the file's tensors in float32, after `check` has seen their shapes.

    They are copies: the file may later be overwritten, truncated or deleted.
    """
    try:
        check_safetensors(path)
        with safe_open(path, framework="pt") as file:
            shapes = _stored_shapes(path, file)
            check({name: shape for name, shape in shapes.items() if not name.endswith(_SCALE)})
            return {
                name: _read(path, file, name, scaled=name + _SCALE in shapes)
                for name in shapes
                if not name.endswith(_SCALE)
            }
    except (OSError, SafetensorError, ValueError) as error:
        raise ModelFileError(
            f"{path}: cannot be read as safetensors: it is {describe_file(path)} ({error}); get it again"
        ) from error


def _stored_shapes(path: Path, file: Any) -> dict[str, tuple[int, ...]]:  # noqa: ANN401 (safetensors has no types)
    """Return the shape of each tensor; every int8 tensor has a scale for each row, and only these have."""
    slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
    shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
    dtypes = {name: _DTYPES.get(part.get_dtype(), part.get_dtype()) for name, part in slices.items()}
    scaled = [name for name, dtype in dtypes.items() if dtype == "int8"]
    expected = {name + _SCALE: shapes[name][:-1] for name in scaled}
    scales = {name: shapes[name] for name in shapes if name.endswith(_SCALE)}
    what = f"{path}: int8 weights and their scales"
    check_shapes(expected, scales, what, "use the files that were saved together")
    check_dtypes(path, {name: dtype for name, dtype in dtypes.items() if name not in scaled})
    return shapes


def _read(path: Path, file: Any, name: str, *, scaled: bool) -> Tensor:  # noqa: ANN401 (safetensors has no types)
    tensor: Tensor = file.get_tensor(name).to(torch.float32, copy=True)  # the file's memory is mapped
    if not scaled:
        return tensor
    scale = file.get_tensor(name + _SCALE).float()
    if not (torch.isfinite(scale) & (scale > 0)).all():
        raise ModelFileError(f"{path}: {name + _SCALE} has numbers that are no scales; get it again")
    return tensor.mul_(scale[..., None])


def _softmax_file(path: Path, dim: int) -> SoftmaxFile:
    try:
        check_safetensors(path)
        with safe_open(path, framework="pt") as file:
            shapes = _stored_shapes(path, file)
            shapes = {name: shape for name, shape in shapes.items() if not name.endswith(_SCALE)}
            missing = [name for name in ("weight", "bias") if not shapes.get(name)]
            if missing:
                raise ValueError(f"it has no {' and no '.join(missing)}")
            listed = (file.metadata() or {}).get(_CUTOFFS)
            cutoffs = tuple(map(int, listed.split(","))) if listed else ()
    except (OSError, SafetensorError, ValueError) as error:
        raise ModelFileError(f"{path}: is not a softmax ({error}); get it again or remove it") from error
    expected: dict[str, Any] = {"weight": (*shapes["weight"][:1], dim), "bias": shapes["weight"][:1]}
    if cutoffs:
        expected |= {"cluster_weight": (len(cutoffs), dim), "cluster_bias": (len(cutoffs),)}
    _check(path, shapes, expected)
    return SoftmaxFile.later(shapes["weight"][0], path, partial(_read_softmax, path, cutoffs))


def _read_softmax(path: Path, cutoffs: tuple[int, ...]) -> Softmax:
    tensors = _read_tensors(path, lambda found: None)
    try:
        return Softmax(**tensors, cutoffs=cutoffs)
    except ConfigError as error:
        raise ModelFileError(f"{path}: {error}; get it again or remove it") from error


def _card(bundle: ModelBundle) -> str:
    config, tokenizer = bundle.model.config, bundle.tokenizer
    parameters = sum(p.numel() for p in bundle.model.parameters())
    return f"""---
library_name: elmokit
tags: [elmo, contextual-word-vectors]
---
# An ELMo model

| | |
|---|---|
| layers | {config.num_layers} LSTM layers of both directions, and the token layer |
| vectors | {config.output_dim} numbers per layer |
| cell, projection | {config.cell_dim}, {config.projection_dim} |
| parameters | {parameters:,} |
| tokenizer | {tokenizer.name}{f", language {tokenizer.language}" if tokenizer.language else ""} |
| read from | {bundle.source} |

```python
import elmokit

elmo = elmokit.load("path/to/this/folder")
elmo.embed("One sentence.").vectors
```
"""
