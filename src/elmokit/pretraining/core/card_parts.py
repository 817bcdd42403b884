"""The parts of a model card that all architectures have."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmokit.corpus import PreparedCorpus
from elmokit.pretraining.core.run_record import RunRecord
from elmokit.training import Position


def data_lines(corpus: PreparedCorpus) -> list[str]:
    """Say what was read."""
    train = corpus.report["train"]
    return [
        "## Data",
        *(f"- `{Path(source['path']).name}`" for source in corpus.job["sources"]),
        "",
        f"{train['tokens']:,} tokens in {train['sentences']:,} sentences.",
    ]


def training_lines(record: RunRecord, position: Position, settings: Mapping[str, Any]) -> list[str]:
    """Say how long and with which settings a model was trained."""
    began = ", ".join(filter(None, (record.version and f"elmokit {record.version}", record.date)))
    return [
        "## Training",
        f"{position.tokens:,} tokens in {position.step:,} steps, {_time(position.seconds)}"
        f"{f'; {began}' if began else ''}. Computed by {', then by '.join(position.engines)}.",
        "",
        *(["```console", record.command, "```", ""] if record.command else []),
        "| setting | value |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in settings.items()),
    ]


def _time(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
