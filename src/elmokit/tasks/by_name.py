"""The functions of `tasks.core` that take a task, for a task's name as well as for its model class."""

from collections.abc import Callable, Iterable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from elmokit.errors import ConfigError
from elmokit.tasks import TASKS, core

AnyModel: TypeAlias = core.TaskModel[Any, Any, Any]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def find_task(task: str | type[AnyModel]) -> type[AnyModel]:
    """Return the model class of a task.

    Raises:
        ConfigError: there is no task of that name.
    """
    if not isinstance(task, str):
        return task
    if task not in TASKS:
        raise ConfigError(f"{task!r} is no task; expected one of {', '.join(TASKS)}")
    model: type[AnyModel] = import_module(TASKS[task]).MODEL
    return model


def load_task(
    folder: str | Path,
    *,
    device: str = "cpu",
    precision: str = "float32",
    changes: Iterable[str] = (),
) -> AnyModel:
    """Load a task model, whatever its task.

    Args:
        folder: one that `train` or `TaskModel.save` wrote, or the name of a bundled model, such as "ner-en".
        device: where it computes.
        precision: of a frozen ELMo's products; "auto" is the fastest here. See `elmokit.load`.
        changes: settings of the head that are changed, such as "head.beam=10" of a translator.
    """
    place = Path(core.find_task_folder(folder))
    task = find_task(core.read_config(place)["task"])
    return task.load(place, device=device, precision=precision, changes=changes)


def task_settings(task: str, changes: Iterable[str] = ()) -> core.TaskSettings:
    """Return the settings of a task, with changes such as "head.rnn=100"."""
    settings: core.TaskSettings = find_task(task).task_type.settings_type()
    return settings.changed(changes)


def _by_name(
    function: Callable[Concatenate[type[AnyModel], Arguments], Result],
) -> Callable[Concatenate[str | type[AnyModel], Arguments], Result]:
    @wraps(function)
    def call(task: str | type[AnyModel], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return function(find_task(task), *args, **kwargs)

    return call  # type: ignore[return-value]  # its first parameter has a name


compare = _by_name(core.compare)
compare_report = _by_name(core.compare_report)
train = _by_name(core.train)
