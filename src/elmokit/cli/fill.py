"""`elmokit fill`: words for the gaps of a sentence."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json, print_table
from elmokit.errors import ElmoError


@click.command()
@options.text_input
@options.count_option("--top", default=10, description="Words for each gap.")
@options.model_options
@options.json_option
def fill(
    source: Any, tokens: bool, split: bool | str, top: int, model: dict[str, Any], as_json: bool
) -> None:
    """Find the words that fit each [MASK] of a sentence best.

    The last two columns are the word's probabilities given only what is to the left, and to the right; a
    masked model (-m bert:FOLDER) reads both sides at once.
    """
    from elmokit.language_model import load_any_lm

    language_model = load_any_lm(**model)
    texts = options.read_input(source, tokens=tokens, split=split, language=language_model.language)
    for line, text in enumerate(texts, start=1):
        if not text:
            continue
        try:
            gaps: list[Any] = [*language_model.fill(text, top=top)]
        except ElmoError as error:
            raise error if isinstance(source, tuple) else type(error)(f"line {line}: {error}") from None
        if as_json:
            print_json({"text": text, "gaps": [[word.to_dict() for word in gap] for gap in gaps]})
            continue
        for number, gap in enumerate(gaps, start=1):
            title = f"[MASK] {number} of {' '.join(text) if tokens else text}"
            names = [name for name in _COLUMNS if hasattr(gap[0], name)]
            rows = [(word.word, *(f"{getattr(word, name):.4f}" for name in names)) for word in gap]
            print_table(("word", *(_COLUMNS[name] for name in names)), rows, numbers=len(names), title=title)


_COLUMNS = {"probability": "probability", "forward": "from the left", "backward": "from the right"}
