"""`elmokit generate`: sentences from the forward language model."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command()
@click.argument("prompt", default="")
@options.count_option("-n", "--number", default=1, description="How many sentences.")
@click.option("--temperature", type=click.FloatRange(min=0), default=1.0, help="0 draws the likeliest word.")
@click.option(
    "--top-p",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=0.95,
    help="Draw from the fewest words whose probabilities sum to this much.",
)
@options.count_option("--max-tokens", default=100, description="Stop after this many tokens.")
@options.count_option("--no-repeat", description="Draw no run of so many words twice.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="The same seed draws the same sentences.")
@click.option("--tokens", is_flag=True, help="PROMPT is tokens separated by spaces.")
@options.model_options
@options.json_option
def generate(
    prompt: str,
    number: int,
    seed: int | None,
    tokens: bool,
    model: dict[str, Any],
    no_repeat: int | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Draw sentences that begin with PROMPT, one a line.

    Without PROMPT they begin with any word; with - each line of standard input is a prompt.
    """
    import torch

    from elmokit.language_model import LanguageModel
    from elmokit.text import read_lines

    language_model = LanguageModel.load(**model)
    generator = torch.Generator()
    generator.seed() if seed is None else generator.manual_seed(seed)
    drawn = settings | {"generator": generator, "no_repeat": no_repeat or 0}
    prompts = read_lines("-") if prompt == "-" else [prompt]
    for start in (one for prompt in prompts for one in [prompt] * number):
        words = language_model.generate(start.split() if tokens else start, **drawn)
        print_json({"tokens": words}) if as_json else click.echo(" ".join(words))
