"""elmokit's own model folder. Files in brackets are optional.

config.json             format, version, the model's sizes, tokenizer, sha256 of the weights
model.safetensors       the network: float32, float16, or int8 with a `.scale` for each matrix
[vocab.txt]             words
[softmax.safetensors]   `weight` and `bias`; of an adaptive softmax also `cluster_weight`, `cluster_bias`, and
                        the comma-separated cutoffs in the file's metadata
[lexicon.json]          ids of `characters` and `words`, for models that have their own
[README.md]             the model card
"""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from elmokit.base import refuse_unknown_keys, write_json, write_text
from elmokit.errors import ConfigError, DataError, ModelFileError
from elmokit.formats.bundle import ModelBundle, SoftmaxFile
from elmokit.formats.inspect import describe_file, read_json, read_section
from elmokit.formats.layout import Shapes, check_shapes
from elmokit.kernels import int8_scale
from elmokit.model import BiLM, BiLMConfig, Softmax
from elmokit.text import Lexicon, TokenizerSpec, Vocabulary

FORMAT = "elmokit"
FORMAT_VERSION = 1
_LEXICON_BYTES = 1024 * 1024 * 1024  # a lexicon may have millions of words
_KEYS = ("format", "format_version", "model", "tokenizer", "sha256")

StoredType = Literal["float32", "float16", "int8"]
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
    return ModelBundle(
        model=_read_model(folder / "model.safetensors", model_config),
        tokenizer=TokenizerSpec.from_dict(read_section(config, "tokenizer", where)),
        vocabulary=Vocabulary.load(vocabulary) if vocabulary.exists() else None,
        softmax=_softmax_file(softmax, model_config.projection_dim) if softmax.exists() else None,
        source=f"elmokit folder {folder}",
        card=card.read_text(encoding="utf-8", errors="replace") if card.is_file() else None,
        lexicon=_read_lexicon(lexicon) if lexicon.exists() else None,
    )


def _read_lexicon(path: Path) -> Lexicon:
    data = read_json(path, most_bytes=_LEXICON_BYTES)
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
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": bundle.model.config.to_dict(),
        "tokenizer": bundle.tokenizer.to_dict(),
        "sha256": {name: file_sha256(folder / name) for name in names},
    }
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
    """Return the file's tensors in float32, after `check` has seen their shapes; float32 stays mapped."""
    try:
        with safe_open(path, framework="pt") as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            scales = {name: shapes.pop(name) for name in list(shapes) if name.endswith(_SCALE)}
            check(shapes)
            _check(path, scales, {name: shapes.get(name.removesuffix(_SCALE), ())[:-1] for name in scales})
            return {name: _read(file, name, scaled=name + _SCALE in scales) for name in shapes}
    except (OSError, SafetensorError) as error:
        raise ModelFileError(
            f"{path}: cannot be read as safetensors: it is {describe_file(path)} ({error}); get it again"
        ) from error


def _read(file: Any, name: str, *, scaled: bool) -> Tensor:  # noqa: ANN401 (safetensors has no types)
    tensor: Tensor = file.get_tensor(name).float()
    return tensor * file.get_tensor(name + _SCALE)[..., None] if scaled else tensor


def _softmax_file(path: Path, dim: int) -> SoftmaxFile:
    try:
        with safe_open(path, framework="pt") as file:
            names = {"weight", "bias", *(name for name in file.keys() if not name.endswith(_SCALE))}  # noqa: SIM118
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
            listed = (file.metadata() or {}).get(_CUTOFFS)
            cutoffs = tuple(map(int, listed.split(","))) if listed else ()
    except (OSError, SafetensorError, ValueError) as error:
        raise ModelFileError(f"{path}: is not a softmax ({error}); get it again or remove it") from error
    expected: dict[str, Any] = {"weight": (*shapes["weight"][:1], dim), "bias": shapes["weight"][:1]}
    if cutoffs:
        expected |= {"cluster_weight": (len(cutoffs), dim), "cluster_bias": (len(cutoffs),)}
    _check(path, shapes, expected)
    return SoftmaxFile(shapes["weight"][0], partial(_read_softmax, path, cutoffs))


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
