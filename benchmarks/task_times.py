"""How long a part of a tagger's training takes with some encoders: an epoch, and the use of the model."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from elmokit.encoders import open_encoders
from elmokit.tasks import Tagger, task_settings
from elmokit.tasks.core import read_data
from elmokit.tasks.core.task_job import TaskJob
from elmokit.tasks.core.training import cache_encoders, prepare_data
from elmokit.tasks.tagger import TaggedText, TaggerTask
from elmokit.text import TokenizerSpec

TOKENIZER = TokenizerSpec(name="whitespace")


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
        self.settings = task_settings("tagger", changes)
        self.encoders = open_encoders(encoder)
        data = read_data(TaggerTask.formats, source, tokenize=str.split)
        self.task, self.data = prepare_data(TaggerTask, data, self.settings, allow_unseen=True)
        self.cached = cache_encoders(
            self.encoders, self.data, self.settings, folder, lambda name, total=None: lambda *done: None
        )

    def epoch(self, *changes: str, cached: bool = True) -> float:
        """Milliseconds for 1,000 tokens in an epoch, after two steps to warm up."""
        encoders = self.cached if cached else self.encoders
        task = replace(self.task, settings=self.settings.changed(changes))
        model = Tagger(task, encoders, tokenizer=TOKENIZER)
        job = TaskJob(model, self.data)
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
        model = Tagger(self.task, self.encoders, tokenizer=TOKENIZER)
        model.decode(self.data.dev[:32])
        began = time.perf_counter()
        model.decode(self.data.dev)
        return 1e6 * (time.perf_counter() - began) / sum(len(example.tokens) for example in self.data.dev)
