"""From a model to files. A folder appears whole or not at all: it is written aside and renamed."""

import json
import logging
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

from safetensors import SafetensorError

from elmokit.errors import ConfigError, DataError
from elmokit.formats import bilm_hdf5, native
from elmokit.formats.bundle import ModelBundle
from elmokit.formats.load import UNRECORDED
from elmokit.formats.native import StoredType
from elmokit.formats.options import options_from_config

logger = logging.getLogger(__name__)

ModelFormat = Literal["native", "hdf5"]


def save_model(
    bundle: ModelBundle,
    folder: str | Path,
    *,
    format: ModelFormat = "native",
    dtype: StoredType = "float32",
    softmax_dtype: StoredType | None = None,
) -> None:
    """Write a model into a new folder.

    Args:
        bundle: the model.
        folder: must not exist, or be empty.
        format: "native", or "hdf5" for options.json + weights.hdf5 as AllenNLP and bilm-tf read them.
        dtype: of the stored weights, "float32", "float16" or "int8"; the HDF5 layout knows float32 alone.
        softmax_dtype: of the stored softmax, when it is not the same.

    Raises:
        DataError: the folder cannot be written.
        ConfigError: the format or its type is unknown.
    """
    if format not in ("native", "hdf5"):
        raise ConfigError(f"the formats to write are native and hdf5, not {format!r}")
    fewer_bits = sorted({dtype, softmax_dtype or dtype} - {"float32"})
    if format == "hdf5" and fewer_bits:
        raise ConfigError(
            f"the HDF5 layout holds float32 only; use the native format to store {' or '.join(fewer_bits)}"
        )
    target = Path(folder)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise DataError(f"{target}: exists already; choose another name or remove it first")
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise DataError(
            f"{target}: cannot be written ({error.strerror}); choose a folder you may write"
        ) from error
    try:
        if format == "native":
            native.write_native(bundle, aside, dtype=dtype, softmax_dtype=softmax_dtype)
        else:
            _write_hdf5(bundle, aside)
        aside.chmod(0o755)  # mkdtemp makes folders for oneself alone, safetensors files
        for file in aside.iterdir():
            file.chmod(0o644)
        if target.exists():
            target.rmdir()
        aside.rename(target)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{target}: cannot be written ({reason}); choose a folder you may write, with enough space"
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_hdf5(bundle: ModelBundle, folder: Path) -> None:
    options = json.dumps(options_from_config(bundle.model.config), indent=2) + "\n"
    (folder / "options.json").write_text(options, encoding="utf-8")
    bilm_hdf5.write_weights(bundle.model, folder / "weights.hdf5")
    if bundle.vocabulary is not None:
        bundle.vocabulary.save(folder / "vocab.txt")
    if bundle.tokenizer != UNRECORDED:
        logger.warning(
            "the HDF5 layout has no place for the tokenizer: pass tokenizer='%s' where the model is used%s",
            ":".join(filter(None, (bundle.tokenizer.name, bundle.tokenizer.language))),
            ", and text in lower case" if bundle.tokenizer.lowercase else "",
        )
    softmax = None if bundle.softmax is None else bundle.softmax.read()
    if softmax is not None and softmax.cutoffs:
        logger.warning(
            "the softmax is adaptive, for which the HDF5 layout has no place: it is left out. "
            "Vectors need none; the native format keeps it"
        )
    elif softmax is not None:
        bilm_hdf5.write_softmax(softmax, folder / "softmax_weights.hdf5")
