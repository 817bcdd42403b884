"""`elmokit score`: how likely a sentence is, and which of its words are surprising."""

from typing import TYPE_CHECKING, Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json, print_table

if TYPE_CHECKING:
    from elmokit.language_model import MaskedScore, SentenceScore


@click.command()
@options.text_input
@click.option("--mark", type=click.IntRange(min=0), default=3, help="How many words to mark.")
@options.model_options
@options.json_option
def score(
    source: Any, tokens: bool, split: bool | str, mark: int, model: dict[str, Any], as_json: bool
) -> None:
    """Print how likely each sentence is; mark surprising words.

    A sentence of --text is shown word by word, one of INPUT as log-probability, perplexity and words. Numbers
    are natural logarithms of probabilities, given what is to the left or to the right. The most surprising
    words are marked with *. A word out of vocabulary is marked with ?; its score is that of any such word.
    A masked model (-m bert:FOLDER) gives each word's probability given all others.
    """
    from elmokit.language_model import MaskedScore, SentenceScore, load_any_lm

    language_model = load_any_lm(**model)
    texts = options.read_input(source, tokens=tokens, split=split, language=language_model.language)
    for found in language_model.stream(texts, latency=options.latency_of(source)):
        if as_json:
            print_json(found)
        elif isinstance(source, tuple) and isinstance(found, MaskedScore):
            _print_masked(found, mark)
        elif isinstance(source, tuple) and isinstance(found, SentenceScore):
            _print_words(found, mark)
        elif not found.tokens:
            click.echo()
        else:
            click.echo(f"{found.total:10.2f} {found.perplexity:10.1f}  {_marked(found, mark)}")


def _print_masked(found: "MaskedScore", mark: int) -> None:
    surprising = found.most_surprising(mark)
    rows = [
        ("*" if at in surprising else "", word, f"{log:.2f}")
        for at, (word, log) in enumerate(zip(found.tokens, found.words, strict=True))
    ]
    print_table(("", "word", "given all others"), rows, numbers=1)
    click.echo(f"pseudo-log-likelihood {found.total:.2f}, pseudo-perplexity {found.perplexity:.1f}")


def _marked(found: "SentenceScore | MaskedScore", mark: int) -> str:
    surprising = found.most_surprising(mark)
    return " ".join(
        click.style(f"*{token}", fg="red", bold=True) if at in surprising else token
        for at, token in enumerate(found.tokens)
    )


def _print_words(found: "SentenceScore", mark: int) -> None:
    from rich.text import Text

    surprising = found.most_surprising(mark)
    rows: list[tuple[object, ...]] = []
    for at, token in enumerate(found.tokens):
        marks = ("*" if at in surprising else "") + ("" if found.known[at] else "?")
        word = Text(token, style="bold red" if at in surprising else "")
        rows.append((marks, word, f"{found.forward[at]:.2f}", f"{found.backward[at]:.2f}"))
    rows += [
        (),
        ("", "(its end)", f"{found.end:.2f}", f"{found.begin:.2f}"),
        ("", "sentence", f"{found.forward_total:.2f}", f"{found.backward_total:.2f}"),
    ]
    print_table(("", "word", "from the left", "from the right"), rows, numbers=2)
    click.echo(
        f"log-probability {found.total:.2f}, perplexity {found.perplexity:.1f} (mean of both directions)"
    )
