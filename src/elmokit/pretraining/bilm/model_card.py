"""What a run leaves for people to read: the learning curve and the model card."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from elmokit.base import COLOURS, drawing
from elmokit.corpus import PreparedCorpus
from elmokit.language_model import Perplexity
from elmokit.model import BiLM
from elmokit.pretraining.core import RunRecord, data_lines, training_lines
from elmokit.training import Position, read_metrics


@dataclass(frozen=True)
class PerplexityChange:
    """Perplexity of a text before training (if a model was trained further) and after."""

    text: str
    before: Perplexity | None
    after: Perplexity


def draw_curve(folder: Path, target: Path, measured: str, end: tuple[int, Perplexity] | None = None) -> None:
    """Draw losses and held-out perplexity over tokens from the run's `metrics.jsonl`.

    Args:
        folder: Of the run.
        target: The picture to write.
        measured: What part of the held-out text was measured.
        end: The number of tokens at the end of the run, and the perplexity of that part, as the card has it.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    records = read_metrics(folder)
    if end is not None:
        records.append({"tokens": end[0], "heldout": end[1].to_dict()})
    with drawing(target, width=8, height=4.8) as figure:
        from matplotlib.ticker import LogFormatter

        axes = figure.subplots()
        for name, style, text in _curves(records, measured):
            for direction, colour in zip(("forward", "backward"), COLOURS, strict=False):
                found = [(record["tokens"] / 1e6, record[name]) for record in records if name in record]
                pairs = [(tokens, _perplexity(losses, direction)) for tokens, losses in found]
                tokens, values = zip(*pairs, strict=True)
                axes.plot(tokens, values, style, color=colour, label=f"{direction}, {text}")
        axes.set_yscale("log")
        for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            set_formatter(LogFormatter(minor_thresholds=(2, 0.5)))  # 90, not 9 × 10¹
        axes.set(xlabel="million tokens", ylabel="perplexity")
        axes.grid(alpha=0.3, which="both")
        if axes.lines:
            figure.legend(loc="outside upper center", ncols=2, fontsize=8)


def _curves(records: list[dict[str, Any]], measured: str) -> list[tuple[str, str, str]]:
    """Return what there is to draw: its name in the records, style and label."""
    losses = sorted({name for record in records for name in record if name.endswith("_loss")})
    curves = [(name, "-", f"training text, {name.removesuffix('_loss')} softmax") for name in losses]
    if any("heldout" in record for record in records):
        curves.append(("heldout", "o-", f"{measured}, full softmax"))
    return curves


def _perplexity(values: dict[str, float], direction: str) -> float:
    """Return the perplexity in a record, which holds losses or perplexities."""
    return values[direction] if "bits_per_character" in values else math.exp(values[direction])


def model_card(
    name: str,
    model: BiLM,
    corpus: PreparedCorpus,
    record: RunRecord,
    *,
    position: Position,
    progress: float,
    changes: list[PerplexityChange],
) -> str:
    """Return the README of a model whose training has come to `progress` (1: it is finished)."""
    origin = f", {'grown' if record.grow else 'continued'} from {record.start}" if record.start else ""
    origin += f", which imitates the layers of {record.teacher}" if record.teacher else ""
    lines = [f"# {name}", "", f"An ELMo (bidirectional language model) trained with elmokit{origin}."]
    if progress < 1:
        lines += ["", f"**The training was interrupted: {progress:.0%} of it is done.**"]
    lines += ["", "```python", "import elmokit", "", f'elmo = elmokit.load("{name}")', "```", ""]
    lines += [*_model_lines(model, corpus), "", *data_lines(corpus), "", *_perplexity_lines(changes), ""]
    settings = {field.name: getattr(record.recipe, field.name) for field in fields(record.recipe)}
    del settings["model"]
    return "\n".join([*lines, *training_lines(record, position, settings), ""])


def _model_lines(model: BiLM, corpus: PreparedCorpus) -> list[str]:
    config, tokenizer = model.config, corpus.tokenizer
    parameters = sum(parameter.numel() for parameter in model.parameters())
    language = f", language {tokenizer.language}" if tokenizer.language else ""
    return [
        "## Model",
        f"{config.num_layers} {config.layer_name} layers, cell {config.cell_dim}, projection "
        f"{config.projection_dim} in each direction, {config.encoder.describe()}; "
        f"{parameters / 1e6:.1f} million parameters without the "
        f"softmax of {len(corpus.vocabulary):,} words. "
        f"Tokenizer: {tokenizer.name}{language}{', lower-cased' if tokenizer.lowercase else ''}.",
    ]


def _perplexity_lines(changes: list[PerplexityChange]) -> list[str]:
    if not changes:
        return ["## Perplexity", "Not measured yet, or there is no held-out text."]
    lines = [
        "## Perplexity",
        "Full softmax, each sentence from the zero state.",
        "",
        "| text | | forward | backward | mean | bits per character | out of vocabulary | tokens |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for change in changes:
        for when, found in (("before", change.before), ("after", change.after)):
            if found is not None:
                lines.append(
                    f"| {change.text} | {when} | {found.forward:.1f} | {found.backward:.1f} "
                    f"| {found.mean:.1f} | {found.bits_per_character:.3f} | {found.oov_rate:.1%} "
                    f"| {found.words:,} |"
                )
    return [*lines, "", "![learning curve](curve.png)"]
