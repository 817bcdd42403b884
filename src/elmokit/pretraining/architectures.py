"""The choice between the architectures that are pretrained."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmokit.base import check_option
from elmokit.corpus import PrepareSettings
from elmokit.errors import ConfigError
from elmokit.pretraining.bert import BertRecipe, MaskedScores, pretrain_bert
from elmokit.pretraining.bilm import PerplexityChange, Recipe, pretrain_bilm
from elmokit.pretraining.core import RunRecord

ARCHITECTURES = ("lstm", "gated-cnn", "transformer", "bert")


def pretrain(
    sources: str | Path | Sequence[str | Path] | None = None,
    *,
    out: str | Path,
    minutes: float | None = None,
    tokens: int | None = None,
    epochs: float | None = None,
    language: str | None = None,
    preparation: PrepareSettings | Mapping[str, Any] | None = None,
    recipe: str | Path | Recipe | BertRecipe | None = None,
    size: str | None = None,
    architecture: str | None = None,
    changes: Mapping[str, Any] | None = None,
    start: str | Path | None = None,
    grow: bool = False,
    old_text: str | Path | None = None,
    teacher: str | Path | None = None,
    resume: bool = False,
    workers: int | None = None,
    device: str = "cpu",
    hdf5: bool = False,
    command: str = "",
    progress: bool = False,
) -> list[PerplexityChange] | list[MaskedScores]:
    """Train a model on text and write it into a folder.

    An interrupted run is continued by `pretrain(out=FOLDER, resume=True)`: it remembers the rest.

    Args:
        sources: Text files or globs, or one folder that `elmokit prepare` made.
        out: The folder of the model.
        minutes: Train that long.
        tokens: Or on that many tokens.
        epochs: Or for that many passes over the text; one pass if no budget is given.
        language: Of the text, such as "en", if it is to be prepared in the default way.
        preparation: How to prepare the text: settings, or what `PrepareSettings.from_options` takes.
        recipe: "default", "characters", "paper", a TOML file, or a `Recipe` (of a BERT a
            `BertRecipe`). If none is given, it is "characters" for text that is tokenised by character (as
            Chinese is), else "default"; of a BERT always "default".
        size: "tiny", "small", "medium" or "original" ("tiny", "mini" or "small" for a BERT), in place of the
            recipe's shape.
        architecture: "lstm", the ELMo of the paper; "gated-cnn" or "transformer", the same with other layers;
            or "bert". By default "lstm", or that of the run that is resumed.
        changes: Settings of the recipe to change, such as `{"batch": 64, "model": {"cell_dim": 512}}`.
        start: A model to train further; its shape takes the place of the recipe's.
        grow: Instead, `start` grows to the recipe's larger shape and takes the vocabulary of the text. At
            first it predicts what it did.
        old_text: Text of the domain that `start` was trained on, to see what it loses.
        teacher: A model, usually a larger one, whose layers the new model learns to imitate beside predicting
            words.
        resume: Continue an interrupted run in `out`. What is given again must be the same, except that the
            budget may be another one.
        workers: Processes that prepare the text.
        device: To train on.
        hdf5: Also write the model as AllenNLP and bilm-tf read it.
        command: What the user typed, for the model card.
        progress: Show how far it is, on standard error.

    Returns:
        The perplexities at the end; of a BERT, how well it finds hidden pieces. Of several processes only the
        leading one gets any.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed. `out` holds the model as it is now; `resume=True` continues.
        ConfigError: Settings do not fit together, or not with the run that is to be resumed.
        DataError: The text cannot be read, or `out` cannot be used.
        BusyError: Another process is writing `out`.
    """
    run = RunRecord.load(Path(out) / "training") if resume else None
    chosen = architecture or ("lstm" if run is None else run.architecture)
    check_option("architecture", chosen, ARCHITECTURES)
    if run is not None and chosen != run.architecture:
        raise ConfigError(
            f"the run was started with another architecture: it is {chosen}, was {run.architecture}. Resume "
            "it without this setting, or start again in another folder"
        )
    common: dict[str, Any] = {
        "out": out, "minutes": minutes, "tokens": tokens, "epochs": epochs, "language": language,
        "preparation": preparation, "recipe": recipe, "size": size, "changes": changes, "resume": resume,
        "workers": workers, "device": device, "command": command, "progress": progress,
    }  # fmt: skip
    of_bilm: dict[str, Any] = {
        "start": start,
        "grow": grow,
        "old_text": old_text,
        "teacher": teacher,
        "hdf5": hdf5,
    }
    if chosen == "bert":
        for name, value in of_bilm.items():
            if value:
                raise ConfigError(f"{name} is for ELMo; leave it out, or choose another architecture")
        return pretrain_bert(sources, **common)
    return pretrain_bilm(sources, architecture=chosen, **common, **of_bilm)
