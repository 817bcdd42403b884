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

    The last two columns are the word's probabilities given only what is to the left, and to the right.
    """
    from elmokit.language_model import LanguageModel

    language_model = LanguageModel.load(**model)
    texts = options.read_input(source, tokens=tokens, split=split, language=language_model.language)
    for line, text in enumerate(texts, start=1):
        if not text:
            continue
        try:
            gaps = language_model.fill(text, top=top)
        except ElmoError as error:
            raise error if isinstance(source, tuple) else type(error)(f"line {line}: {error}") from None
        if as_json:
            print_json({"text": text, "gaps": [[word.to_dict() for word in gap] for gap in gaps]})
            continue
        for number, gap in enumerate(gaps, start=1):
            print_table(
                ("word", "probability", "from the left", "from the right"),
                [(word.word, *_shown(word.probability, word.forward, word.backward)) for word in gap],
                numbers=3,
                title=f"[MASK] {number} of {' '.join(text) if tokens else text}",
            )


def _shown(*probabilities: float) -> list[str]:
    return [f"{probability:.4f}" for probability in probabilities]
