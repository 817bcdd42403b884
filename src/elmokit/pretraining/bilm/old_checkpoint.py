"""Checkpoints of elmokit 0.1, converted so that an interrupted run can be resumed."""

from pathlib import Path
from typing import Any

from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.training import Checkpoints

_JOB = ("model", "table", "optimizer", "state")


def convert_old_checkpoints(run: Path) -> None:
    """Rewrite the newest checkpoint of a run in today's layout, if it is of version 0.1."""
    checkpoints = Checkpoints(run)
    old = checkpoints.load()
    if old is not None and "recipe" in old:
        checkpoints.save(old["position"]["step"], _converted(old))


def _converted(old: dict[str, Any]) -> dict[str, Any]:
    recipe, position = Recipe.from_dict(old["recipe"]), dict(old["position"])
    forward, backward, norm = position["sums"]
    loss = f"{recipe.softmax}_loss"
    position["summed"] = position["step"] % 10  # 0.1 wrote a record every ten steps
    position["sums"] = {"gradient_norm": norm, f"{loss}/forward": forward, f"{loss}/backward": backward}
    if not position["summed"]:
        position["sums"] = {}
    settings = recipe.to_dict() | {"corpus": old["corpus"]}
    return {"position": position, "settings": settings, "job": {name: old[name] for name in _JOB}}
