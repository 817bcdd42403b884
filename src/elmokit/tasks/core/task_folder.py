"""The files of a task model's folder: where it is, what its config says, the weights, the encoders.

See `task_model` for the layout.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import Tensor

from elmokit.base import Kind, other_kind, remove_folder
from elmokit.encoders import Encoder, open_encoder
from elmokit.errors import ModelFileError
from elmokit.formats import (
    BUNDLED,
    BUNDLED_TASKS,
    bundled_names,
    bundled_task_names,
    read_json,
    read_tensors,
)
from elmokit.tasks.core.protocol import Task

FORMAT = "elmokit-task"
FORMAT_VERSION = 2
INSIDE = "{model}"  # stands for the model's own folder in the spec of an encoder inside it
_PARTS = {"task": str, "settings": dict, "tokenizer": dict, "encoders": list}


def find_task_folder(path: str | Path) -> str | Path:
    """Return the path as it is, or that of the bundled task model with this name."""
    bundled = str(path) in bundled_task_names() and not Path(path).exists()
    return BUNDLED_TASKS / path if bundled else path


def read_config(folder: Path) -> dict[str, Any]:
    """Read the config.json of a model folder, of this format version or an older one.

    Raises:
        ModelFileError: the folder holds no task model.
    """
    path = folder / "config.json"
    config = read_json(path) if path.is_file() else {}
    if config.get("format") != FORMAT:
        bundled = f"{folder} is {Kind.MODEL}, not {Kind.TASK}" if str(folder) in bundled_names() else None
        found = "holds no task model" if folder.exists() else "does not exist"
        what = other_kind(folder, Kind.TASK) or bundled or f"{folder} {found}"
        hides = folder.exists() and folder.name in bundled_task_names()
        hint = f"; it hides the bundled {folder.name}: rename it" if hides else ""
        raise ModelFileError(f"{what}; pass a folder that training a task wrote{hint}")
    if config.get("format_version") not in (1, FORMAT_VERSION):
        raise ModelFileError(
            f"{folder} holds no {FORMAT} model of version {FORMAT_VERSION} or 1; train one first"
        )
    parts = _PARTS | ({"labels": dict} if config["format_version"] == FORMAT_VERSION else {})
    wrong = [name for name, kind in parts.items() if not isinstance(config.get(name), kind)]
    for stored in config["encoders"] if "encoders" not in wrong else ():
        keys = ("spec", "fingerprint")
        if not isinstance(stored, dict) or not all(isinstance(stored.get(key), str) for key in keys):
            wrong.append("encoders")
    if wrong:
        raise ModelFileError(
            f"{folder}: config.json has no {' and no '.join(wrong)} as it should be; get the folder again"
        )
    return config


def from_version_1(config: dict[str, Any], task: type[Task[Any, Any, Any]]) -> dict[str, Any]:
    """Keep what belongs to the task: in version 1 every file had the settings and labels of all tasks."""
    own = {field.name for field in fields(task.settings_type().head)}
    names = [field.name for field in fields(task) if field.name != "settings"]  # type: ignore[arg-type]
    try:
        head = {name: value for name, value in config["settings"]["head"].items() if name in own}
        labels = {name: config[name] for name in names}
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"config.json is not whole ({error!r}); get the folder again") from error
    return config | {"settings": config["settings"] | {"head": head}, "labels": labels}


def read_weights(path: Path, task: Task[Any, Any, Any]) -> dict[str, Tensor]:
    """Read the weights; each label needs a row of some of them.

    Raises:
        ModelFileError: the file is damaged, holds no weights, or has too few rows.
    """
    return read_tensors(path, lambda shapes: _check_rows(path, shapes, task))


def _check_rows(path: Path, shapes: Mapping[str, tuple[int, ...]], task: Task[Any, Any, Any]) -> None:
    rows = max((size for shape in shapes.values() for size in shape), default=0)
    for field in fields(task):  # type: ignore[arg-type]  # a dataclass, by its protocol
        found = getattr(task, field.name)
        if not isinstance(field.default, tuple):
            continue
        if not isinstance(found, tuple) or not all(isinstance(label, str) for label in found):
            raise ModelFileError(f"{path.parent}: config.json has {field.name} that are no list of strings")
        if not 0 < len(found) <= rows:
            raise ModelFileError(f"{path}: the weights do not fit {len(found)} {field.name} in config.json")


def weights_file(folder: Path, config: dict[str, Any]) -> Path:
    """Return the file of the weights; before version 0.2 it always had the same name."""
    return folder / Path(str(config.get("weights", "model.safetensors"))).name


def free_name(folder: Path, stem: str, suffix: str = "") -> Path:
    """Return a name that is not in use, if possible without a number."""
    names = (folder / f"{stem}{suffix}", folder / f"{stem}-2{suffix}")
    return next(path for path in names if not path.exists())


def remove_unused(folder: Path) -> None:
    """Delete weights and encoders that do not belong to the model, such as those of one that was replaced.

    safetensors writes to a file of its own (.tmp and six letters), which a killed process leaves.
    """
    used: set[str] = set()
    with suppress(ModelFileError):  # there is no model
        config = read_json(folder / "config.json")
        encoders = re.findall(r"encoder-\d+(?:-2)?", str(config.get("encoders")))
        used = {weights_file(folder, config).name, *encoders}
    for path in folder.iterdir():
        if path.name not in used and re.fullmatch(r"model(-2)?\.safetensors|\.tmp\w{6}", path.name):
            path.unlink()
        elif path.name not in used and re.fullmatch(r"encoder-\d+(-2)?", path.name):
            remove_folder(path)


def reopen(stored: dict[str, str], folder: Path, *, device: str, precision: str) -> Encoder:
    """Open an encoder that a model refers to.

    A name such as "en" means the bundled model, whatever the current folder holds: a path is saved in full.

    Raises:
        ModelFileError: it is not the one that the model was trained with.
    """
    spec = stored["spec"].replace(INSIDE, str(folder))
    place = str(BUNDLED / spec) if spec in bundled_names() else spec
    encoder = open_encoder(place, device=device, precision=precision)
    encoder.spec = spec
    found = encoder.fingerprint()
    if found != stored["fingerprint"]:
        raise ModelFileError(
            f"encoder {spec} is another one, or has changed since {folder} was trained (fingerprint {found}, "
            f"was {stored['fingerprint']}); use the one it was trained with, or train again"
        )
    return encoder
