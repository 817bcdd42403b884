"""Train for some minutes with other settings, and add a line to a table: what is best in the same time?

    python benchmarks/experiments.py CORPUS --minutes 10 [--recipe FILE] [--lines TEXT] [--grow MODEL]
        [setting=value …]

CORPUS is a folder that `elmokit prepare` made. Settings are those of a recipe, of its model (cell_dim=512) or
of its encoder (encoder.filters=[[1,16],[2,32]]), as in TOML. Held-out sentences are measured each from the
zero state; with --lines also those of a file whose lines are paragraphs, each line as one text. With --grow
it starts from a model, made as large as the settings say. The line goes to benchmarks/results/experiments.md.
"""

import argparse
import tempfile
import tomllib
from dataclasses import fields
from pathlib import Path

from elmokit.language_model import LanguageModel, perplexity_file
from elmokit.model import BiLMConfig
from elmokit.pretraining import Recipe, pretrain, read_recipe
from elmokit.training import read_metrics

TABLE = Path(__file__).parent / "results" / "experiments.md"
HEADER = (
    "| corpus | minutes | settings | steps | tokens | tokens/s | forward | backward | bits per character "
    "| the same, paragraphs |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n"
)


def changed(recipe: str, settings: list[str]) -> Recipe:
    """The recipe with these settings."""
    names = {field.name for field in fields(BiLMConfig)}
    given = (
        tomllib.loads(Path(recipe).read_text(encoding="utf-8"))
        if recipe.endswith(".toml")
        else {"base": recipe}
    )
    for setting in settings:
        name, _, value = setting.partition("=")
        table = given
        *path, last = (f"model.{name}" if name.split(".")[0] in names else name).split(".")
        for part in path:
            table = table.setdefault(part, {})
        table[last] = tomllib.loads(f"value = {value}")["value"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "recipe.toml")
        path.write_text(_toml(given), encoding="utf-8")
        return read_recipe(str(path))


def _toml(table: dict[str, object], prefix: str = "") -> str:
    """Numbers, strings, switches, lists and tables as TOML."""
    lines, tables = [], []
    for name, value in table.items():
        if isinstance(value, dict):
            tables.append(f"[{prefix}{name}]\n{_toml(value, f'{prefix}{name}.')}")
        else:
            shown = str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')
            lines.append(f"{name} = {shown}")
    return "\n".join([*lines, *tables]) + "\n"


def main() -> None:
    """Train, measure, add the line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--lines", type=Path, help="held-out text, a paragraph a line")
    parser.add_argument("--grow", metavar="MODEL", help="start from this model, grown to the shape")
    parser.add_argument("settings", nargs="*", metavar="setting=value")
    arguments = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model"
        recipe = changed(arguments.recipe, arguments.settings)
        given = {} if arguments.grow is None else {"start": arguments.grow, "grow": True}
        changes = pretrain(
            arguments.corpus, out=out, recipe=recipe, minutes=arguments.minutes, progress=True, **given
        )
        found, last = changes[0].after, read_metrics(out / "training")[-1]
        paragraphs = "–"
        if arguments.lines:
            model = LanguageModel.load(out)
            paragraphs = f"{perplexity_file(model, arguments.lines).bits_per_character:.3f}"
    origin = [f"{arguments.grow} grown"] if arguments.grow else []
    what = " ".join([Path(arguments.recipe).stem, *origin, *arguments.settings])
    line = (
        f"| {arguments.corpus.name} | {arguments.minutes:g} | {what} | {last['step']:,} | {last['tokens']:,} "
        f"| {last['tokens'] / last['seconds']:,.0f} | {found.forward:.1f} | {found.backward:.1f} "
        f"| {found.bits_per_character:.3f} | {paragraphs} |\n"
    )
    before = TABLE.read_text(encoding="utf-8") if TABLE.exists() else HEADER
    TABLE.write_text(before + line, encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
