"""From labelled data to the folder of a trained model."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from elmokit.base import StartStep, locked, progress_display, remove_folder, shown, write_errors
from elmokit.encoders import CachedEncoder, Encoder, fingerprint_of, open_encoders, weight_bytes
from elmokit.errors import ConfigError, DataError
from elmokit.kernels import find_device, seeded, training_engine_name, training_precision
from elmokit.tasks.core.adaptation import Adaptation, adapted_encoders
from elmokit.tasks.core.counting import Scores
from elmokit.tasks.core.dataset import TaskData, read_data
from elmokit.tasks.core.evaluation import write_report
from elmokit.tasks.core.labelled_files import Columns
from elmokit.tasks.core.protocol import Task
from elmokit.tasks.core.task_job import TaskJob
from elmokit.tasks.core.task_model import TaskModel, num_tokens
from elmokit.tasks.core.task_settings import TaskSettings
from elmokit.text import TokenizerSpec
from elmokit.training import (
    METRICS,
    Budget,
    Checkpoints,
    Loop,
    Plan,
    read_metrics,
    status_bar,
    stop_at_interrupt,
)

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
    text_column: str | None = None,
    label_column: str | None = None,
    tokenizer: str | TokenizerSpec | None = None,
    epochs: int | None = None,
    start: str | Path | None = None,
    adapt: bool | float = False,
    adapt_text: Sequence[str | Path] = (),
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
        text_column: the column of a table, or the key of JSON lines, with the text: its name in the header,
            or its number, from 1, if there is no header. By default "text". Pairs: both names, with a comma.
        label_column: the same for the label.
        tokenizer: for running text; by default that of the encoder.
        epochs: train for at most so many, whatever `settings` says.
        start: the folder of a trained model of this task, whose labels and weights training starts from. It
            must have the same encoders and sizes.
        adapt: let each ELMo read the training sentences, without their labels, before it is frozen or tuned:
            once (True), or for so many minutes. It is then saved with the model.
        adapt_text: files of further text for it to read.
        cache: a folder that keeps the vectors of frozen encoders, and adapted encoders, for other runs; by
            default they are in `out` and are deleted at the end.
        device: where to train.
        resume: continue an interrupted training in `out`.
        overwrite: replace a model in `out`.
        self_contained: save the encoders with the model even if they were not tuned.
        allow_unseen: count labels of dev that are not in the training data as errors.
        progress: show a progress bar, on a terminal.

    Raises:
        DataError: the data cannot be used, or `out` is not empty.
        ConfigError: the settings do not fit together, or `out` holds a training with other settings or data.
        BusyError: another process is writing `out`.
        KeyboardInterrupt: with a message that says what is kept.
    """
    began = time.monotonic()
    folder = Path(out)
    with (
        locked(folder, parents=True),
        write_errors(folder, "continue with resume=True", also=(SafetensorError,)),
        progress_display(shown=progress) as display,
    ):
        _check_folder(folder, resume=resume, overwrite=overwrite)
        opened = open_training(
            task,
            source,
            encoder=encoder,
            settings=settings,
            dev=dev,
            format=format,
            text_column=text_column,
            label_column=label_column,
            tokenizer=tokenizer,
            epochs=epochs,
            device=device,
            allow_unseen=allow_unseen,
            start=start,
            adapt=adapt,
            adapt_text=adapt_text,
        )
        if opened.data.held_out:
            held = len(opened.data.dev)
            logger.warning("no dev file: %d training examples are held out, always the same", held)
        folder.mkdir(parents=True, exist_ok=True)
        vectors = Path(cache or folder / "cache")
        encoders = cache_encoders(opened.adapted(vectors, device, display.say), vectors, display)
        with seeded(opened.task.settings.training.seed, 0, 0):
            model = task(opened.task, encoders, tokenizer=opened.tokenizer, examples=opened.data.train)
        if opened.start is not None:
            start_from(opened.start, model)
        loop = _make_loop(model.to(find_device(device)), opened, folder, display.say)
        if not resume:
            _clear(folder)
        complete = self_contained or adapt is not False
        history = _train_and_save(loop, model, folder, display, self_contained=complete)
        scores = write_report(folder, model, opened.data.dev, history)
        for finished_with in ("cache", "checkpoints"):
            remove_folder(folder / finished_with)
    data = opened.data
    tokens = opened.task.settings.training.passes(len(data.train)) * sum(map(num_tokens, data.train))
    return Training(model, scores, history, tokens, time.monotonic() - began)


@dataclass(frozen=True)
class Opened:
    """What a training starts from; the examples have their labels in the form that is learnt."""

    task: Task[Any, Any, Any]
    encoders: list[Encoder]
    tokenizer: TokenizerSpec
    data: TaskData[Any]
    adaptation: Adaptation | None = None
    start: TaskModel[Any, Any, Any] | None = None

    def adapted(self, folder: Path, device: str, say: Callable[[str], None]) -> "Opened":
        """Return the same with adapted encoders, if that was asked for; `folder` keeps them."""
        if self.adaptation is None:
            return self
        train, dev = (
            [text for example in examples for text in example.texts]
            for examples in (self.data.train, self.data.dev)
        )
        encoders = adapted_encoders(
            *(self.encoders, self.adaptation),
            train=train,
            dev=dev,
            tokenizer=self.tokenizer,
            folder=folder,
            device=device,
            say=say,
        )
        return replace(self, encoders=encoders)

    def purpose(self) -> dict[str, Any]:
        """Return as plain data what is trained; a run is resumed only with the same."""
        return {
            "task": self.task.name,
            "settings": asdict(self.task.settings),
            "tokenizer": asdict(self.tokenizer),
            "encoders": {encoder.spec: encoder.fingerprint() for encoder in self.encoders},
            "data": self.data.fingerprint(),
            **({} if self.adaptation is None else {"adaptation": asdict(self.adaptation)}),
            **({} if self.start is None else {"start": fingerprint_of(weight_bytes(self.start))}),
        }


def open_training(
    task: type[TaskModel[Any, Any, Any]],
    source: str | Path,
    *,
    encoder: str,
    settings: TaskSettings | None = None,
    dev: str | Path | None = None,
    format: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    tokenizer: str | TokenizerSpec | None = None,
    epochs: int | None = None,
    device: str = "cpu",
    allow_unseen: bool = False,
    start: str | Path | None = None,
    adapt: bool | float = False,
    adapt_text: Sequence[str | Path] = (),
) -> Opened:
    """Open the encoders, read the data, and find the labels; the arguments are those of `train`."""
    settings = settings or task.task_type.settings_type()
    settings = settings if epochs is None else settings.changed([f"training.epochs={epochs}"])
    with seeded(settings.training.seed):  # encoders without pretrained weights draw them
        encoders = open_encoders(encoder, device=device)
    if isinstance(tokenizer, str):
        tokenizer = TokenizerSpec.parse(tokenizer)
    wanted = (tokenizer, *(one.tokenizer for one in encoders))
    spec = next((spec for spec in wanted if spec is not None), TokenizerSpec(name="rules"))
    columns = Columns(text_column, label_column)
    formats = task.task_type.formats
    tokenize = formats.tokenizer(spec)
    data = read_data(formats, source, tokenize=tokenize, dev=dev, format=format, columns=columns)
    begun = None if start is None else task.load(start, device=device)
    if begun is None:
        fitted, examples = task.task_type.fit(settings, data.train)
    else:
        fitted = replace(begun.task, settings=settings)  # type: ignore[type-var]  # a dataclass
        examples = fitted.prepare(data.train, allow_unseen=False)
    data = TaskData(examples, fitted.prepare(data.dev, allow_unseen=allow_unseen), data.held_out)
    adaptation = Adaptation.of(adapt, adapt_text)
    return Opened(fitted, encoders, spec, data.share(settings.training.share), adaptation, begun)


def start_from(start: TaskModel[Any, Any, Any], model: TaskModel[Any, Any, Any]) -> None:
    """Give a model the weights of a trained one.

    Raises:
        ConfigError: they have other encoders or sizes.
    """
    found, own = ([encoder.fingerprint() for encoder in one.encoders] for one in (start, model))
    weights, expected = start.state_dict(), model.state_dict()
    other = [name for name in expected if name not in weights or weights[name].shape != expected[name].shape]
    if found != own or other:
        specs = "+".join(encoder.spec for encoder in start.encoders)
        raise ConfigError(
            f"the model to start from has the encoders {specs} and sizes of its own; train with the same "
            f"encoders and head settings (found a difference in {other[0] if other else 'the encoders'})"
        )
    model.load_state_dict({name: weights[name] for name in expected})


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
                kept.fill(sentences, start("vectors", len(sentences)), say=start.say)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(
                    "interrupted before training; the same call with resume=True continues, with the vectors "
                    "that are computed already"
                ) from None
            encoder = kept
        cached.append(encoder)
    return cached


def _train_and_save(
    loop: Loop, model: TaskModel[Any, Any, Any], folder: Path, display: StartStep, *, self_contained: bool
) -> list[dict[str, Any]]:
    """Train, save the best model, and return the record of each epoch.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    with stop_at_interrupt(display.say) as stopped:
        finished = loop.run(status_bar(display, "training"), stopped)
    history = _epochs(folder)
    if len(history) < len(loop.position.scores):
        raise DataError(f"{folder / METRICS} has lost epochs; train again with overwrite=True")
    if history:
        loop.state.restore(loop.position.best_step)
        model.save(folder, self_contained=self_contained)
    if not finished:
        kept = f"{folder} holds the best model so far, and " if history else ""
        raise KeyboardInterrupt(
            f"interrupted after {len(history)} epochs; {kept}the same call with resume=True continues"
        )
    return history


def _epochs(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the epochs.

    Raises:
        DataError: A number is missing.
    """
    records = [record for record in read_metrics(folder) if "dev" in record]
    for record in records:
        for name in ("epoch", "loss", "dev", "seconds", "epoch_seconds"):
            if not isinstance(record.get(name), int | float):
                raise DataError(
                    f"{folder / METRICS} is damaged: expected a number as {name} at step {record['step']}, "
                    f"found {shown(record.get(name))}; train again with overwrite=True"
                )
    return records


def _make_loop(
    model: TaskModel[Any, Any, Any], opened: Opened, folder: Path, say: Callable[[str], None]
) -> Loop:
    """Evaluate after each epoch; stop, or halve the learning rate, when the dev score stagnates."""
    job = TaskJob(model, opened.data)
    plan = Plan(
        budget=Budget(epochs=model.task.settings.training.epochs),
        log_every=job.steps_per_epoch,
        evaluate_every=job.steps_per_epoch,
        patience=model.task.settings.training.patience,
        halve_on_plateau=True,
    )
    weight = next(model.parameters())
    engine = training_engine_name(training_precision(weight.device.type), weight)
    return Loop(job, folder, plan, settings=opened.purpose(), engine=engine, say=say)


def _check_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file, expected a folder to write; choose another name")
    if folder.exists() and any(folder.iterdir()) and not (resume or overwrite):
        raise DataError(f"{folder} is not empty; choose another name, or pass resume=True or overwrite=True")
    if resume and (folder / "config.json").exists() and not Checkpoints(folder).exist:
        raise DataError(f"{folder} holds a finished training; choose another name, or pass overwrite=True")


def _clear(folder: Path) -> None:
    """Delete the state of an earlier training; its model stays until there is a new one."""
    for name in ("checkpoints", "tensorboard"):
        remove_folder(folder / name)
    (folder / METRICS).unlink(missing_ok=True)
