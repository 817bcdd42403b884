"""Words that another library cut, as a model reads them."""

from collections.abc import Iterable

from elmokit.text import TokenizerSpec


def as_read(words: Iterable[str], spec: TokenizerSpec) -> list[str]:
    """The words, in lower case if the model's own tokenizer makes them so.

    Example:
        >>> as_read(["The", "bank"], TokenizerSpec(name="rules", lowercase=True))
        ['the', 'bank']
    """
    return [word.lower() if spec.lowercase else word for word in words]
