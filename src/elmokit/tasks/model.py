"""A task's model: encoders, the task's RNN, a head; in memory and as a folder.

config.json           task, labels, settings, tokenizer, the encoders and their fingerprints
model.safetensors     what was learnt
encoder-0, …          encoders that were tuned, or all of them if the folder is to stand alone
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar, overload

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from elmokit.base import settings_from_dict
from elmokit.embed import Text, batches_by_length, refuse_one_string, windows
from elmokit.encoders import Encoder, Sentences, open_encoder
from elmokit.errors import ConfigError, ModelFileError
from elmokit.formats import read_json
from elmokit.kernels import find_device
from elmokit.tasks.classifier import ClassifierHead
from elmokit.tasks.decisions import Decision
from elmokit.tasks.examples import Example, Task
from elmokit.tasks.inputs import TaskInputs
from elmokit.tasks.intent import IntentHead
from elmokit.tasks.prediction import Prediction
from elmokit.tasks.rnn import Hidden, TaskRNN
from elmokit.tasks.schemes import Scheme
from elmokit.tasks.settings import Settings
from elmokit.tasks.tagger import TaggerHead
from elmokit.text import Token, TokenizerSpec, make_tokenizer, tokens_from_list

FORMAT = "elmokit-task"
FORMAT_VERSION = 1
_INSIDE = "{model}"  # stands for the model's own folder in the spec of an encoder that lies in it
_BATCH_TOKENS = 4096

Model = TypeVar("Model", bound="TaskModel")


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """What a model is for.

    Attributes:
        task: which head.
        settings: of encoders, head and training.
        tokenizer: cuts text that is to be labelled.
        tags: of tokens, in the scheme that is learnt.
        labels: of texts.
        scheme: of the training data's tags.
    """

    task: Task
    settings: Settings
    tokenizer: TokenizerSpec
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    scheme: Scheme = "plain"

    @property
    def learnt_scheme(self) -> Scheme:
        """The scheme of `tags`."""
        return "plain" if self.scheme == "plain" else self.settings.head.scheme

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "TaskConfig":
        """The inverse of `to_dict`."""
        parsed = {
            "settings": Settings.from_dict(data["settings"]),
            "tokenizer": TokenizerSpec.from_dict(data["tokenizer"]),
            "tags": tuple(data["tags"]),
            "labels": tuple(data["labels"]),
        }
        return settings_from_dict(cls, {**data, **parsed}, "config")


class TaskModel(nn.Module):
    """A model that labels text; see `Tagger`, `Classifier` and `IntentModel`.

    Args:
        config: what it is for.
        encoders: whose vectors it reads.
        weights: how much each tag and each label counts in training, by name.
    """

    task: ClassVar[Task | None] = None

    def __init__(
        self, config: TaskConfig, encoders: Sequence[Encoder], weights: dict[str, float] | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.encoders = list(encoders)
        head, use = config.settings.head, config.settings.encoder
        if not head.rnn:  # its input is its output
            use = replace(use, place="input")
        self.inputs = TaskInputs(encoders, use)
        self.rnn = TaskRNN(
            self.inputs.input_dim,
            self.inputs.output_dim,
            size=head.rnn,
            layers=head.rnn_layers,
            dropout=head.dropout,
        )
        self.head = _make_head(config, self.rnn.output_dim, weights)
        self._tokenize = make_tokenizer(config.tokenizer)

    def forward(self, sentences: Sentences) -> Hidden:
        """The vectors that the head reads."""
        x, extra = self.inputs(sentences)
        hidden: Hidden = self.rnn(x, extra, torch.tensor([len(sentence) for sentence in sentences]))
        return hidden

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """The mean loss, and what the mixes of the layers add."""
        hidden = self([example.tokens for example in examples])
        return self.head.loss(hidden, examples) + self.inputs.regulariser()

    @torch.no_grad()
    def decide(self, sentences: Sentences) -> list[Decision]:
        """What the head says of each sentence, in order; a decision does not depend on the batch."""
        self.eval()
        decisions: dict[int, Decision] = {}
        for rows in batches_by_length([len(sentence) + 1 for sentence in sentences], _BATCH_TOKENS):
            hidden = self([sentences[row] for row in rows])
            decisions |= zip(rows, self.head.decide(hidden), strict=True)
        return [decisions[row] for row in range(len(sentences))]

    @overload
    def predict(self, texts: str) -> Prediction: ...  # type: ignore[overload-overlap]  # a str is an Iterable too
    @overload
    def predict(self, texts: Iterable[Text]) -> list[Prediction]: ...
    def predict(self, texts: str | Iterable[Text]) -> Prediction | list[Prediction]:
        """Label one text, or many: strings, or lists of tokens that are taken as they are."""
        if isinstance(texts, str):
            return next(self.stream([texts]))
        return list(self.stream(texts))

    def stream(self, texts: Iterable[Text]) -> Iterator[Prediction]:
        """Label any number of texts in order, holding only a few batches at a time."""
        refuse_one_string(texts)
        read = ((text, self._tokens(text)) for text in texts)
        for window in windows(read, lambda item: len(item[1]) + 1, _BATCH_TOKENS):
            decisions = self.decide([[token.text for token in tokens] for _, tokens in window])
            for (text, tokens), decision in zip(window, decisions, strict=True):
                yield Prediction.of(
                    text if isinstance(text, str) else " ".join(text),
                    tokens,
                    decision,
                    learnt=self.config.learnt_scheme,
                    shown=self.config.scheme,
                )

    def _tokens(self, text: Text) -> list[Token]:
        return self._tokenize(text) if isinstance(text, str) else tokens_from_list(text)

    def save(self, folder: str | Path, *, self_contained: bool = False) -> None:
        """Write the model.

        Args:
            folder: made if there is none; a model that lies there is replaced.
            self_contained: also write the encoders that were not tuned; else the folder refers to them.
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
        aside = folder / ".model.safetensors"
        save_file({name: tensor.contiguous() for name, tensor in self._learnt_state().items()}, aside)
        aside.chmod(0o644)  # safetensors makes files for oneself alone
        aside.rename(folder / "model.safetensors")
        config = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "encoders": stored,
        } | self.config.to_dict()
        text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
        (folder / "config.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls: type[Model], folder: str | Path, *, device: str = "cpu") -> Model:
        """Open what `save` wrote.

        Raises:
            ModelFileError: the folder holds no such model, or an encoder is not the one it was trained with.
            ConfigError: the model is for another task.
        """
        folder = Path(folder).resolve()
        data = read_json(folder / "config.json")
        if data.pop("format", None) != FORMAT or data.pop("format_version", None) != FORMAT_VERSION:
            raise ModelFileError(
                f"{folder} holds no {FORMAT} model of version {FORMAT_VERSION}; train one first"
            )
        encoders = [_reopen(stored, folder, device) for stored in data.pop("encoders")]
        config = TaskConfig.from_dict(data)
        if cls.task not in (None, config.task):
            raise ConfigError(f"{folder} holds a {config.task}, not a {cls.task}; open it as what it is")
        # Tuned encoders were saved as they became, so now they are like any others.
        frozen = replace(config.settings, encoder=replace(config.settings.encoder, tune_from=None))
        model = cls(replace(config, settings=frozen), encoders)
        try:
            model.load_state_dict(load_file(folder / "model.safetensors"))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise ModelFileError(
                f"{folder}: the weights do not fit ({error}); get the folder again"
            ) from error
        return model.to(find_device(device)).eval()

    def _learnt_state(self) -> dict[str, Tensor]:
        """All weights but those of tuned encoders, which are saved as encoders."""
        tuned = tuple(f"inputs.parts.{number}.module." for number in self.inputs.tuned_parts())
        return {name: tensor for name, tensor in self.state_dict().items() if not name.startswith(tuned)}


class Tagger(TaskModel):
    """Labels spans (entities, slots) or single tokens (parts of speech).

    Example:
        >>> Tagger.load("ner").predict("Ada Lovelace lived in London.").spans          # doctest: +SKIP
        [LabelledSpan(text='Ada Lovelace', start=0, end=12, label='PER', probability=0.98), ...]
    """

    task = "tagger"


class Classifier(TaskModel):
    """Labels whole texts.

    Example:
        >>> Classifier.load("sentiment").predict("A lovely film.").label               # doctest: +SKIP
        'positive'
    """

    task = "classifier"


class IntentModel(TaskModel):
    """Finds the intent of a text and its slots.

    Example:
        >>> found = IntentModel.load("intents").predict("play some jazz")               # doctest: +SKIP
        >>> found.label, [(slot.label, slot.text) for slot in found.spans]              # doctest: +SKIP
        ('PlayMusic', [('genre', 'jazz')])
    """

    task = "intent"


MODELS: dict[Task, type[TaskModel]] = {
    "tagger": Tagger,
    "classifier": Classifier,
    "intent": IntentModel,
}


def load_task(folder: str | Path, *, device: str = "cpu") -> TaskModel:
    """Load a model folder that `train` or `TaskModel.save` wrote, whatever its task."""
    return TaskModel.load(folder, device=device)


def _make_head(
    config: TaskConfig, dim: int, weights: dict[str, float] | None
) -> TaggerHead | ClassifierHead | IntentHead:
    head = config.settings.head

    def of(names: Sequence[str]) -> Tensor | None:
        return None if weights is None else torch.tensor([weights[name] for name in names])

    if config.task != "classifier":
        tagger = TaggerHead(dim, config.tags, config.learnt_scheme, crf=head.crf, weights=of(config.tags))
        if config.task == "tagger":
            return tagger
    classifier = ClassifierHead(
        dim, config.labels, pooling=head.pooling, multi_label=head.multi_label, weights=of(config.labels)
    )
    return IntentHead(classifier, tagger) if config.task == "intent" else classifier


def _reopen(stored: dict[str, str], folder: Path, device: str) -> Encoder:
    encoder = open_encoder(stored["spec"].replace(_INSIDE, str(folder)), device=device)
    found = encoder.fingerprint()
    if found != stored["fingerprint"]:
        raise ModelFileError(
            f"encoder {stored['spec']} has changed since {folder} was trained (fingerprint {found}, was "
            f"{stored['fingerprint']}); use the one it was trained with, or train again"
        )
    return encoder
