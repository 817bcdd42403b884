"""What a file or folder is, whether it is whole, and the classic mistakes by name."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from elmokit.errors import ElmoError
from elmokit.formats import ModelBundle, load_model
from elmokit.formats.bilm_hdf5 import dataset_shapes
from elmokit.formats.inspect import file_kind, read_json
from elmokit.formats.options import looks_like_options
from elmokit.text import read_lines
from elmokit.text_checks import check_text


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that was found: good, worth a thought, or wrong."""

    level: Literal["good", "warning", "error"]
    message: str


def examine(
    path: str | Path, *, weights: str | Path | None = None, text: str | Path | None = None
) -> list[Finding]:
    """Examine a model, and a text that is to be given to it.

    Args:
        path: A model, or what should be one.
        weights: The weights, where they do not lie beside the options.
        text: A text file.

    Returns:
        The findings; no error among them means that the model can be used.

    Example:
        >>> examine("no-such-model")[0].level
        'error'
    """
    bundle: ModelBundle | None = None
    findings: list[Finding] = []
    try:
        bundle = load_model(path, weights)
    except ElmoError as error:
        findings.append(Finding(level="error", message=str(error)))
        findings += _not_a_model(Path(path))
    else:
        findings += _model_findings(bundle)
    findings += _options_findings(Path(path))
    if text is not None:
        lowercase = bundle is not None and bundle.tokenizer.lowercase
        warnings = check_text(read_lines(text), lowercase=lowercase)
        findings += [Finding(level="warning", message=f"{text}: {warning}") for warning in warnings]
        if not warnings:
            findings.append(Finding(level="good", message=f"{text}: none of the classic mistakes"))
    return findings


def _model_findings(bundle: ModelBundle) -> Iterator[Finding]:
    config = bundle.model.config
    size = f"{config.num_layers + 1} layers of {config.output_dim} numbers a token"
    yield Finding(level="good", message=f"a whole model: {bundle.source}; {size}")
    for name, weight in bundle.model.named_parameters():
        if not torch.isfinite(weight).all():
            yield Finding(
                level="error",
                message=f"{name} holds numbers that are none (NaN or infinite); get the file again",
            )
    if bundle.tokenizer.language is None:
        yield Finding(
            level="warning",
            message="the files do not say in which language, and how tokenised, the text was that the model "
            f"was trained on; the tokenizer {bundle.tokenizer.name!r} is used, --tokenizer chooses another",
        )


def _not_a_model(path: Path) -> Iterator[Finding]:
    if not path.is_file() or file_kind(path) != "hdf5":
        return
    with suppress(ElmoError):  # loading has told
        datasets = dataset_shapes(path)
        if "sentence_to_index" in datasets:
            message = f"{path} is a file of computed embeddings ({len(datasets) - 1:,} sentences), no model"
            yield Finding(level="error", message=message)


def _options_findings(path: Path) -> Iterator[Finding]:
    """Tell of an options file as training writes it: the commonest failure of the old systems."""
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        with suppress(ElmoError):  # loading has told
            options = read_json(file) if file.is_file() and file_kind(file) == "json" else {}
            if looks_like_options(options) and options.get("char_cnn", {}).get("n_characters") == 261:
                yield Finding(
                    level="warning",
                    message=f"{file}: n_characters is 261, as training writes it; elmokit reads it, but "
                    "bilm-tf refuses to predict with it: elmokit convert --format hdf5 makes it 262",
                )
