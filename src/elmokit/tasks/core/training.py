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
from elmokit.encoders import CachedEncoder, Encoder, open_encoders
from elmokit.errors import DataError
from elmokit.kernels import find_device
from elmokit.tasks.core.batches import shuffled_batches
from elmokit.tasks.core.checkpoint import Checkpoint
from elmokit.tasks.core.counting import Scores
from elmokit.tasks.core.dataset import TaskData, read_data
from elmokit.tasks.core.evaluation import write_report
from elmokit.tasks.core.optimizer import make_optimizer, unfreeze
from elmokit.tasks.core.task_model import TaskModel, num_tokens
from elmokit.tasks.core.task_settings import TaskSettings, TrainingSettings
from elmokit.text import TokenizerSpec, make_word_tokenizer

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

    model: TaskModel[Any, Any, Any]
    scores: Scores
    history: list[dict[str, Any]]
    tokens: int
    seconds: float


def train(
    task: type[TaskModel[Any, Any, Any]],
    source: str | Path,
    *,
    encoder: str,
    out: str | Path,
    settings: TaskSettings | None = None,
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
        task: the model class of the task.
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
    settings = settings or task.task_type.settings_type()
    folder = _prepare_folder(Path(out), resume=resume, overwrite=overwrite)
    with torch.random.fork_rng(devices=[]), progress_display(shown=progress) as start:
        torch.manual_seed(settings.training.seed)
        encoders = open_encoders(encoder, device=device)
        spec = choose_tokenizer(tokenizer, encoders)
        formats = task.task_type.formats
        data = read_data(formats, source, tokenize=make_word_tokenizer(spec), dev=dev, format=format)
        if data.held_out:
            logger.warning("no dev file: %d training examples are held out, always the same", len(data.dev))
        fitted, train_examples = task.task_type.fit(settings, data.train)
        data = TaskData(train_examples, fitted.prepare(data.dev, allow_unseen=allow_unseen))
        data = data.share(settings.training.share)
        opened = [(one.spec, one.fingerprint()) for one in encoders]
        purpose = {"task": repr(fitted), "encoders": opened, "data": data.fingerprint()}
        checkpoint = Checkpoint.open(folder, purpose, resume=resume)
        model = None
        try:
            encoders = cache_encoders(encoders, data, settings, Path(cache or folder / "cache"), start)
            model = task(fitted, encoders, tokenizer=spec, examples=data.train).to(find_device(device))
            run_epochs(model, data, settings.training, checkpoint, start)
        except KeyboardInterrupt:
            raise _interrupted(model, checkpoint, folder, self_contained=self_contained) from None
        model.load_state_dict(checkpoint.best)
        model.save(folder, self_contained=self_contained)
        scores = write_report(folder, model, data.dev, checkpoint.history)
    checkpoint.remove()
    shutil.rmtree(folder / "cache", ignore_errors=True)
    passes = settings.training.passes(len(data.train))
    tokens = passes * sum(map(num_tokens, data.train))
    return Training(model, scores, checkpoint.history, tokens, time.monotonic() - began)


def choose_tokenizer(given: str | TokenizerSpec | None, encoders: Sequence[Encoder]) -> TokenizerSpec:
    """Return the tokenizer that was asked for, else the first that an encoder wants, else general rules."""
    if isinstance(given, str):
        return TokenizerSpec.parse(given)
    wanted = (encoder.tokenizer for encoder in encoders)
    return given or next((spec for spec in wanted if spec is not None), TokenizerSpec(name="rules"))


def cache_encoders(
    encoders: Sequence[Encoder],
    data: TaskData[Any],
    settings: TaskSettings,
    folder: Path,
    start: StartStep,
) -> list[Encoder]:
    """Compute the vectors of frozen contextual encoders once, for all epochs."""
    if settings.encoder.tune_from is not None:
        return list(encoders)
    sentences = [text for example in (*data.train, *data.dev) for text in example.texts]
    cached: list[Encoder] = []
    for encoder in encoders:
        if encoder.contextual:
            kept = CachedEncoder(encoder, folder)
            kept.fill(sentences, start("vectors", len(sentences)))
            encoder = kept
        cached.append(encoder)
    return cached


def run_epochs(
    model: TaskModel[Any, Any, Any],
    data: TaskData[Any],
    settings: TrainingSettings,
    checkpoint: Checkpoint,
    start: StartStep,
) -> None:
    """Train until dev gets no better, or for all epochs; the best state is left in the checkpoint."""
    optimizer = make_optimizer(model, settings)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.5, patience=1)
    generator = torch.Generator().manual_seed(settings.seed)
    checkpoint.restore(model, optimizer, scheduler, generator)
    lengths = [num_tokens(example) for example in data.train]
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
        scores = model.task.score(data.dev, model.decode(data.dev))
        scheduler.step(scores.value)
        entry = {"epoch": epoch, "loss": loss, "dev": scores.value, "metric": scores.main, "seconds": seconds}
        checkpoint.add(entry, model, optimizer, scheduler, generator)
        advance(0, checkpoint.note())


def run_epoch(
    model: TaskModel[Any, Any, Any],
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
        raise DataError(f"{folder} is not empty; choose another name, or pass resume=True or overwrite=True")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _interrupted(
    model: TaskModel[Any, Any, Any] | None, checkpoint: Checkpoint, folder: Path, *, self_contained: bool
) -> KeyboardInterrupt:
    """Save the best so far, and say so."""
    if model is None or not checkpoint.history:
        in_the_way = (folder / "config.json", Checkpoint.path(folder))
        option = "overwrite=True" if any(path.exists() for path in in_the_way) else "resume=True"
        return KeyboardInterrupt(
            f"interrupted before the end of the first epoch; the same call with {option} starts again, "
            "with the vectors that are computed already"
        )
    model.load_state_dict(checkpoint.best)
    model.save(folder, self_contained=self_contained)
    return KeyboardInterrupt(
        f"interrupted after epoch {len(checkpoint.history)}; {folder} holds the best model so far, and the "
        "same call with resume=True continues"
    )
