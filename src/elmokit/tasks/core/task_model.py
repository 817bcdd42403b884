"""A task's model: encoders, the task's RNN, a head; in memory and as a folder.

config.json           the task with its labels and settings, the tokenizer, the encoders with fingerprints
model.safetensors     the trained weights
encoder-0, …          encoders that were tuned, or all of them if the folder is to be self-contained

Where a model is replaced, the new weights and encoders get other names (model-2.safetensors, encoder-0-2), so
that the old model stays whole until the new config.json, which names them, takes the place of the old one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, get_args, overload

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from elmokit.base import (
    check_fields,
    check_option,
    draft_file,
    locked,
    settings_from_dict,
    write_errors,
    write_json,
)
from elmokit.embed import batches_by_length, windows
from elmokit.encoders import Encoder
from elmokit.errors import ConfigError
from elmokit.formats import StoredType, check_shapes, write_tensors
from elmokit.kernels import find_device
from elmokit.model import Packing
from elmokit.tasks.core.inputs import TaskInputs
from elmokit.tasks.core.protocol import E, Hidden, Item, O, P, Task
from elmokit.tasks.core.rnn import TaskRNN
from elmokit.tasks.core.task_folder import (
    FORMAT,
    FORMAT_VERSION,
    INSIDE,
    find_task_folder,
    free_name,
    from_version_1,
    read_config,
    read_weights,
    remove_unused,
    reopen,
    weights_file,
)
from elmokit.text import TokenizerSpec, make_tokenizer

_BATCH_TOKENS = 4096
_LEAST_ROW = 32  # numbers of a matrix row that is stored in int8: of shorter ones the scales take as much

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

    def save(
        self, folder: str | Path, *, self_contained: bool = False, dtype: StoredType = "float32"
    ) -> None:
        """Write the model.

        Args:
            folder: created if it does not exist; a model in it is replaced.
            self_contained: also write the encoders that were not tuned; otherwise the folder refers to them.
            dtype: type of the stored weights: "float32", "float16" or "int8". Encoders stay as they are.

        Raises:
            DataError: the folder cannot be written.
            BusyError: another process is writing it.
            ConfigError: the type is unknown.
        """
        check_option("dtype", dtype, get_args(StoredType))
        folder = Path(folder).resolve()
        with locked(folder, parents=True), write_errors(folder, also=(SafetensorError,)):
            folder.mkdir(exist_ok=True)
            remove_unused(folder)
            self._write(folder, self_contained=self_contained, dtype=dtype)
            remove_unused(folder)

    def _write(self, folder: Path, *, self_contained: bool, dtype: StoredType) -> None:
        tuned = self.inputs.tuned_parts()
        stored = []
        for number, encoder in enumerate(self.encoders):
            spec = encoder.spec
            if number in tuned or (self_contained and encoder.pretrained):
                spec = encoder.save(free_name(folder, f"encoder-{number}")).replace(str(folder), INSIDE)
            stored.append({"spec": spec, "fingerprint": encoder.fingerprint()})
        # Tuned encoders are saved as encoders.
        encoders = tuple(f"inputs.parts.{number}.module." for number in tuned)
        state = {name: tensor for name, tensor in self.state_dict().items() if not name.startswith(encoders)}
        weights = free_name(folder, "model", ".safetensors")
        with draft_file(weights) as draft:
            write_tensors(draft, state, dtype, quantised=_to_int8)
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
    def load(
        cls: type[Model],
        folder: str | Path,
        *,
        device: str = "cpu",
        precision: str = "float32",
        changes: Iterable[str] = (),
    ) -> Model:
        """Load a folder that `save` wrote, or a model that comes with the package by its name.

        Args:
            folder: the folder or name.
            device: where to compute.
            precision: of a frozen ELMo's products: "auto" is the fastest that this machine does natively; see
                `elmokit.load`. Most of the time of a prediction is spent there.
            changes: settings that are changed, such as "head.beam=10"; those of sizes cannot be.

        Raises:
            ModelFileError: the folder holds no such model, or an encoder is not the one it was trained with.
            ConfigError: the model is for another task, or a change is not allowed.
        """
        folder = Path(find_task_folder(folder)).resolve()
        config = read_config(folder)
        if config["task"] != cls.task_type.name:
            raise ConfigError(
                f"{folder} holds a {config['task']}, not a {cls.task_type.name}; load it as what it is"
            )
        if config["format_version"] == 1:
            config = from_version_1(config, cls.task_type)
        encoders = [
            reopen(stored, folder, device=device, precision=precision) for stored in config["encoders"]
        ]
        settings = settings_from_dict(cls.task_type.settings_type, config["settings"], "settings")
        settings = settings.changed(changes)
        # Tuned encoders were saved after tuning, so now they are like any others.
        settings = replace(settings, encoder=replace(settings.encoder, tune_from=None))
        labels = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in config["labels"].items()
        }
        task = settings_from_dict(cls.task_type, {"settings": settings, **labels}, f"{folder}, labels")
        check_fields(task)
        tokenizer = TokenizerSpec.from_dict(config["tokenizer"])
        weights = read_weights(weights_file(folder, config), task)
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


def _to_int8(_: str, tensor: Tensor) -> bool:
    return tensor.dim() == 2 and tensor.shape[1] >= _LEAST_ROW


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def num_tokens(item: Item) -> int:
    """Return the number of tokens of all texts of an item."""
    return sum(map(len, item.texts))
