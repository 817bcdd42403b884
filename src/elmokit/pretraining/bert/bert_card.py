"""What a run leaves for people to read: the learning curve and the model card."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from elmokit.base import COLOURS, drawing
from elmokit.corpus import PreparedCorpus
from elmokit.pretraining.bert.bert_recipe import BertRecipe
from elmokit.pretraining.bert.masked_network import MaskedScores
from elmokit.pretraining.core import RunRecord, data_lines, training_lines
from elmokit.training import Position, read_metrics


def draw_losses(folder: Path, target: Path) -> None:
    """Draw the losses over tokens from the run's `metrics.jsonl`.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    records = read_metrics(folder)
    curves = {
        "masked pieces, training text": [
            (record["tokens"], record["masked_loss"]) for record in records if "masked_loss" in record
        ],
        "masked pieces, held-out text": [
            (record["tokens"], record["heldout"]["loss"]) for record in records if "heldout" in record
        ],
        "next sentence, training text": [
            (record["tokens"], record["next_sentence_loss"])
            for record in records
            if "next_sentence_loss" in record
        ],
    }
    with drawing(target, width=8, height=4.8) as figure:
        axes = figure.subplots()
        for colour, (label, points) in zip(COLOURS, curves.items(), strict=False):
            if points:
                tokens, losses = zip(*points, strict=True)
                axes.plot([count / 1e6 for count in tokens], losses, color=colour, label=label)
        axes.set(xlabel="million pieces", ylabel="loss")
        axes.grid(alpha=0.3)
        if axes.lines:
            figure.legend(loc="outside upper center", ncols=3, fontsize=8)


def bert_card(
    name: str,
    model: Any,  # noqa: ANN401 (of transformers, untyped)
    corpus: PreparedCorpus,
    record: RunRecord,
    *,
    position: Position,
    progress: float,
    scores: MaskedScores | None,
) -> str:
    """Return the README of a model whose training has come to `progress` (1: it is finished)."""
    recipe: BertRecipe = record.recipe
    lines = [f"# {name}", "", "A BERT trained with elmokit."]
    if progress < 1:
        lines += ["", f"**The training was interrupted: {progress:.0%} of it is done.**"]
    lines += ["", "```python", "import elmokit", "", f'bert = elmokit.load("bert:{name}")', "```", ""]
    parameters = sum(parameter.numel() for parameter in model.parameters())
    tokenizer = corpus.tokenizer
    language = f", language {tokenizer.language}" if tokenizer.language else ""
    lines += [
        "## Model",
        f"{recipe.model.layers} layers of {recipe.model.hidden} numbers, {recipe.model.heads} heads, "
        f"{parameters / 1e6:.1f} million parameters with the {model.config.vocab_size:,} pieces, up to "
        f"{recipe.length} pieces at once. Words of the tokenizer {tokenizer.name}{language}"
        f"{', lower-cased' if tokenizer.lowercase else ''}.",
        "",
        *data_lines(corpus),
        "",
        "## Held-out text",
        *_score_lines(scores),
        "",
    ]
    settings = {field.name: getattr(recipe, field.name) for field in fields(recipe) if field.name != "model"}
    return "\n".join([*lines, *training_lines(record, position, settings), ""])


def _score_lines(scores: MaskedScores | None) -> list[str]:
    if scores is None:
        return ["Not measured yet, or there is too little of it."]
    pairs = "" if scores.next_sentence is None else f", {scores.next_sentence:.1%} of the next sentences"
    return [
        f"Loss of a masked piece {scores.loss:.3f}; {scores.accuracy:.1%} of {scores.pieces:,} masked pieces "
        f"found{pairs}.",
        "",
        "![learning curve](curve.png)",
    ]
