"""Pretraining: from raw text to a model folder."""

import sys
from types import ModuleType
from typing import Any

from elmokit.pretrain.bilm import PerplexityChange, Recipe, pretrain, read_recipe

__all__ = ["PerplexityChange", "Recipe", "pretrain", "read_recipe"]


class _CallableRoom(ModuleType):
    """Make `elmokit.pretrain(…)` work although `elmokit.pretrain` is also this module."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 (those of the function)
        return pretrain(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableRoom
