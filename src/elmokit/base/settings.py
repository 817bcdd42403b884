"""Settings as dataclasses that check their own fields and can be converted from and to plain data.

Example:
    @dataclass(frozen=True, kw_only=True)
    class LoopSettings:
        batch: int = bounded(32, least=1)
        dropout: float = bounded(0.5, least=0, below=1)
        kind: Literal["a", "b"] = "a"

        def __post_init__(self) -> None:
            check_fields(self)
"""

import difflib
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from elmokit.base.parsing import parse_toml, shown
from elmokit.errors import ConfigError

Settings = TypeVar("Settings")


def bounded(
    default: Any,  # noqa: ANN401 (the default of the field)
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float | None = None,
    below: float | None = None,
) -> Any:  # noqa: ANN401 (what dataclasses.field returns)
    """Declare a number with its bounds: `least` and `most` are allowed, `above` and `below` not."""
    return field(default=default, metadata={"least": least, "most": most, "above": above, "below": below})


def check_fields(settings: Any) -> None:  # noqa: ANN401 (any dataclass)
    """Check every field of a dataclass against its annotation and the bounds given by `bounded`.

    Fields of type `int`, `float`, `bool` or `Literal` are checked, also with `| None`; others are not.

    Raises:
        ConfigError: a value is not allowed; the message names the field, what is expected and what was found.
    """
    hints = get_type_hints(type(settings))
    for one in fields(settings):
        value, kind = getattr(settings, one.name), hints[one.name]
        if get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind):
            if value is None:
                continue
            (kind, *_) = (part for part in get_args(kind) if part is not NoneType)
        if kind is bool:
            check_flag(one.name, value)
        elif kind is int:
            check_whole_number(one.name, value, **_whole_bounds(one.metadata))
        elif kind is float:
            check_number(one.name, value, **one.metadata)
        elif get_origin(kind) is Literal:
            check_option(one.name, value, get_args(kind))


def _whole_bounds(metadata: Mapping[str, Any]) -> dict[str, Any]:
    assert metadata.get("above") is metadata.get("below") is None, "a whole number has `least` and `most`"
    return {name: metadata[name] for name in ("least", "most") if name in metadata}


def check_flag(name: str, value: object) -> None:
    """Raise a ConfigError unless `value` is true or false."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, found {shown(value)}")


def check_whole_number(name: str, value: object, *, least: float = -math.inf, most: float = math.inf) -> None:
    """Raise a ConfigError unless `value` is a whole number within the bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        bounds = _bounds(least, most, None, None)
        raise ConfigError(f"{name} must be a whole number{bounds}, found {shown(value)}")


def check_number(
    name: str,
    value: object,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float | None = None,
    below: float | None = None,
) -> None:
    """Raise a ConfigError unless `value` is a finite number within the bounds."""
    inside = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max  # finite; `math.isfinite` fails for huge whole numbers
        and least <= value <= most
        and (above is None or value > above)
        and (below is None or value < below)
    )
    if not inside:
        bounds = _bounds(least, most, above, below)
        raise ConfigError(f"{name} must be a finite number{bounds}, found {shown(value)}")


def _bounds(least: float, most: float, above: float | None, below: float | None) -> str:
    if least > -math.inf and most < math.inf:
        return f" from {least} to {most}"
    lower = "" if least == -math.inf else f"of at least {least}"
    upper = "" if most == math.inf else f"at most {most}"
    parts = (lower if above is None else f"above {above}", upper if below is None else f"below {below}")
    return " " + " and ".join(filter(None, parts)) if any(parts) else ""


def check_option(name: str, value: object, options: Iterable[str]) -> None:
    """Raise a ConfigError unless `value` is one of `options`."""
    options = list(options)
    if value not in options:
        nearest = _nearest(shown(value), options)
        hint = f"; {nearest}" if nearest else ""
        raise ConfigError(f"{name} must be one of {', '.join(options)}, found {shown(value)}{hint}")


def settings_from_dict(cls: type[Settings], data: object, where: str) -> Settings:
    """Build the dataclass `cls` from plain data, dataclasses inside it too.

    Args:
        cls: the dataclass.
        data: what `dataclasses.asdict` returned, or a part of it.
        where: what the data belong to, for messages.

    Raises:
        ConfigError: a key is unknown or missing, or a value is not allowed.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where} must be a table of settings, found {shown(data)}")
    known = [one.name for one in fields(cast(Any, cls))]
    refuse_unknown_keys(data, known, where)
    hints = get_type_hints(cls)
    values = {
        name: settings_from_dict(hints[name], value, f"{where}, {name}")
        if is_dataclass(hints[name]) and not is_dataclass(value)
        else value
        for name, value in data.items()
    }
    try:
        return cls(**values)
    except TypeError as error:
        raise ConfigError(f"{where}: {error}; it has {sorted(data)}") from error


def refuse_unknown_keys(data: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise a ConfigError for the first name in `data` that is not in `known`, offering the nearest one."""
    known = list(known)
    for key in data:
        if key not in known:
            hint = _nearest(key, known) or f"known are {', '.join(known)}"
            raise ConfigError(f"{where}: unknown setting {key!r}; {hint}")


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def changed_settings(settings: Settings, assignments: Iterable[str]) -> Settings:
    """Return the settings with changes such as "head.rnn=100" or "epochs=5"; values are read as TOML.

    "none" stands for None, and a word needs no quotes.

    Raises:
        ConfigError: a name is unknown, or a value is not allowed.
    """
    data = asdict(cast(Any, settings))
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        *groups, name = path.strip().split(".")
        table: dict[str, Any] = data
        for group in groups:
            refuse_unknown_keys([group], table, "settings")
            if not isinstance(table[group], dict):
                raise ConfigError(f"settings: {group!r} is a single value, found {assignment!r}")
            table = table[group]
        if not equals or isinstance(table.get(name), dict):
            raise ConfigError(f"expected NAME=VALUE or GROUP.NAME=VALUE, found {assignment!r}")
        refuse_unknown_keys([name], table, ".".join(groups) or "settings")
        table[name] = _value(text.strip())
    return settings_from_dict(type(settings), data, "settings")


def _value(text: str) -> object:
    try:
        return parse_toml(f"value = {text}")["value"]
    except ValueError:
        return None if text == "none" else text


def setting_changes(old: Mapping[str, Any], new: Mapping[str, Any], within: str = "") -> list[str]:
    """List in words which values differ: "head.dropout is 0.4, was 0.1".

    A name that is missing in `old` is skipped: an older version did not have that setting.
    """
    changes: list[str] = []
    for name in (name for name in new if name in old):
        a, b, path = old[name], new[name], f"{within}{name}"
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            changes += setting_changes(a, b, f"{path}.")
        elif a != b:
            changes.append(f"{path} is {b}, was {a}")
    return changes
