"""How long a part of a tagger's training takes with some encoders: an epoch, and the use of the model."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from elmokit.base import progress_display
from elmokit.encoders import Encoder
from elmokit.tasks import Tagger, task_settings
from elmokit.tasks.core.task_job import TaskJob
from elmokit.tasks.core.training import cache_encoders, open_training
from elmokit.tasks.tagger import TaggedText, TaggerTask


class TimedTagger:
    """A tagger of a share of the training data.

    Args:
        source: the data.
        encoder: see `open_encoders`.
        folder: for cached vectors.
        share: of the training data.
        changes: of the settings.
    """

    def __init__(
        self, source: Path, encoder: str, folder: Path, *, share: float = 0.05, changes: Sequence[str] = ()
    ) -> None:
        changes = [*changes, f"training.share={share}", "training.least_steps=1"]
        settings = task_settings("tagger", changes)
        self.opened = open_training(
            Tagger, source, encoder=encoder, settings=settings, tokenizer="whitespace", allow_unseen=True
        )
        with progress_display(shown=False) as display:
            self.cached = cache_encoders(self.opened, folder, display)

    def epoch(self, *changes: str, cached: bool = True) -> float:
        """Milliseconds for 1,000 tokens in an epoch, after two steps to warm up."""
        task = replace(self.opened.task, settings=self.opened.task.settings.changed(changes))
        job = TaskJob(self._model(task, self.cached if cached else self.opened.encoders), self.opened.data)
        for step in range(2):
            self._step(job, step)
        began = time.perf_counter()
        tokens = sum(self._step(job, step) for step in range(job.steps_per_epoch))
        return 1e6 * (time.perf_counter() - began) / tokens

    def _step(self, job: TaskJob[TaggedText], step: int) -> int:
        tokens = job.compute(step).tokens
        job.update(1.0)
        return tokens

    def use(self) -> float:
        """Milliseconds for 1,000 tokens of dev, from tokens to tags."""
        model, dev = self._model(self.opened.task, self.opened.encoders), self.opened.data.dev
        model.decode(dev[:32])
        began = time.perf_counter()
        model.decode(dev)
        return 1e6 * (time.perf_counter() - began) / sum(len(example.tokens) for example in dev)

    def _model(self, task: TaggerTask, encoders: Sequence[Encoder]) -> Tagger:
        return Tagger(task, encoders, tokenizer=self.opened.tokenizer)
