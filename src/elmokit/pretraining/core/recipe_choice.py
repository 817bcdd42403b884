"""The choice of a recipe, whatever the architecture: a name or a file, a size, and single changes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from elmokit.base import refuse_unknown_keys, setting_changes


class AnyRecipe(Protocol):
    """How a model is trained: a frozen dataclass of settings."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Any:  # noqa: ANN401 (a recipe)
        """Read what `to_dict` returned."""
        ...

    @classmethod
    def named(cls, name: str) -> Any:  # noqa: ANN401
        """Return a recipe by its name, or that of a TOML file."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        ...

    def resized(self, size: str) -> Any:  # noqa: ANN401
        """Return the recipe with the shape of that name."""
        ...

    @property
    def shape_name(self) -> str:
        """The name of its shape, or its numbers in a few characters."""
        ...


@dataclass(frozen=True)
class RecipeChoice:
    """A recipe by its name, or none, and changes of it.

    Attributes:
        kind: The class of the recipe.
        recipe: A recipe, or the name of one; None for the default.
        size: The name of its shape; None for its own.
        changes: Other settings of it.
    """

    kind: type[Any]
    recipe: str | Path | AnyRecipe | None
    size: str | None
    changes: Mapping[str, Any]

    def made_of(self, base: str | AnyRecipe) -> Any:  # noqa: ANN401 (a recipe of that kind)
        """Return the recipe; without a name, it is the base with the changes."""
        named = base if self.recipe is None else self.recipe
        recipe: Any = self.kind.named(str(named)) if isinstance(named, str | Path) else named
        if self.size is not None:
            recipe = recipe.resized(self.size)
        return _changed(recipe, self.changes, "recipe")


def _changed(settings: Any, changes: Mapping[str, Any], called: str) -> Any:  # noqa: ANN401 (a dataclass)
    """Return settings with some of them changed; those of a part, such as the model, are named in a dict."""
    refuse_unknown_keys(changes, (field.name for field in fields(settings)), called)
    parts = {
        name: _changed(getattr(settings, name), value, name)
        for name, value in changes.items()
        if isinstance(value, Mapping) and is_dataclass(getattr(settings, name))
    }
    return replace(settings, **{**changes, **parts})


def differing_settings(old: AnyRecipe, new: AnyRecipe) -> list[str]:
    """List in words how a recipe differs from another: "size is small, was tiny"."""
    before, now = old.to_dict(), new.to_dict()
    if old.shape_name != new.shape_name:  # rather than every number of it
        del before["model"], now["model"]
        return [f"size is {new.shape_name}, was {old.shape_name}", *setting_changes(before, now)]
    return setting_changes(before, now)
