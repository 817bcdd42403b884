"""A task's model: encoders, the task's RNN, a head; in memory and as a folder.

config.json           the task with its labels and settings, the tokenizer, the encoders with fingerprints
model.safetensors     the trained weights
encoder-0, …          encoders that were tuned, or all of them if the folder is to be self-contained
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, overload

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from elmokit.base import draft_file, settings_from_dict, write_json
from elmokit.embed import batches_by_length, refuse_one_string, windows
from elmokit.encoders import Encoder, open_encoder
from elmokit.errors import ConfigError, ModelFileError
from elmokit.formats import read_json
from elmokit.kernels import find_device
from elmokit.tasks.core.inputs import TaskInputs
from elmokit.tasks.core.protocol import E, Hidden, Item, O, P, Task
from elmokit.tasks.core.rnn import TaskRNN
from elmokit.text import TokenizerSpec, make_tokenizer

FORMAT = "elmokit-task"
FORMAT_VERSION = 2
_INSIDE = "{model}"  # stands for the model's own folder in the spec of an encoder inside it
_BATCH_TOKENS = 4096

Model = TypeVar("Model", bound="TaskModel[Any, Any, Any]")


class TaskModel(nn.Module, Generic[E, O, P]):
    """A trained or trainable model of one task; each task has a subclass that names its `Task`.

    Args:
        task: the task with its labels and settings.
        encoders: whose vectors the model reads.
        tokenizer: for text to predict labels for.
        examples: the training examples, for class weights.
    """

    task_type: ClassVar[type[Task[Any, Any, Any]]]

    def __init__(
        self,
        task: Task[E, O, P],
        encoders: Sequence[Encoder],
        *,
        tokenizer: TokenizerSpec,
        examples: Sequence[E] = (),
    ) -> None:
        super().__init__()
        self.task = task
        self.encoders = list(encoders)
        self.tokenizer = tokenizer
        head, use = task.settings.head, task.settings.encoder
        if not head.rnn:  # without an RNN its input is its output
            use = replace(use, place="input")
        self.inputs = TaskInputs(encoders, use)
        self.rnn = TaskRNN(
            self.inputs.input_dim,
            self.inputs.output_dim,
            size=head.rnn,
            layers=head.rnn_layers,
            dropout=head.dropout,
        )
        self.head = task.make_head(self.rnn.output_dim, examples)
        self._tokenize = make_tokenizer(tokenizer)

    def forward(self, items: Sequence[Item]) -> Hidden:
        """Return the vectors that the head reads, for all texts of all items."""
        texts = [text for item in items for text in item.texts]
        x, extra = self.inputs(texts)
        hidden: Hidden = self.rnn(x, extra, torch.tensor([len(text) for text in texts]))
        return hidden

    def loss(self, examples: Sequence[E]) -> Tensor:
        """Return the mean loss of a batch, with the regulariser of the layer mixes."""
        return self.head.loss(self(examples), examples) + self.inputs.regulariser()

    @torch.no_grad()
    def decode(self, items: Sequence[Item]) -> list[O]:
        """Return the head's output for each item, in order; an output does not depend on the batch."""
        self.eval()
        outputs: dict[int, O] = {}
        for rows in batches_by_length([num_tokens(item) + 1 for item in items], _BATCH_TOKENS):
            batch = [items[row] for row in rows]
            outputs |= zip(rows, self.head.decode(self(batch), batch), strict=True)
        return [outputs[row] for row in range(len(items))]

    @overload
    def predict(self, texts: str) -> P: ...
    @overload
    def predict(self, texts: Iterable[Any]) -> list[P]: ...
    def predict(self, texts: str | Iterable[Any]) -> P | list[P]:
        """Return the prediction for one string, or a list of them for many inputs.

        Args:
            texts: a string; or any number of inputs as the task takes them: strings, lists of tokens, pairs.
        """
        if isinstance(texts, str):
            return next(self.stream([texts]))
        return list(self.stream(texts))

    def stream(self, texts: Iterable[Any]) -> Iterator[P]:
        """Yield a prediction for each input in order, holding only a few batches at a time."""
        refuse_one_string(texts)
        items = (self.task.read_input(text, self._tokenize) for text in texts)
        for window in windows(items, lambda item: num_tokens(item) + 1, _BATCH_TOKENS):
            for item, output in zip(window, self.decode(window), strict=True):
                yield self.task.present(item, output)

    def save(self, folder: str | Path, *, self_contained: bool = False) -> None:
        """Write the model.

        Args:
            folder: created if it does not exist; a model in it is replaced.
            self_contained: also write the encoders that were not tuned; otherwise the folder refers to them.
        """
        folder = Path(folder).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        tuned = self.inputs.tuned_parts()
        stored = []
        for number, encoder in enumerate(self.encoders):
            spec, inner = encoder.spec, folder / f"encoder-{number}"
            if number in tuned or (self_contained and encoder.pretrained):
                shutil.rmtree(inner, ignore_errors=True)
                spec = encoder.save(inner).replace(str(folder), _INSIDE)
            stored.append({"spec": spec, "fingerprint": encoder.fingerprint()})
        # Tuned encoders are saved as encoders.
        encoders = tuple(f"inputs.parts.{number}.module." for number in tuned)
        state = {
            name: t.contiguous() for name, t in self.state_dict().items() if not name.startswith(encoders)
        }
        with draft_file(folder / "model.safetensors") as draft:
            save_file(state, draft)
        task: dict[str, Any] = asdict(self.task)  # type: ignore[call-overload]  # a dataclass, by its protocol
        config = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "task": self.task.name,
            "settings": task.pop("settings"),
            "labels": task,
            "tokenizer": asdict(self.tokenizer),
            "encoders": stored,
        }
        write_json(folder / "config.json", config)

    @classmethod
    def load(cls: type[Model], folder: str | Path, *, device: str = "cpu") -> Model:
        """Load a folder that `save` wrote.

        Raises:
            ModelFileError: the folder holds no such model, or an encoder is not the one it was trained with.
            ConfigError: the model is for another task.
        """
        folder = Path(folder).resolve()
        config = read_config(folder)
        if config["task"] != cls.task_type.name:
            raise ConfigError(
                f"{folder} holds a {config['task']}, not a {cls.task_type.name}; load it as what it is"
            )
        if config["format_version"] == 1:
            config = _from_version_1(config, cls.task_type)
        encoders = [_reopen(stored, folder, device) for stored in config["encoders"]]
        settings = settings_from_dict(cls.task_type.settings_type, config["settings"], "settings")
        # Tuned encoders were saved after tuning, so now they are like any others.
        settings = replace(settings, encoder=replace(settings.encoder, tune_from=None))
        labels = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in config["labels"].items()
        }
        task = settings_from_dict(cls.task_type, {"settings": settings, **labels}, f"{folder}, labels")
        model = cls(task, encoders, tokenizer=TokenizerSpec.from_dict(config["tokenizer"]))
        try:
            model.load_state_dict(load_file(folder / "model.safetensors"))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise ModelFileError(
                f"{folder}: the weights do not fit ({error}); get the folder again"
            ) from error
        return model.to(find_device(device)).eval()


def num_tokens(item: Item) -> int:
    """Return the number of tokens of all texts of an item."""
    return sum(map(len, item.texts))


def read_config(folder: Path) -> dict[str, Any]:
    """Read the config.json of a model folder, of this format version or an older one.

    Raises:
        ModelFileError: the folder holds no task model.
    """
    config = read_json(folder / "config.json")
    if config.get("format") != FORMAT or config.get("format_version") not in (1, FORMAT_VERSION):
        raise ModelFileError(
            f"{folder} holds no {FORMAT} model of version {FORMAT_VERSION} or 1; train one first"
        )
    return config


def _from_version_1(config: dict[str, Any], task: type[Task[Any, Any, Any]]) -> dict[str, Any]:
    """Keep what belongs to the task: in version 1 every file had the settings and labels of all tasks."""
    own = [field.name for field in fields(task.settings_type().head)]
    head = {name: config["settings"]["head"][name] for name in own}
    names = [field.name for field in fields(task) if field.name != "settings"]  # type: ignore[arg-type]
    return config | {
        "settings": config["settings"] | {"head": head},
        "labels": {name: config[name] for name in names},
    }


def _reopen(stored: dict[str, str], folder: Path, device: str) -> Encoder:
    encoder = open_encoder(stored["spec"].replace(_INSIDE, str(folder)), device=device)
    found = encoder.fingerprint()
    if found != stored["fingerprint"]:
        raise ModelFileError(
            f"encoder {stored['spec']} has changed since {folder} was trained (fingerprint {found}, was "
            f"{stored['fingerprint']}); use the one it was trained with, or train again"
        )
    return encoder
