"""Store a model inside what another library saves, without its softmax, which vectors do not need."""

from dataclasses import replace
from pathlib import Path

from elmokit.base import draft_folder, locked, move_files, temporary_folder, write_errors
from elmokit.errors import DataError
from elmokit.formats import ModelBundle, load_model, looks_native, read_json, save_model


def store(bundle: ModelBundle, folder: str | Path) -> None:
    """Write a model as an elmokit folder, replacing a model that is there.

    The old folder stays until the new one is whole: the model may have been loaded from it.

    Raises:
        DataError: the folder holds something other than a model of elmokit, or cannot be written.
    """
    target = Path(folder)
    with locked(target, parents=True), write_errors(target):
        if target.exists() and not _may_replace(target):
            raise DataError(f"{target} holds other files than a model; choose another folder")
        with draft_folder(target, overwrite=True) as draft:
            save_model(replace(bundle, softmax=None), draft / "model")  # with its own draft inside this one
            move_files(draft / "model", draft, last="config.json")


def _may_replace(path: Path) -> bool:
    config = path / "config.json"
    empty = path.is_dir() and not any(path.iterdir())
    return empty or (config.is_file() and looks_native(read_json(config)))


def to_files(bundle: ModelBundle) -> dict[str, bytes]:
    """Return the files of the model's folder, by name."""
    with temporary_folder() as folder:
        store(bundle, folder)
        return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def from_files(files: dict[str, bytes]) -> ModelBundle:
    """Load a model from what `to_files` returned; raise a ModelFileError if that is something else."""
    with temporary_folder() as folder:
        for name, content in files.items():
            (folder / Path(name).name).write_bytes(content)
        return load_model(folder)
