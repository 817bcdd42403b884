"""Write a model into a new folder, which appears complete or not at all."""

import logging
from pathlib import Path
from typing import Literal, get_args

from safetensors import SafetensorError

from elmokit.base import check_option, draft_folder, locked, write_errors, write_json
from elmokit.errors import ConfigError, DataError
from elmokit.formats import bilm_hdf5, native
from elmokit.formats.bundle import ModelBundle
from elmokit.formats.load import UNRECORDED
from elmokit.formats.options import options_from_config
from elmokit.formats.tensor_file import StoredType

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
        folder: must be empty or not exist.
        format: "native", or "hdf5" for options.json and weights.hdf5 as AllenNLP and bilm-tf read them.
        dtype: type of the stored weights: "float32", "float16" or "int8". HDF5 stores float32 only.
        softmax_dtype: type of the stored softmax; that of the weights by default.

    Raises:
        DataError: the folder cannot be written, or is not empty.
        BusyError: another process is writing it.
        ConfigError: the format or type is unknown.
    """
    check_option("format", format, get_args(ModelFormat))
    types = {"dtype": dtype, "softmax_dtype": softmax_dtype or dtype}
    for name, stored in types.items():
        check_option(name, stored, get_args(StoredType))
        if format == "hdf5" and stored != "float32":
            raise ConfigError(f"HDF5 stores float32 only; use format='native' to store {stored}")
    target = Path(folder)
    if target.suffix in (".h5", ".hdf5", ".zip", ".json"):
        raise ConfigError(
            f"{target} looks like a file; a model is a folder of files: choose a name without {target.suffix}"
        )
    with locked(target, parents=True), write_errors(target, also=(SafetensorError,)):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise DataError(f"{target}: exists already; choose another name or remove it first")
        with draft_folder(target) as draft:
            if format == "native":
                native.write_native(bundle, draft, dtype=dtype, softmax_dtype=softmax_dtype)
            else:
                _write_hdf5(bundle, draft)


def _write_hdf5(bundle: ModelBundle, folder: Path) -> None:
    write_json(folder / "options.json", options_from_config(bundle.model.config))
    bilm_hdf5.write_weights(bundle.model, folder / "weights.hdf5")
    if bundle.vocabulary is not None:
        bundle.vocabulary.save(folder / "vocab.txt")
    if bundle.tokenizer != UNRECORDED:
        logger.warning(
            "HDF5 has no place for the tokenizer: pass tokenizer='%s' where the model is used%s",
            ":".join(filter(None, (bundle.tokenizer.name, bundle.tokenizer.language))),
            ", and lower-cased text" if bundle.tokenizer.lowercase else "",
        )
    softmax = None if bundle.softmax is None else bundle.softmax.read()
    if softmax is not None and softmax.cutoffs:
        logger.warning(
            "HDF5 has no place for an adaptive softmax: it is left out. Vectors do not need it; "
            "format='native' keeps it"
        )
    elif softmax is not None:
        bilm_hdf5.write_softmax(softmax, folder / "softmax_weights.hdf5")
