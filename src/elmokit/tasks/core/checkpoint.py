"""What an interrupted training needs to go on as if nothing had been: one file, replaced after each epoch."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.errors import DataError

Scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau


class Checkpoint:
    """The state after the last whole epoch, the best state, and the history.

    Args:
        path: of the file.
        purpose: what is trained, as plain data; a checkpoint of something else is refused.
    """

    def __init__(self, path: Path, purpose: dict[str, Any]) -> None:
        self._path = path
        self._purpose = purpose
        self._last: dict[str, Any] = {}
        self.best: dict[str, Tensor] = {}
        self.history: list[dict[str, Any]] = []

    @staticmethod
    def path(folder: Path) -> Path:
        """Where the checkpoint of a training in `folder` lies."""
        return folder / "checkpoint.pt"

    @classmethod
    def open(cls, folder: Path, purpose: dict[str, Any], *, resume: bool) -> "Checkpoint":
        """A new checkpoint, or with `resume` the one that is there.

        Raises:
            DataError: the training there is finished, or is another one.
        """
        checkpoint = cls(cls.path(folder), purpose)
        if resume and not checkpoint._path.exists() and (folder / "config.json").exists():
            raise DataError(
                f"{folder} holds a finished training; choose another name, or pass overwrite=True"
            )
        if not resume or not checkpoint._path.exists():
            return checkpoint
        stored = torch.load(checkpoint._path, weights_only=True)
        if stored["purpose"] != repr(purpose):
            raise DataError(
                f"{folder} holds an interrupted training of other data, encoders or settings; pass the same "
                "as then, or overwrite=True"
            )
        checkpoint._last, checkpoint.best = stored["last"], stored["best"]
        checkpoint.history = stored["history"]
        return checkpoint

    def restore(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scheduler: Scheduler,
        generator: torch.Generator,
    ) -> None:
        """Bring everything to where it was; or, if there is nothing to go on with, clear the folder."""
        if not self._last:
            for name in ("config.json", self._path.name):  # what was there is a model no more
                self._path.with_name(name).unlink(missing_ok=True)
        else:
            model.load_state_dict(self._last["model"])
            optimizer.load_state_dict(self._last["optimizer"])
            scheduler.load_state_dict(self._last["scheduler"])
            generator.set_state(self._last["generator"])
            torch.set_rng_state(self._last["random"])

    def add(
        self,
        entry: dict[str, Any],
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scheduler: Scheduler,
        generator: torch.Generator,
    ) -> None:
        """Note an epoch and write the file, and the history for people beside it."""
        self.history.append(entry)
        state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        if not self.epochs_since_best():
            self.best = state
        self._last = {
            "model": state,
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "generator": generator.get_state(),
            "random": torch.get_rng_state(),
        }
        stored = {
            "purpose": repr(self._purpose),
            "last": self._last,
            "best": self.best,
            "history": self.history,
        }
        aside = self._path.with_suffix(".new")
        torch.save(stored, aside)
        aside.rename(self._path)
        lines = "".join(json.dumps(entry) + "\n" for entry in self.history)
        self._path.with_name("metrics.jsonl").write_text(lines, encoding="utf-8")

    def epochs_since_best(self) -> int:
        """Whole epochs after the best one, the first of equals; 0 if there are none."""
        scores = [entry["dev"] for entry in self.history]
        return len(scores) - 1 - scores.index(max(scores)) if scores else 0

    def note(self) -> str:
        """How it goes, in a few words."""
        if not self.history:
            return ""
        last, best = self.history[-1], max(entry["dev"] for entry in self.history)
        return (
            f"loss {last['loss']:.3f}, dev {last['metric']} {100 * last['dev']:.2f} (best {100 * best:.2f})"
        )

    def remove(self) -> None:
        """Delete the file: the training is finished."""
        self._path.unlink(missing_ok=True)
