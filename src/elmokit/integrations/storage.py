"""A model inside what another library saves. The softmax stays out: vectors need none."""

import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from elmokit.errors import DataError
from elmokit.formats import ModelBundle, load_model, looks_native, read_json, save_model


def store(bundle: ModelBundle, folder: str | Path) -> None:
    """Write the model as an elmokit folder, in place of what may be there.

    The old folder is there until the new one is whole: it may be the very files that the model was read from.

    Raises:
        DataError: what is there is not a model of elmokit.
    """
    target = Path(folder)
    if target.exists() and not _is_ours(target):
        raise DataError(f"{target} holds other files than a model; choose another folder")
    aside = target.with_name(f".{target.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    save_model(replace(bundle, softmax=None), aside)
    shutil.rmtree(target, ignore_errors=True)
    aside.rename(target)


def _is_ours(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    config = folder / "config.json"
    return not any(folder.iterdir()) or (config.is_file() and looks_native(read_json(config)))


def to_files(bundle: ModelBundle) -> dict[str, bytes]:
    """The files of the model's folder, by name."""
    with TemporaryDirectory() as folder:
        store(bundle, Path(folder) / "model")
        return {file.name: file.read_bytes() for file in sorted((Path(folder) / "model").iterdir())}


def from_files(files: dict[str, bytes]) -> ModelBundle:
    """The inverse of `to_files`.

    Raises:
        ModelFileError, ConfigError: these are not the files of a model.
    """
    # The weights stay mapped to their file, which lives on where it can be removed while it is open.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for name, content in files.items():
            (Path(folder) / Path(name).name).write_bytes(content)
        return load_model(folder)
