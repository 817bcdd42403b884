"""How long a part of a tagger's training takes with some encoders: an epoch, and the use of the model."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from elmokit.encoders import open_encoders
from elmokit.tasks import Settings
from elmokit.tasks.batches import shuffled_batches
from elmokit.tasks.dataset import read_data
from elmokit.tasks.model import Tagger
from elmokit.tasks.optimizer import make_optimizer, unfreeze
from elmokit.tasks.prepare import cache_encoders, make_config
from elmokit.tasks.training import run_epoch
from elmokit.text import TokenizerSpec


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
        self.settings = Settings().changed([*changes, f"training.share={share}"])
        self.encoders = open_encoders(encoder)
        data = read_data(source, "tagger", cut=str.split)
        self.config, self.data = make_config(
            "tagger", data, self.settings, TokenizerSpec(name="whitespace"), allow_unseen=True
        )
        self.cached = cache_encoders(
            self.encoders, self.data, self.settings, folder, lambda name, total=None: lambda *done: None
        )

    def epoch(self, *changes: str, cached: bool = True) -> float:
        """Milliseconds for 1,000 tokens in an epoch, after two steps to warm up."""
        encoders = self.cached if cached else self.encoders
        model = Tagger(replace(self.config, settings=self.settings.changed(changes)), encoders)
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
        model = Tagger(self.config, self.encoders)
        sentences = [example.tokens for example in self.data.dev]
        model.decide(sentences[:32])
        began = time.perf_counter()
        model.decide(sentences)
        return 1e6 * (time.perf_counter() - began) / sum(map(len, sentences))
