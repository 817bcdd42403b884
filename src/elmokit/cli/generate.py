"""`elmokit generate`: sentences from the forward model."""

import json

import click


@click.command()
@click.argument("prompt", default="")
@click.option("--model", default="en", show_default=True, help="A model with its softmax: path or name.")
@click.option("-n", "number", type=click.IntRange(min=1), default=1, show_default=True, help="How many.")
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Below 1: safer words; 0: always the likeliest.",
)
@click.option(
    "--top-p",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=0.95,
    show_default=True,
    help="Draw among the fewest words that have this much of the probability.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Stop here if the sentence has no end.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="The same seed gives the same sentences.  [default: another each time]",
)
@click.option("--tokens", is_flag=True, help="PROMPT is tokens between blanks, to be taken as they are.")
@click.option("--tokenizer", metavar="NAME[:LANG]", help="Use this tokenizer, not the one of the model.")
@click.option("--weights", help="The weights, where they do not lie beside the options.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, each a list of tokens.")
def generate(
    prompt: str,
    model: str,
    number: int,
    temperature: float,
    top_p: float,
    max_tokens: int,
    seed: int | None,
    tokens: bool,
    tokenizer: str | None,
    weights: str | None,
    as_json: bool,
) -> None:
    """Draw sentences that begin with PROMPT (or with nothing), one a line, tokens between blanks."""
    import torch

    from elmokit.language_model import LanguageModel

    language_model = LanguageModel.load(model, weights, tokenizer=tokenizer)
    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    for _ in range(number):
        sentence = language_model.generate(
            prompt.split() if tokens else prompt,
            generator=generator,
            temperature=temperature,
            top_p=top_p,
            max_tokens=max_tokens,
        )
        click.echo(json.dumps(sentence, ensure_ascii=False) if as_json else " ".join(sentence))
