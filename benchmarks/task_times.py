"""How long a part of a tagger's training takes with some encoders: an epoch, and the use of the model."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from elmokit.encoders import open_encoders
from elmokit.tasks import Tagger, task_settings
from elmokit.tasks.core import TaskData, read_data
from elmokit.tasks.core.batches import shuffled_batches
from elmokit.tasks.core.optimizer import make_optimizer, unfreeze
from elmokit.tasks.core.training import cache_encoders, run_epoch
from elmokit.tasks.tagger import TaggerTask
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
        self.settings = task_settings("tagger", [*changes, f"training.share={share}"])
        self.encoders = open_encoders(encoder)
        data = read_data(TaggerTask.formats, source, tokenize=str.split)
        self.task, examples = TaggerTask.fit(self.settings, data.train)
        data = TaskData(examples, self.task.prepare(data.dev, allow_unseen=True))
        self.data = data.share(share)
        self.cached = cache_encoders(
            self.encoders, self.data, self.settings, folder, lambda name, total=None: lambda *done: None
        )

    def epoch(self, *changes: str, cached: bool = True) -> float:
        """Milliseconds for 1,000 tokens in an epoch, after two steps to warm up."""
        encoders = self.cached if cached else self.encoders
        task = replace(self.task, settings=self.settings.changed(changes))
        model = Tagger(task, encoders, tokenizer=TOKENIZER)
        unfreeze(model, 1)
        optimizer = make_optimizer(model, self.settings.training)
        lengths = [len(example.tokens) for example in self.data.train]
        batches = shuffled_batches(self.data.train, lengths, self.settings.training.batch, torch.Generator())
        run_epoch(model, batches[:2], optimizer, self.settings.training.clip_norm)
        began = time.perf_counter()
        run_epoch(model, batches, optimizer, self.settings.training.clip_norm)
        return 1e6 * (time.perf_counter() - began) / sum(lengths)

    def use(self) -> float:
        """Milliseconds for 1,000 tokens of dev, from tokens to tags."""
        model = Tagger(self.task, self.encoders, tokenizer=TOKENIZER)
        model.decode(self.data.dev[:32])
        began = time.perf_counter()
        model.decode(self.data.dev)
        return 1e6 * (time.perf_counter() - began) / sum(len(example.tokens) for example in self.data.dev)
