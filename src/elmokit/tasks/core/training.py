"""From labelled data to the folder of a trained model."""

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elmokit.base import StartStep, progress_display
from elmokit.encoders import CachedEncoder, Encoder, open_encoders
from elmokit.errors import DataError
from elmokit.kernels import find_device, seeded
from elmokit.tasks.core.counting import Scores
from elmokit.tasks.core.dataset import TaskData, read_data
from elmokit.tasks.core.evaluation import write_report
from elmokit.tasks.core.protocol import Task
from elmokit.tasks.core.task_job import TaskJob
from elmokit.tasks.core.task_model import TaskModel, num_tokens
from elmokit.tasks.core.task_settings import TaskSettings
from elmokit.text import TokenizerSpec, make_word_tokenizer
from elmokit.training import Budget, Checkpoints, Loop, Plan, read_metrics, status_bar, stop_at_interrupt

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Training:
    """The result of a training.

    Attributes:
        model: the best one, as saved.
        scores: of the best model on dev.
        history: for each epoch its number, training loss, dev score and seconds (`epoch_seconds`).
        tokens: read in an epoch.
        seconds: for everything, including the vectors of frozen encoders.
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
    """Train a model and write it, with a report, to a folder.

    Args:
        task: the name of a task, one of `TASKS`, or a model class of your own.
        source: a folder with train and dev files, or the training file; see `read_data`.
        encoder: such as "glove:FILE+chars+en"; see `encoders.open_encoders`.
        out: the folder to write.
        settings: of encoders, head and training; see `task_settings`.
        dev: the dev file; by default that of the folder, or a tenth of the training data.
        format: of the files; by default their endings tell it.
        tokenizer: for running text; by default that of the encoder.
        cache: a folder that keeps the vectors of frozen encoders for other runs; by default they are in `out`
            and are deleted at the end.
        device: where to train.
        resume: continue an interrupted training in `out`.
        overwrite: replace a model in `out`.
        self_contained: save the encoders with the model even if they were not tuned.
        allow_unseen: count labels of dev that are not in the training data as errors.
        progress: show a progress bar, on a terminal.

    Raises:
        DataError: the data cannot be used, or `out` is not empty.
        ConfigError: the settings do not fit together, or `out` holds a training with other settings or data.
        KeyboardInterrupt: with a message that says what is kept.
    """
    began = time.monotonic()
    folder = Path(out)
    _check_folder(folder, resume=resume, overwrite=overwrite)
    with progress_display(shown=progress) as display:
        opened = open_training(
            *(task, source, encoder, settings, dev, format, tokenizer),
            device=device,
            allow_unseen=allow_unseen,
        )
        data, seed = opened.data, opened.task.settings.training.seed
        if data.held_out:
            logger.warning("no dev file: %d training examples are held out, always the same", len(data.dev))
        folder.mkdir(parents=True, exist_ok=True)
        encoders = cache_encoders(opened, Path(cache or folder / "cache"), display)
        with seeded(seed, 0, 0):
            model = task(opened.task, encoders, tokenizer=opened.tokenizer, examples=data.train)
        loop = _make_loop(model.to(find_device(device)), data, folder, opened.purpose(), display.say)
        if not resume:
            _clear(folder)
        with stop_at_interrupt(display.say) as stopped:
            finished = loop.run(status_bar(display, "training"), stopped)
        history = [record for record in read_metrics(folder) if "dev" in record]
        if history:
            loop.state.restore(loop.position.best_step)
            model.save(folder, self_contained=self_contained)
        if not finished:
            kept = f"{folder} holds the best model so far, and " if history else ""
            raise KeyboardInterrupt(
                f"interrupted after {len(history)} epochs; {kept}the same call with resume=True continues"
            )
        scores = write_report(folder, model, data.dev, history)
    for finished_with in ("checkpoints", "cache"):
        shutil.rmtree(folder / finished_with, ignore_errors=True)
    tokens = opened.task.settings.training.passes(len(data.train)) * sum(map(num_tokens, data.train))
    return Training(model, scores, history, tokens, time.monotonic() - began)


@dataclass(frozen=True)
class Opened:
    """What a training starts from; the examples have their labels in the form that is learnt."""

    task: Task[Any, Any, Any]
    encoders: list[Encoder]
    tokenizer: TokenizerSpec
    data: TaskData[Any]

    def purpose(self) -> dict[str, Any]:
        """Return as plain data what is trained; a run is resumed only with the same."""
        return {
            "task": self.task.name,
            "settings": asdict(self.task.settings),
            "tokenizer": asdict(self.tokenizer),
            "encoders": {encoder.spec: encoder.fingerprint() for encoder in self.encoders},
            "data": self.data.fingerprint(),
        }


def open_training(
    task: type[TaskModel[Any, Any, Any]],
    source: str | Path,
    encoder: str,
    settings: TaskSettings | None = None,
    dev: str | Path | None = None,
    format: str | None = None,
    tokenizer: str | TokenizerSpec | None = None,
    *,
    device: str = "cpu",
    allow_unseen: bool = False,
) -> Opened:
    """Open the encoders, read the data, and find the labels; the arguments are those of `train`."""
    settings = settings or task.task_type.settings_type()
    with seeded(settings.training.seed):  # encoders without pretrained weights draw them
        encoders = open_encoders(encoder, device=device)
    if isinstance(tokenizer, str):
        tokenizer = TokenizerSpec.parse(tokenizer)
    wanted = (tokenizer, *(one.tokenizer for one in encoders))
    spec = next((spec for spec in wanted if spec is not None), TokenizerSpec(name="rules"))
    tokenize = make_word_tokenizer(spec)
    data = read_data(task.task_type.formats, source, tokenize=tokenize, dev=dev, format=format)
    fitted, examples = task.task_type.fit(settings, data.train)
    data = TaskData(examples, fitted.prepare(data.dev, allow_unseen=allow_unseen), data.held_out)
    return Opened(fitted, encoders, spec, data.share(settings.training.share))


def cache_encoders(opened: Opened, folder: Path, start: StartStep) -> list[Encoder]:
    """Compute the vectors of frozen contextual encoders once, for all epochs."""
    if opened.task.settings.encoder.tune_from is not None:
        return opened.encoders
    examples = (*opened.data.train, *opened.data.dev)
    sentences = [text for example in examples for text in example.texts]
    cached: list[Encoder] = []
    for encoder in opened.encoders:
        if encoder.contextual:
            kept = CachedEncoder(encoder, folder)
            try:
                kept.fill(sentences, start("vectors", len(sentences)))
            except KeyboardInterrupt:
                raise KeyboardInterrupt(
                    "interrupted before training; the same call with resume=True continues, with the vectors "
                    "that are computed already"
                ) from None
            encoder = kept
        cached.append(encoder)
    return cached


def _make_loop(
    model: TaskModel[Any, Any, Any],
    data: TaskData[Any],
    folder: Path,
    settings: dict[str, Any],
    say: Callable[[str], None],
) -> Loop:
    """Evaluate after each epoch; stop, or halve the learning rate, when the dev score stagnates."""
    job = TaskJob(model, data)
    plan = Plan(
        budget=Budget(epochs=model.task.settings.training.epochs),
        log_every=job.steps_per_epoch,
        evaluate_every=job.steps_per_epoch,
        patience=model.task.settings.training.patience,
        halve_on_plateau=True,
    )
    return Loop(job, folder, plan, settings=settings, say=say)


def _check_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file, expected a folder to write; choose another name")
    if folder.exists() and any(folder.iterdir()) and not (resume or overwrite):
        raise DataError(f"{folder} is not empty; choose another name, or pass resume=True or overwrite=True")
    if resume and (folder / "config.json").exists() and not Checkpoints(folder).exist:
        raise DataError(f"{folder} holds a finished training; choose another name, or pass overwrite=True")


def _clear(folder: Path) -> None:
    """Delete what an earlier training left: its model would not belong to the new checkpoints."""
    for name in ("config.json", "metrics.jsonl"):
        (folder / name).unlink(missing_ok=True)
    for name in ("checkpoints", "tensorboard"):
        shutil.rmtree(folder / name, ignore_errors=True)
