"""How a task is learnt: three small groups of settings, each with its defaults."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from elmokit.base import refuse_unknown_keys, settings_from_dict
from elmokit.errors import ConfigError
from elmokit.tasks.schemes import SPAN_SCHEMES, Scheme

MixChoice = Literal["learnt", "average", "top"]
Place = Literal["input", "output", "both"]
PoolingChoice = Literal["attention", "max", "mean"]


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """How contextual encoders (ELMo, BERT) are used (Peters et al. 2018, section 3.3).

    Attributes:
        mix: what makes one vector of the layers: "learnt" weights, the "average", the "top" layer.
        mix_penalty: λ of the regulariser that draws learnt weights towards the average.
        place: [x; ELMo] at the "input" of the task's RNN, [h; ELMo] at its "output", or "both", each with its
            own mix.
        dropout: of the mixed vectors.
        tune_from: the lowest layer that is trained with the task: 0 for all, 1 to leave the token layer as it
            is, and so on; None trains none, so that vectors are computed once and cached.
        learning_rate: of the top layer that is trained.
        layer_decay: by what a layer's learning rate is multiplied for the next lower one.
        gradual: whether layers join one an epoch, from the top down.
    """

    mix: MixChoice = "learnt"
    mix_penalty: float = 0.001
    place: Place = "both"
    dropout: float = 0.3
    tune_from: int | None = None
    learning_rate: float = 1e-4
    layer_decay: float = 0.5
    gradual: bool = False

    def __post_init__(self) -> None:
        _choice(self, "mix", MixChoice)
        _choice(self, "place", Place)
        _between(self, "dropout", 0, 1)
        _between(self, "layer_decay", 0, 1)
        _between(self, "learning_rate", 0, 1)
        _between(self, "mix_penalty", 0, float("inf"))
        _flag(self, "gradual")
        if self.tune_from is not None:
            _whole(self, "tune_from", 0)


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """What is trained on top.

    Attributes:
        rnn: size of each direction of the task's LSTM; 0 for none: labels come straight from the vectors.
        rnn_layers: LSTM layers.
        dropout: before and after the LSTM.
        crf: whether a tagger looks at whole sequences, of legal steps alone; else at each token by itself.
        scheme: the tag scheme that a tagger learns, whatever that of the data.
        pooling: how a classifier makes one vector of the tokens'.
        multi_label: whether a text may have several labels.
    """

    rnn: int = 200
    rnn_layers: int = 1
    dropout: float = 0.5
    crf: bool = True
    scheme: Scheme = "BIOES"
    pooling: PoolingChoice = "attention"
    multi_label: bool = False

    def __post_init__(self) -> None:
        _whole(self, "rnn", 0)
        _whole(self, "rnn_layers", 1)
        _between(self, "dropout", 0, 1)
        _choice(self, "pooling", PoolingChoice)
        _flag(self, "crf")
        _flag(self, "multi_label")
        if self.scheme not in SPAN_SCHEMES:
            raise ConfigError(f"scheme must be one of {', '.join(SPAN_SCHEMES)}, found {self.scheme!r}")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """The loop.

    Attributes:
        epochs: at most so many.
        patience: epochs without a better dev score after which to stop.
        batch: sentences a step.
        least_steps: of an epoch. Few data are gone through several times in one, because to stop, or to halve
            the learning rate, after a few steps without a better score would be to stop before it has begun.
        learning_rate: of Adam, for all but tuned encoders; halved when two epochs bring no better score.
        weight_decay: of AdamW.
        clip_norm: to which the norm of all gradients together is cut.
        class_weights: whether rare labels count more (not with a CRF).
        share: of the training data to use.
        seed: of all random numbers.
    """

    epochs: int = 50
    patience: int = 4
    batch: int = 32
    least_steps: int = 100
    learning_rate: float = 3e-3
    weight_decay: float = 0.0
    clip_norm: float = 5.0
    class_weights: bool = False
    share: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "batch", "least_steps"):
            _whole(self, name, 1)
        _whole(self, "seed", 0)
        _between(self, "learning_rate", 0, 10)
        _between(self, "weight_decay", 0, float("inf"))
        _between(self, "clip_norm", 0, float("inf"))
        _flag(self, "class_weights")
        _between(self, "share", 0, 1)

    def passes(self, examples: int) -> int:
        """How often an epoch goes through that many examples."""
        steps = math.ceil(examples / self.batch)
        return math.ceil(self.least_steps / max(1, steps))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All three groups."""

    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    head: HeadSettings = field(default_factory=HeadSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping[str, Any]]) -> "Settings":
        """The inverse of `to_dict`; an unknown name is an error that offers the nearest known one."""
        refuse_unknown_keys(data, _GROUPS, "settings")
        return cls(**{name: settings_from_dict(_GROUPS[name], group, name) for name, group in data.items()})

    def changed(self, assignments: Iterable[str]) -> "Settings":
        """The same with changes such as "head.rnn=100".

        Example:
            >>> Settings().changed(["head.rnn=100", "head.pooling=max"]).head.pooling
            'max'

        Raises:
            ConfigError: a name is unknown or a value cannot be.
        """
        groups = self.to_dict()
        for assignment in assignments:
            path, equals, value = assignment.partition("=")
            group, _, name = path.strip().partition(".")
            if not equals or group not in groups:
                raise ConfigError(
                    f"expected GROUP.NAME=VALUE with a group of {', '.join(groups)}, found {assignment!r}"
                )
            refuse_unknown_keys([name], [known.name for known in fields(_GROUPS[group])], group)
            groups[group][name] = _value(value.strip())
        return Settings.from_dict(groups)

    def with_seed(self, seed: int) -> "Settings":
        """The same with another seed."""
        return replace(self, training=replace(self.training, seed=seed))


def task_settings(task: str, changes: Iterable[str] = ()) -> Settings:
    """Return the settings of a task, with changes such as "head.rnn=100"."""
    return Settings().changed(changes)


_GROUPS: dict[str, Any] = {
    "encoder": EncoderSettings,
    "head": HeadSettings,
    "training": TrainingSettings,
}


def _value(text: str) -> object:
    """A value as TOML has it; "none" for nothing, other words without quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return None if text == "none" else text


def _choice(settings: object, name: str, choices: Any) -> None:  # noqa: ANN401 (a Literal is of no type)
    value = getattr(settings, name)
    if value not in get_args(choices):
        raise ConfigError(f"{name} must be one of {', '.join(get_args(choices))}, found {value!r}")


def _flag(settings: object, name: str) -> None:
    value = getattr(settings, name)
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, found {value!r}")


def _whole(settings: object, name: str, least: int) -> None:
    value = getattr(settings, name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, found {value!r}")


def _between(settings: object, name: str, least: float, most: float) -> None:
    value = getattr(settings, name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigError(f"{name} must be a number from {least} to {most}, found {value!r}")
