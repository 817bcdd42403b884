"""Parse text that anybody may have written: whatever is wrong with it is a ValueError, and nothing else."""

import json
import tomllib
from collections.abc import Iterable
from typing import Any

MOST_NESTED = 100  # no file of ours, or of those we read, comes near
_MOST_DIGITS = 18  # fits into 64 bits
_SMALL_JSON = 1024 * 1024
_JSON_TIMES, _JSON_SLACK = 4, 48 * 1024 * 1024
# About what each of these characters stands for takes in memory; a value that is expected takes no more.
_JSON_BYTES = {"[": 90, "{": 90, ",": 36, ":": 100, '"': 36}
_VALUE_BYTES = 300
_MOST_TOML = 64 * 1024  # dotted keys take time that grows with the square of their length


def parse_json(text: str | bytes, *, values: int = 0) -> Any:  # noqa: ANN401 (whatever JSON can hold)
    """Return the value of a JSON text.

    Args:
        text: The JSON.
        values: How many values, or pairs of key and value, the caller has reason to expect.

    Raises:
        ValueError: It is not JSON, is nested more than a hundred levels deep, has a number of thousands of
            digits, or is so full of small values that it takes far more memory than its size.

    Example:
        >>> parse_json("[" * 3000)
        Traceback (most recent call last):
        ...
        ValueError: brackets are nested more than 100 levels deep
    """
    if len(text) > _SMALL_JSON:
        _check_json_amount(text, values)
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    if isinstance(text, bytes):
        brackets = text.count(b"[") + text.count(b"{")
    else:
        brackets = text.count("[") + text.count("{")
    if brackets > MOST_NESTED:
        _check_depth(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table of a TOML text.

    Raises:
        ValueError: It is not TOML, is nested more than a hundred levels deep, or is longer than 64 KB.
    """
    if len(text) > _MOST_TOML:
        raise ValueError(f"{len(text):,} characters are too many for settings")
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise _too_deep() from None
    _check_depth(table)
    return table


def parse_count(text: str | bytes) -> int | None:
    """Return a whole number written in at most 18 decimal digits; None for anything else.

    Example:
        >>> parse_count("42"), parse_count("-1"), parse_count("9" * 5000)
        (42, None, None)
    """
    text = text.decode("ascii", "replace") if isinstance(text, bytes) else text
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


def shown(value: object, most: int = 60) -> str:
    """Return a value as Python writes it, for a message; of a long one the beginning, and the closing quote.

    Example:
        >>> shown("short"), shown("a long sentence", 9)
        ("'short'", "'a long…'")
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python does not print numbers of thousands of digits
        return "something too large to show"
    return text if len(text) <= most else f"{text[: most - 2]}…{text[-1]}"


def _check_json_amount(text: str | bytes, values: int) -> None:
    def count(mark: str) -> int:
        return text.count(mark) if isinstance(text, str) else text.count(mark.encode())

    needed = sum(size * count(mark) for mark, size in _JSON_BYTES.items())
    if needed > _JSON_TIMES * len(text) + _JSON_SLACK + _VALUE_BYTES * values:
        raise ValueError(f"{len(text):,} characters hold too many values")


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MOST_NESTED + 1):
        level = [item for items in map(_items, level) for item in items]
        if not level:
            return
    raise _too_deep()


def _items(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep() -> ValueError:
    return ValueError(f"brackets are nested more than {MOST_NESTED} levels deep")


def counted(number: int, noun: str) -> str:
    """Return a number with a noun for it.

    >>> counted(1, "sentence"), counted(2000, "sentence")
    ('1 sentence', '2,000 sentences')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
