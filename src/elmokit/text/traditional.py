"""Traditional Chinese characters and their simplified forms."""

from functools import cache
from importlib import resources


def simplified(character: str) -> str | None:
    """Return the simplified form of a traditional character; None if it has none of its own.

    Example:
        >>> simplified("銀"), simplified("行")
        ('银', None)
    """
    return _forms().get(character)


@cache
def _forms() -> dict[str, str]:
    text = resources.files("elmokit.text").joinpath("traditional.txt").read_text(encoding="utf-8")
    return {pair[0]: pair[1] for pair in text.splitlines()[1:]}
