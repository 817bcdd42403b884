"""`elmokit generate`: sentences from the forward language model."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command()
@click.argument("prompt", default="")
@click.option(
    "-n", "--number", type=click.IntRange(min=1), default=1, show_default=True, help="How many sentences."
)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Below 1: likely words become likelier; 0: always the likeliest.",
)
@click.option(
    "--top-p",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=0.95,
    show_default=True,
    help="Draw from the fewest words whose probabilities sum to this much.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Stop after this many tokens.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="The same seed gives the same sentences.  [default: random]",
)
@click.option("--tokens", is_flag=True, help="PROMPT is tokens separated by spaces.")
@options.model_options
@options.json_option
def generate(
    prompt: str,
    number: int,
    seed: int | None,
    tokens: bool,
    model: dict[str, Any],
    as_json: bool,
    **settings: Any,
) -> None:
    """Draw sentences that begin with PROMPT, one a line.

    Without PROMPT they begin with any word.
    """
    import torch

    from elmokit.language_model import LanguageModel

    language_model = LanguageModel.load(**model)
    generator = torch.Generator()
    generator.seed() if seed is None else generator.manual_seed(seed)
    for _ in range(number):
        words = language_model.generate(prompt.split() if tokens else prompt, generator=generator, **settings)
        print_json({"tokens": words}) if as_json else click.echo(" ".join(words))
