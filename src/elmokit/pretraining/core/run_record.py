"""What a run was started with: OUT/training/run.json, so that it can be continued without saying it again."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from elmokit.base import check_fields, parse_json, settings_from_dict, shown, write_json
from elmokit.corpus import PreparedCorpus, PrepareSettings, is_prepared
from elmokit.errors import ConfigError, DataError
from elmokit.formats import ModelBundle, load_model
from elmokit.pretraining.core.recipe_choice import RecipeChoice, differing_settings
from elmokit.training import Budget, RunSummary, summarise_run

SOFTMAX_SHARE = 0.15  # of the budget goes into fitting a softmax to a model that came without one
_NAME = "run.json"


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What a run was started with.

    Attributes:
        sources: Absolute paths or globs of the text, or one prepared corpus.
        preparation: How raw text is prepared; None for a prepared corpus.
        recipe: How the model is trained; plain data in a record that was loaded without the recipe's class.
        budget: How long.
        architecture: Of the model.
        start: The model to train further.
        grow: Whether it takes the shape of the recipe and the vocabulary of the text.
        old_text: Text of its old domain.
        teacher: A model whose layers are imitated.
        hdf5: Whether to write the model for AllenNLP and bilm-tf, too.
        command: What the user typed.
        date: When it was started.
        version: Of elmokit, which started it.
    """

    sources: tuple[str, ...]
    preparation: PrepareSettings | None
    recipe: Any
    budget: Budget
    architecture: str = "lstm"
    start: str | None = None
    grow: bool = False
    old_text: str | None = None
    teacher: str | None = None
    hdf5: bool = False
    command: str = ""
    date: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        names = [
            self.start,
            self.old_text,
            self.teacher,
            self.architecture,
            self.command,
            self.date,
            self.version,
        ]
        for name in [*self.sources, *names]:
            if not isinstance(name, str | None):
                raise ConfigError(f"expected a name or a path, found {shown(name)}")

    def save(self, run: Path) -> None:
        """Write it into the folder of a run."""
        run.mkdir(parents=True, exist_ok=True)
        write_json(run / _NAME, asdict(self))

    @classmethod
    def load(cls, run: Path, kind: type[Any] | None = None) -> "RunRecord | None":
        """Return the record of a run; None if it has none, as those of earlier versions.

        Args:
            run: Its folder.
            kind: The class of its recipe.

        Raises:
            DataError: It is damaged.
        """
        path = run / _NAME
        if not path.is_file():
            return None
        try:
            data = parse_json(path.read_bytes())
            preparation = data["preparation"]
            data |= {
                "sources": tuple(data["sources"]),
                "recipe": data["recipe"] if kind is None else kind.from_dict(data["recipe"]),
                "budget": settings_from_dict(Budget, data["budget"], "budget"),
                "preparation": preparation
                and settings_from_dict(PrepareSettings, preparation, "preparation"),
            }
            return settings_from_dict(cls, data, "the record")
        except (OSError, ValueError, TypeError, KeyError, ConfigError) as error:
            raise DataError(
                f"{path} is damaged ({error}); delete it, and resume the run with the text and the settings "
                "that it was started with"
            ) from error

    def resumed(self, chosen: RecipeChoice, **given: Any) -> "RunRecord":  # noqa: ANN401 (its fields)
        """Return the record with what is `given` now in place of what was; the recipe must be the same.

        Raises:
            ConfigError: The recipe is another one.
        """
        found = differing_settings(self.recipe, chosen.made_of(self.recipe))
        if found:
            raise ConfigError(
                f"the run was started with another recipe: {'; '.join(found)}. Resume it without these "
                "settings, or start again in another folder"
            )
        return replace(self, **given)


def settle_record(
    run: Path,
    chosen: RecipeChoice,
    sources: Sequence[str | Path],
    preparation: PrepareSettings | Mapping[str, Any],
    *,
    resume: bool,
    budget: Mapping[str, Any],
    given: Mapping[str, Any],
) -> tuple[RunRecord, ModelBundle | None]:
    """Return what is to be done, and the model to train further, if there is one.

    Args:
        run: The folder of the run. If it is resumed, its record says what is not given now.
        chosen: The recipe. Without one, that of the run, or one that fits the tokenizer.
        sources: The text.
        preparation: How to prepare it.
        resume: Whether the run is resumed.
        budget: How long to train.
        given: Other fields of the record.

    Raises:
        ConfigError: Settings do not fit together, or not with those of the run.
        DataError: The text is missing.
    """
    before = RunRecord.load(run, chosen.kind) if resume else None
    fields = {name: value for name, value in given.items() if value}
    for name in fields.keys() & {"start", "old_text", "teacher"}:
        fields[name] = _absolute(fields[name]) if Path(fields[name]).exists() else str(fields[name])
    start = fields.get("start", before and before.start)
    bundle = None if start is None else load_model(start)
    if sources:
        fields["sources"] = tuple(map(_absolute, sources))
        fields["preparation"] = _preparation(sources, preparation, bundle)
    else:
        _refuse_no_text(run, before, preparation)
    chosen_budget = {name: value for name, value in budget.items() if value is not None}
    if chosen_budget or before is None:
        fields["budget"] = Budget(**(chosen_budget or {"epochs": 1.0}))
    if before is not None:
        return before.resumed(chosen, **{**fields, "command": before.command}), bundle
    tokenizer = (fields["preparation"] or PreparedCorpus(sources[0])).tokenizer
    by_character = tokenizer.name == "characters" and "characters" in chosen.kind.NAMES
    recipe = chosen.made_of("characters" if by_character else "default")
    today = f"{date.today():%Y-%m-%d}"
    return RunRecord(recipe=recipe, date=today, version=version("elmokit"), **fields), bundle


def _refuse_no_text(run: Path, before: RunRecord | None, preparation: object) -> None:
    if before is None:
        found = f": {run} does not record it" if run.exists() else ""
        raise DataError(f"the text to train on is missing{found}; pass the files, or a prepared corpus")
    if preparation:
        raise ConfigError(
            f"{run.parent} continues with the text that it was started with; leave out how to prepare it, or "
            "name the text as well"
        )


def _absolute(path: str | Path) -> str:
    """Return a path or glob that means the same in another working directory."""
    return os.path.abspath(path)  # noqa: PTH100 (resolve() would follow links, and a glob is no path)


def _preparation(
    sources: Sequence[str | Path],
    options: PrepareSettings | Mapping[str, Any],
    start: ModelBundle | None,
) -> PrepareSettings | None:
    """Return the settings for raw text; defaults are those of the model that is trained further."""
    if isinstance(options, PrepareSettings):
        return options
    if len(sources) == 1 and is_prepared(sources[0]):
        if options:
            given = ", ".join(f"{name}={value!r}" for name, value in options.items())
            raise ConfigError(
                f"{sources[0]} is prepared already; leave out {given}, or prepare the text again"
            )
        return None
    if start is not None:
        spec = start.tokenizer
        options = {"lowercase": spec.lowercase, **options}
        if not options.keys() & {"language", "tokenizer"}:
            options |= {"tokenizer": spec.name, "language": spec.language}
    return PrepareSettings.from_options(options)


def pretraining_summary(out: Path) -> RunSummary | None:
    """Say how far the run in a model's folder has come; None if there is no run.

    Raises:
        DataError: Its newest checkpoint cannot be read.
    """
    run = out / "training"
    main, softmax = summarise_run(run), summarise_run(run / "softmax")
    if main is None and softmax is None:
        return RunSummary(0.0, 0, 0, 0.0) if (run / _NAME).is_file() else None
    found, done = (main, SOFTMAX_SHARE if softmax else 0.0) if main else (softmax, 0.0)
    assert found is not None
    if found.progress is None:  # version 0.1 wrote the model only when it was finished
        return replace(found, progress=1.0 if (out / "config.json").exists() else None)
    part = SOFTMAX_SHARE if found is softmax else 1.0 - done
    return replace(found, progress=done + part * found.progress)
