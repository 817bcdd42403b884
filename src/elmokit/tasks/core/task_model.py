"""A task's model: encoders, the task's RNN, a head; in memory and as a folder.

config.json           the task with its labels and settings, the tokenizer, the encoders with fingerprints
model.safetensors     the trained weights
encoder-0, …          encoders that were tuned, or all of them if the folder is to be self-contained

Where a model is replaced, the new weights and encoders get other names (model-2.safetensors, encoder-0-2), so
that the old model stays whole until the new config.json, which names them, takes the place of the old one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, overload

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from elmokit.base import (
    Kind,
    check_fields,
    check_safetensors,
    locked,
    other_kind,
    remove_folder,
    settings_from_dict,
    write_bytes,
    write_errors,
    write_json,
)
from elmokit.embed import batches_by_length, windows
from elmokit.encoders import Encoder, open_encoder
from elmokit.errors import ConfigError, ModelFileError
from elmokit.formats import bundled_names, check_dtypes, check_shapes, read_json
from elmokit.kernels import find_device
from elmokit.model import Packing
from elmokit.tasks.core.inputs import TaskInputs
from elmokit.tasks.core.protocol import E, Hidden, Item, O, P, Task
from elmokit.tasks.core.rnn import TaskRNN
from elmokit.text import TokenizerSpec, make_tokenizer

FORMAT = "elmokit-task"
FORMAT_VERSION = 2
_INSIDE = "{model}"  # stands for the model's own folder in the spec of an encoder inside it
_BATCH_TOKENS = 4096
_PARTS = {"task": str, "settings": dict, "tokenizer": dict, "encoders": list}

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
            skip=head.skip,
        )
        self.head = task.make_head(self.rnn.output_dim, examples)
        self._tokenize = make_tokenizer(tokenizer)

    def forward(self, items: Sequence[Item]) -> Hidden:
        """Return the vectors that the head reads, for all texts of all items."""
        texts = [tuple(text) for item in items for text in item.texts]
        # In use, a text that occurs several times, such as a passage with many questions, is read once.
        distinct = texts if self.training else list(dict.fromkeys(texts))
        x, extra = self.inputs(distinct)
        shared = self.training and self.task.settings.head.shared_dropout
        groups = torch.tensor([num_tokens(item) for item in items]) if shared else None
        lengths = torch.tensor([len(text) for text in distinct], dtype=torch.long)
        hidden: Hidden = self.rnn(x, extra, lengths, groups=groups)
        return hidden if len(distinct) == len(texts) else _repeated(hidden, distinct, texts)

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
    def predict(self, texts: str | Mapping[str, Any]) -> P: ...
    @overload
    def predict(self, texts: Iterable[Any]) -> list[P]: ...
    def predict(self, texts: str | Mapping[str, Any] | Iterable[Any]) -> P | list[P]:
        """Return the prediction for one string or mapping, or a list of them for many inputs.

        Args:
            texts: a string or a mapping; or any number of inputs as the task takes them: strings, lists of
                tokens, pairs.
        """
        if isinstance(texts, str | Mapping):
            return next(self.stream([texts]))
        return list(self.stream(texts))

    def stream(self, texts: Iterable[Any], *, latency: float | None = None) -> Iterator[P]:
        """Yield a prediction for each input in order, holding only a few batches at a time.

        Args:
            texts: any number of inputs as the task takes them.
            latency: how many seconds an input may wait for others to share its batch. With 0, inputs share
                one only if they are there already: for inputs that arrive one by one, from a pipe or a queue.
                They are then taken by a thread of their own. By default an input waits until a batch is full.
        """

        def size(item: Item) -> int:
            return num_tokens(item) + 1

        for window in windows(texts, self.read, size, _BATCH_TOKENS, latency=latency):
            yield from self.predict_read(window)

    def read(self, given: Any) -> Item:  # noqa: ANN401 (whatever the task takes)
        """Tokenise an input; `predict_read` takes the result."""
        return self.task.read_input(given, self._tokenize)

    def predict_read(self, items: Sequence[Item]) -> list[P]:
        """Return the predictions for inputs that `read` returned."""
        outputs = self.decode(items)
        return [self.task.present(item, output) for item, output in zip(items, outputs, strict=True)]

    def save(self, folder: str | Path, *, self_contained: bool = False) -> None:
        """Write the model.

        Args:
            folder: created if it does not exist; a model in it is replaced.
            self_contained: also write the encoders that were not tuned; otherwise the folder refers to them.

        Raises:
            DataError: the folder cannot be written.
            BusyError: another process is writing it.
        """
        folder = Path(folder).resolve()
        with locked(folder, parents=True), write_errors(folder, also=(SafetensorError,)):
            folder.mkdir(exist_ok=True)
            _remove_unused(folder)
            self._write(folder, self_contained=self_contained)
            _remove_unused(folder)

    def _write(self, folder: Path, *, self_contained: bool) -> None:
        tuned = self.inputs.tuned_parts()
        stored = []
        for number, encoder in enumerate(self.encoders):
            spec = encoder.spec
            if number in tuned or (self_contained and encoder.pretrained):
                spec = encoder.save(_free(folder, f"encoder-{number}")).replace(str(folder), _INSIDE)
            stored.append({"spec": spec, "fingerprint": encoder.fingerprint()})
        # Tuned encoders are saved as encoders.
        encoders = tuple(f"inputs.parts.{number}.module." for number in tuned)
        state = {
            name: t.contiguous() for name, t in self.state_dict().items() if not name.startswith(encoders)
        }
        weights = _free(folder, "model", ".safetensors")
        write_bytes(weights, save(state))
        task: dict[str, Any] = asdict(self.task)  # type: ignore[call-overload]  # a dataclass, by its protocol
        config = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "task": self.task.name,
            "settings": task.pop("settings"),
            "labels": task,
            "tokenizer": asdict(self.tokenizer),
            "encoders": stored,
            "weights": weights.name,
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
        check_fields(task)
        tokenizer = TokenizerSpec.from_dict(config["tokenizer"])
        weights = _read_weights(_weights(folder, config), task)
        with torch.device("meta"):  # no memory before the sizes are known to be those of the weights
            expected = cls(task, encoders, tokenizer=tokenizer).state_dict()
        what = f"{folder}: weights and config.json"
        check_shapes(_shapes(expected), _shapes(weights), what, "get the folder again")
        model = cls(task, encoders, tokenizer=tokenizer)
        model.load_state_dict(weights)
        return model.to(find_device(device)).eval()


def _repeated(hidden: Hidden, distinct: Sequence[Sequence[str]], texts: Sequence[Sequence[str]]) -> Hidden:
    """Return the vectors of all texts, from those of the distinct ones."""
    known = dict(zip(distinct, torch.split(hidden.vectors, hidden.lengths.tolist()), strict=True))
    lengths = torch.tensor([len(text) for text in texts])
    return Hidden(torch.cat([known[text] for text in texts]), lengths, Packing.of(lengths))


def _read_weights(path: Path, task: Task[Any, Any, Any]) -> dict[str, Tensor]:
    """Read the weights; each label needs a row of some of them.

    Raises:
        ModelFileError: the file is damaged, holds no weights, or has too few rows.
    """
    try:
        check_safetensors(path)
        weights: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError, ValueError) as error:
        raise ModelFileError(f"{path}: the weights cannot be read ({error}); get the folder again") from error
    check_dtypes(path, {name: str(t.dtype).removeprefix("torch.") for name, t in weights.items()})
    rows = max((size for tensor in weights.values() for size in tensor.shape), default=0)
    for field in fields(task):  # type: ignore[arg-type]  # a dataclass, by its protocol
        found = getattr(task, field.name)
        if not isinstance(field.default, tuple):
            continue
        if not isinstance(found, tuple) or not all(isinstance(label, str) for label in found):
            raise ModelFileError(f"{path.parent}: config.json has {field.name} that are no list of strings")
        if not 0 < len(found) <= rows:
            raise ModelFileError(f"{path}: the weights do not fit {len(found)} {field.name} in config.json")
    return weights


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _weights(folder: Path, config: dict[str, Any]) -> Path:
    """Return the file of the weights; before version 0.2 it always had the same name."""
    return folder / Path(str(config.get("weights", "model.safetensors"))).name


def _free(folder: Path, stem: str, suffix: str = "") -> Path:
    """Return a name that is not in use, if possible without a number."""
    names = (folder / f"{stem}{suffix}", folder / f"{stem}-2{suffix}")
    return next(path for path in names if not path.exists())


def _remove_unused(folder: Path) -> None:
    """Delete weights and encoders that do not belong to the model, such as those of one that was replaced."""
    used: set[str] = set()
    with suppress(ModelFileError):  # there is no model
        config = read_json(folder / "config.json")
        encoders = re.findall(r"encoder-\d+(?:-2)?", str(config.get("encoders")))
        used = {_weights(folder, config).name, *encoders}
    for path in folder.iterdir():
        if path.name not in used and re.fullmatch(r"model(-2)?\.safetensors", path.name):
            path.unlink()
        elif path.name not in used and re.fullmatch(r"encoder-\d+(-2)?", path.name):
            remove_folder(path)


def num_tokens(item: Item) -> int:
    """Return the number of tokens of all texts of an item."""
    return sum(map(len, item.texts))


def read_config(folder: Path) -> dict[str, Any]:
    """Read the config.json of a model folder, of this format version or an older one.

    Raises:
        ModelFileError: the folder holds no task model.
    """
    path = folder / "config.json"
    config = read_json(path) if path.is_file() else {}
    if config.get("format") != FORMAT:
        bundled = f"{folder} is {Kind.MODEL}, not {Kind.TASK}" if str(folder) in bundled_names() else None
        found = "holds no task model" if folder.exists() else "does not exist"
        what = other_kind(folder, Kind.TASK) or bundled or f"{folder} {found}"
        raise ModelFileError(f"{what}; pass a folder that training a task wrote")
    if config.get("format_version") not in (1, FORMAT_VERSION):
        raise ModelFileError(
            f"{folder} holds no {FORMAT} model of version {FORMAT_VERSION} or 1; train one first"
        )
    parts = _PARTS | ({"labels": dict} if config["format_version"] == FORMAT_VERSION else {})
    wrong = [name for name, kind in parts.items() if not isinstance(config.get(name), kind)]
    for stored in config["encoders"] if "encoders" not in wrong else ():
        keys = ("spec", "fingerprint")
        if not isinstance(stored, dict) or not all(isinstance(stored.get(key), str) for key in keys):
            wrong.append("encoders")
    if wrong:
        raise ModelFileError(
            f"{folder}: config.json has no {' and no '.join(wrong)} as it should be; get the folder again"
        )
    return config


def _from_version_1(config: dict[str, Any], task: type[Task[Any, Any, Any]]) -> dict[str, Any]:
    """Keep what belongs to the task: in version 1 every file had the settings and labels of all tasks."""
    own = {field.name for field in fields(task.settings_type().head)}
    names = [field.name for field in fields(task) if field.name != "settings"]  # type: ignore[arg-type]
    try:
        head = {name: value for name, value in config["settings"]["head"].items() if name in own}
        labels = {name: config[name] for name in names}
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"config.json is not whole ({error!r}); get the folder again") from error
    return config | {"settings": config["settings"] | {"head": head}, "labels": labels}


def _reopen(stored: dict[str, str], folder: Path, device: str) -> Encoder:
    encoder = open_encoder(stored["spec"].replace(_INSIDE, str(folder)), device=device)
    found = encoder.fingerprint()
    if found != stored["fingerprint"]:
        raise ModelFileError(
            f"encoder {stored['spec']} has changed since {folder} was trained (fingerprint {found}, was "
            f"{stored['fingerprint']}); use the one it was trained with, or train again"
        )
    return encoder
