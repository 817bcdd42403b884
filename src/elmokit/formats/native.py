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
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from elmokit.base import check_safetensors, refuse_unknown_keys, settings_from_dict, write_json, write_text
from elmokit.errors import ConfigError, DataError, ModelFileError
from elmokit.formats.bundle import ModelBundle, SoftmaxFile, read_vocabulary, vocabulary_rows
from elmokit.formats.inspect import read_json, read_section
from elmokit.formats.layout import Shapes, check_shapes
from elmokit.formats.pooling_file import read_pooling, write_pooling
from elmokit.formats.tensor_file import StoredType, read_tensors, tensor_shapes, write_tensors
from elmokit.model import BiLM, BiLMConfig, FillWeights, Softmax
from elmokit.text import Lexicon, TokenizerSpec

FORMAT = "elmokit"
FORMAT_VERSION = 1
_LEXICON_BYTES = 1024 * 1024 * 1024  # a lexicon may have millions of words
_CHECKED_BYTES = 4 * 1024 * 1024  # some milliseconds
_KEYS = ("format", "format_version", "model", "tokenizer", "sha256", "fill")

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
    """Check the checksums of small files, which takes no time; `diagnose` checks those of all."""
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
    write_tensors(folder / names[0], bundle.model.state_dict(), dtype, quantised=_to_int8)
    if bundle.softmax is not None:
        softmax = bundle.softmax.read()
        cutoffs = {_CUTOFFS: ",".join(map(str, softmax.cutoffs))} if softmax.cutoffs else {}
        names.append("softmax.safetensors")
        write_tensors(folder / names[1], softmax.tensors(), softmax_dtype or dtype, metadata=cutoffs)
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


def _to_int8(name: str, tensor: Tensor) -> bool:
    return tensor.dim() > 1 and not name.startswith(_NEVER_INT8)


def file_sha256(path: Path) -> str:
    """Return the file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_model(path: Path, config: BiLMConfig) -> BiLM:
    with torch.device("meta"):
        model = BiLM(config)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    model.load_state_dict(read_tensors(path, lambda found: _check(path, found, expected)), assign=True)
    return model.eval()


def _check(path: Path, found: Shapes, expected: Shapes) -> None:
    what = f"{path}: weights and config.json"
    check_shapes(expected, found, what, "use the files that were saved together")


def _softmax_file(path: Path, dim: int) -> SoftmaxFile:
    try:
        check_safetensors(path)
        with safe_open(path, framework="pt") as file:
            shapes = tensor_shapes(path, file)
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
    tensors = read_tensors(path, lambda found: None)
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
| layers | {config.num_layers} {config.layer_name} layers of both directions, and the token layer |
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
