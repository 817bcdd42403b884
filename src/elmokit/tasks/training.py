"""The training of a task model: from labelled data to a model folder."""

import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from elmokit.base import StartStep, progress_display
from elmokit.encoders import open_encoders
from elmokit.errors import DataError
from elmokit.kernels import find_device
from elmokit.tasks.batches import shuffled_batches
from elmokit.tasks.checkpoint import Checkpoint
from elmokit.tasks.dataset import TaskData, read_data
from elmokit.tasks.evaluation import evaluate_examples, write_report
from elmokit.tasks.examples import check_task
from elmokit.tasks.metrics import Scores
from elmokit.tasks.model import MODELS, TaskModel
from elmokit.tasks.optimizer import make_optimizer, unfreeze
from elmokit.tasks.prepare import cache_encoders, choose_tokenizer, class_weights, make_config
from elmokit.tasks.settings import Settings, TrainingSettings
from elmokit.text import TokenizerSpec, make_word_cutter

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Training:
    """What came of a training.

    Attributes:
        model: the best one, as saved.
        scores: of it on dev.
        history: of each epoch: number, loss, dev score, seconds.
        tokens: that are read in an epoch.
        seconds: of all, the computing of cached vectors included.
    """

    model: TaskModel
    scores: Scores
    history: list[dict[str, Any]]
    tokens: int
    seconds: float


def train(
    task: str,
    source: str | Path,
    *,
    encoder: str,
    out: str | Path,
    settings: Settings | None = None,
    dev: str | Path | None = None,
    format: str | None = None,
    tokenizer: str | TokenizerSpec | None = None,
    cache: str | Path | None = None,
    device: str = "cpu",
    resume: bool = False,
    overwrite: bool = False,
    self_contained: bool = False,
    allow_unseen: bool = False,
    progress: bool = False,
) -> Training:
    """Train a model and write it, with its report, into a folder.

    Args:
        task: "tagger", "classifier" or "intent".
        source: a folder with train and dev, or the training file; see `dataset.read_data`.
        encoder: such as "glove:FILE+chars+en"; see `encoders.open_encoders`.
        out: the folder to write.
        settings: of encoders, head and loop.
        dev: the dev file; without it the folder's, or a part of the training data.
        format: of the files; by their endings when not given.
        tokenizer: of running text; that of the encoder when not given.
        cache: a folder for the vectors of frozen encoders, to be kept and shared; without it they lie in
            `out` and go when all is done.
        device: where to train.
        resume: go on with an interrupted training in `out`.
        overwrite: replace what is in `out`.
        self_contained: save the encoders with the model even if they were not tuned.
        allow_unseen: let labels of dev that are not in the training data count as errors.
        progress: show how far it is, on a terminal.

    Raises:
        DataError: the data cannot be used, or `out` is not empty.
        ConfigError: the settings do not fit together.
        KeyboardInterrupt: with a message on what is kept.
    """
    began = time.monotonic()
    task = check_task(task)
    settings = settings or Settings()
    folder = _prepare_folder(Path(out), resume=resume, overwrite=overwrite)
    with torch.random.fork_rng(devices=[]), progress_display(shown=progress) as start:
        torch.manual_seed(settings.training.seed)
        encoders = open_encoders(encoder, device=device)
        spec = choose_tokenizer(tokenizer, encoders)
        data = read_data(source, task, cut=make_word_cutter(spec), dev=dev, format=format)
        if data.set_apart:
            logger.warning("no dev file: %d training examples are set apart, always the same", len(data.dev))
        config, data = make_config(task, data, settings, spec, allow_unseen=allow_unseen)
        opened = [(one.spec, one.fingerprint()) for one in encoders]
        purpose = {"config": config.to_dict(), "encoders": opened, "data": data.fingerprint()}
        checkpoint = Checkpoint.open(folder, purpose, resume=resume)
        model = None
        try:
            encoders = cache_encoders(encoders, data, settings, Path(cache or folder / "cache"), start)
            weights = class_weights(data.train, config)
            model = MODELS[task](config, encoders, weights).to(find_device(device))
            run_epochs(model, data, settings.training, checkpoint, start)
        except KeyboardInterrupt:
            raise _interrupted(model, checkpoint, folder, self_contained=self_contained) from None
        model.load_state_dict(checkpoint.best)
        model.save(folder, self_contained=self_contained)
        scores, decisions = evaluate_examples(model, data.dev)
        write_report(folder, model, scores, data.dev, decisions, checkpoint.history)
    checkpoint.remove()
    shutil.rmtree(folder / "cache", ignore_errors=True)
    passes = settings.training.passes(len(data.train))
    tokens = passes * sum(len(example.tokens) for example in data.train)
    return Training(model, scores, checkpoint.history, tokens, time.monotonic() - began)


def run_epochs(
    model: TaskModel, data: TaskData, settings: TrainingSettings, checkpoint: Checkpoint, start: StartStep
) -> None:
    """Train until dev gets no better, or for all epochs; the best state is left in the checkpoint."""
    optimizer = make_optimizer(model, settings)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.5, patience=1)
    generator = torch.Generator().manual_seed(settings.seed)
    checkpoint.restore(model, optimizer, scheduler, generator)
    lengths = [len(example.tokens) for example in data.train]
    advance = start("epochs", settings.epochs)
    advance(len(checkpoint.history), checkpoint.note())
    for epoch in range(len(checkpoint.history) + 1, settings.epochs + 1):
        if checkpoint.epochs_since_best() >= settings.patience:
            break
        began = time.monotonic()
        unfreeze(model, epoch)
        batches = [
            batch
            for _ in range(settings.passes(len(data.train)))
            for batch in shuffled_batches(data.train, lengths, settings.batch, generator)
        ]
        show = partial(advance, note=checkpoint.note())
        loss = run_epoch(model, batches, optimizer, settings.clip_norm, show)
        seconds = time.monotonic() - began
        scores, _ = evaluate_examples(model, data.dev)
        scheduler.step(scores.value)
        entry = {"epoch": epoch, "loss": loss, "dev": scores.value, "metric": scores.main, "seconds": seconds}
        checkpoint.add(entry, model, optimizer, scheduler, generator)
        advance(0, checkpoint.note())


def run_epoch(
    model: TaskModel,
    batches: Sequence[Sequence[Any]],
    optimizer: torch.optim.Optimizer,
    clip_norm: float,
    advance: Callable[[float], None] = lambda share: None,
) -> float:
    """One pass over the batches; returns the mean loss. `advance` is told the share of the epoch done."""
    model.train()
    total = 0.0
    for batch in batches:
        loss = model.loss(batch)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        total += loss.item()
        advance(1 / len(batches))
    return total / len(batches)


def _prepare_folder(folder: Path, *, resume: bool, overwrite: bool) -> Path:
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file, expected a folder to write; choose another name")
    if folder.exists() and any(folder.iterdir()) and not (resume or overwrite):
        raise DataError(f"{folder} is not empty; choose another name, or pass --resume or --overwrite")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _interrupted(
    model: TaskModel | None, checkpoint: Checkpoint, folder: Path, *, self_contained: bool
) -> KeyboardInterrupt:
    """Save the best so far, and say so."""
    if model is None or not checkpoint.history:
        in_the_way = (folder / "config.json", Checkpoint.path(folder))
        option = "--overwrite" if any(path.exists() for path in in_the_way) else "--resume"
        return KeyboardInterrupt(
            f"interrupted before the end of the first epoch; the same command with {option} starts again, "
            "with the vectors that are computed already"
        )
    model.load_state_dict(checkpoint.best)
    model.save(folder, self_contained=self_contained)
    return KeyboardInterrupt(
        f"interrupted after epoch {len(checkpoint.history)}; {folder} holds the best model so far, and the "
        "same command with --resume goes on"
    )
