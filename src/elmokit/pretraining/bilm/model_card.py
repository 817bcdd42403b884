"""What a run leaves for people to read: the learning curve and the model card."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from elmokit.corpus import PreparedCorpus
from elmokit.errors import MissingExtra
from elmokit.language_model import Perplexity
from elmokit.model import BiLM
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.training import Position, read_metrics


@dataclass(frozen=True)
class PerplexityChange:
    """Perplexity of a text before training (if a model was trained further) and after."""

    text: str
    before: Perplexity | None
    after: Perplexity


def draw_curve(folder: Path, target: Path) -> None:
    """Draw losses and held-out perplexity over tokens from the run's `metrics.jsonl`.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogFormatter
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "drawing the learning curve") from error
    records = read_metrics(folder)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, style, text in _curves(records):
        for direction, colour in (("forward", "tab:blue"), ("backward", "tab:orange")):
            found = [(record["tokens"] / 1e6, record[name]) for record in records if name in record]
            tokens, values = zip(*((x, _perplexity(losses, direction)) for x, losses in found), strict=True)
            axes.plot(tokens, values, style, color=colour, label=f"{direction}, {text}")
    axes.set_yscale("log")
    for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        set_formatter(LogFormatter(minor_thresholds=(2, 0.5)))  # 90, not 9 × 10¹
    axes.set_xlabel("million tokens")
    axes.set_ylabel("perplexity")
    axes.grid(alpha=0.3, which="both")
    if axes.lines:
        axes.legend()
    figure.savefig(target, dpi=120)


def _curves(records: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return what there is to draw: its name in the records, style and label."""
    losses = sorted({name for record in records for name in record if name.endswith("_loss")})
    curves = [(name, "-", f"training text, {name.removesuffix('_loss')} softmax") for name in losses]
    if any("heldout" in record for record in records):
        curves.append(("heldout", "o-", "held-out text, full softmax"))
    return curves


def _perplexity(values: dict[str, float], direction: str) -> float:
    """Return the perplexity in a record, which holds losses or perplexities."""
    return values[direction] if "bits_per_character" in values else math.exp(values[direction])


def model_card(
    name: str,
    model: BiLM,
    corpus: PreparedCorpus,
    recipe: Recipe,
    position: Position,
    changes: list[PerplexityChange],
    command: str,
    start: str | Path | None,
) -> str:
    """Return the README of a trained model."""
    config, counts = model.config, corpus.report
    parameters = sum(parameter.numel() for parameter in model.parameters())
    settings = [field for field in fields(recipe) if field.name != "model"]
    lines = [
        f"# {name}",
        "",
        f"An ELMo (bidirectional language model) trained with elmokit{f' from {start}' if start else ''}.",
        "",
        "```python",
        "import elmokit",
        "",
        f'elmo = elmokit.load("{name}")',
        "```",
        "",
        "## Model",
        f"{config.num_layers} layers, cell {config.cell_dim}, projection {config.projection_dim} in each "
        f"direction, {config.encoder.describe()}; {parameters / 1e6:.1f} million parameters without the "
        f"softmax of {len(corpus.vocabulary):,} words. "
        f"Tokenizer: {corpus.tokenizer.name}"
        f"{f', language {corpus.tokenizer.language}' if corpus.tokenizer.language else ''}"
        f"{', lower-cased' if corpus.tokenizer.lowercase else ''}.",
        "",
        "## Data",
        *(f"- `{Path(source['path']).name}`" for source in corpus.job["sources"]),
        "",
        f"{counts['train']['tokens']:,} tokens in {counts['train']['sentences']:,} sentences.",
        "",
        "## Perplexity",
        "Full softmax, each sentence from the zero state.",
        "",
        "| text | | forward | backward | mean | bits per character | out of vocabulary |",
        "|---|---|---|---|---|---|---|",
    ]
    for change in changes:
        for when, found in (("before", change.before), ("after", change.after)):
            if found is not None:
                lines.append(
                    f"| {change.text} | {when} | {found.forward:.1f} | {found.backward:.1f} "
                    f"| {found.mean:.1f} | {found.bits_per_character:.3f} | {found.oov_rate:.1%} |"
                )
    lines += [
        "",
        "![learning curve](curve.png)",
        "",
        "## Training",
        f"{position.tokens:,} tokens in {position.step:,} steps, {position.seconds / 60:.0f} minutes.",
        "",
        *(["```console", command, "```", ""] if command else []),
        "| setting | value |",
        "|---|---|",
        *(f"| {field.name} | {getattr(recipe, field.name)} |" for field in settings),
        "",
    ]
    return "\n".join(lines)
