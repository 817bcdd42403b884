"""`elmokit embed --ray`: the options, and what they call."""

from functools import wraps
from pathlib import Path
from typing import Any

import click

from elmokit.cli import options

_HERE = "local"


def ray_options(command: options.Command) -> options.Command:
    """Add `--ray` and what belongs to it; the command gets `ray`, None without it."""

    @wraps(command)
    def run(*, ray: str | None, **given: Any) -> Any:
        chosen = {name: given.pop(name) for name in ("actors", "on_error", "id_column")}
        if ray is None:
            for name, value in chosen.items():
                if value is not None:
                    raise click.UsageError(f"--{name.replace('_', '-')} has no effect without --ray")
            return command(ray=None, **given)
        if Path(ray).is_file():
            raise click.UsageError(
                f"--ray took {ray} for the address of a cluster; put INPUT before it, or write --ray {_HERE}"
            )
        return command(ray={"address": None if ray == _HERE else ray, **chosen}, **given)

    return options.together(
        click.option(
            "--ray",
            is_flag=False,
            flag_value=_HERE,
            metavar="[ADDRESS]",
            help="Use a Ray cluster; without an address, Ray on this machine.",
        ),
        options.count_option("--actors", description="With --ray: processes.  [default: all CPUs]"),
        options.choice_option(
            "--on-error",
            "raise null",
            "With --ray: stop at a row that is no text, or leave it empty.  [default: raise]",
        ),
        click.option("--id-column", metavar="NAME", help="With --ray: column of a table with ids to keep."),
    )(run)


def embed_by_ray(source: Any, out: str, model: dict[str, Any], ray: dict[str, Any], **settings: Any) -> Any:
    """Call `embed_dataset` with the settings of the command, and return its report."""
    from elmokit.integrations.ray import EmbedBatches, embed_dataset
    from elmokit.text import TextColumn, is_table

    if isinstance(source, str) and is_table(source):
        raise click.UsageError("--ray reads a table by its columns; leave out --lines")
    for name in ("word", "match_case", "workers", "any_engine"):
        if settings.pop(name):
            raise click.UsageError(f"--{name.replace('_', '-')} has no effect with --ray")
    if model.pop("device") != "cpu":
        raise click.UsageError("--ray embeds on CPUs; leave out --device")
    of_run = {name: settings.pop(name) for name in ("split", "resume", "overwrite", "progress")}
    embed = EmbedBatches(
        model.pop("path"),
        text_column=source.name if isinstance(source, TextColumn) else "text",
        on_error=ray.pop("on_error") or "raise",
        **model,
        **settings,
    )
    return embed_dataset(source, out, embed=embed, **ray, **of_run)
