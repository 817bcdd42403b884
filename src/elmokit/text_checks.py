"""What is often wrong with a text that is given to ELMo."""

import re
from collections.abc import Iterable

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|amp|apos|gt|lt|nbsp|quot);", re.IGNORECASE)
_LETTERS_ENOUGH = 200  # below that a text may have no capital by chance


def check_text(lines: Iterable[str], *, lowercase: bool = False) -> list[str]:
    """Look for the classic mistakes in a text.

    Args:
        lines: The text.
        lowercase: Whether the model lower-cases its tokens, so that lower-cased text is right for it.

    Returns:
        A message for each mistake found: HTML entities, a cased model's text in lower case, and characters
        between blanks, which is what a bare string taken for a list of tokens looks like.

    Example:
        >>> check_text(["Tom &amp; Jerry"])[0][:43]
        "HTML entities, first '&amp;' in line 1 (1 l"
        >>> check_text(["Tom and Jerry"])
        []
    """
    entities = 0
    entity: tuple[str, int] | None = None
    upper = lower = words = single = 0
    for number, line in enumerate(lines, start=1):
        if found := _ENTITY.search(line):
            entities += 1
            entity = entity or (found.group(), number)
        upper += sum(map(str.isupper, line))
        lower += sum(map(str.islower, line))
        tokens = line.split()
        words += len(tokens)
        # Only letters that have case: single Chinese characters are words in their own right.
        single += sum(len(token) == 1 and token.lower() != token.upper() for token in tokens)
    messages = []
    if entity:
        count = f"{entities:,} line{'s' if entities > 1 else ''} in all"
        messages.append(
            f"HTML entities, first {entity[0]!r} in line {entity[1]} ({count}): "
            "the model would read them letter by letter; unescape the text first"
        )
    if not lowercase and lower >= _LETTERS_ENOUGH and upper * 1000 < lower:
        messages.append(
            f"{upper:,} capitals among {upper + lower:,} letters: the text seems to be lower-cased, and the "
            "model was trained on text as written; pass the text with its case"
        )
    if words >= 10 and single * 2 > words:
        messages.append(
            f"{single:,} of {words:,} words are single letters: a bare string was taken for a list of tokens "
            "somewhere, which makes each character a token; split the string first, or pass it in a list"
        )
    return messages
