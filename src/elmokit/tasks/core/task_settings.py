"""The settings of a task: three groups, each with its defaults."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from elmokit.base import bounded, changed_settings, check_fields

SettingsT = TypeVar("SettingsT", bound="TaskSettings")


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """How contextual encoders (ELMo, BERT) are used (Peters et al. 2018, section 3.3).

    Attributes:
        mix: how the layers become one vector: "learnt" weights, the "average", or the "top" layer.
        mix_penalty: λ of the regulariser that pulls learnt weights towards the average.
        place: [x; ELMo] at the "input" of the task's RNN, [h; ELMo] at its "output", or "both", each with its
            own mix.
        dropout: rate for the mixed vectors.
        tune_from: the lowest layer that is trained with the task: 0 for all layers, 1 to keep the token layer
            frozen, and so on; None trains none, so vectors are computed once and cached.
        learning_rate: of the top layer that is trained.
        layer_decay: factor from the learning rate of a layer to that of the layer below.
        gradual: whether to unfreeze one more layer in each epoch, from the top down.
    """

    mix: Literal["learnt", "average", "top"] = "learnt"
    mix_penalty: float = bounded(0.001, least=0)
    place: Literal["input", "output", "both"] = "both"
    dropout: float = bounded(0.3, least=0, most=1)
    tune_from: int | None = bounded(None, least=0)
    learning_rate: float = bounded(1e-4, least=0, most=1)
    layer_decay: float = bounded(0.5, least=0, most=1)
    gradual: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """The part of a model between encoders and labels; tasks add their own settings to these.

    Attributes:
        rnn: size of each direction of the task's LSTM; 0 for none: the head reads the encoders' vectors.
        rnn_layers: LSTM layers.
        dropout: rate before and after the LSTM.
        shared_dropout: whether all tokens of an example drop the same numbers, so that equal words stay
            equal, for heads that compare them.
        skip: whether the input of the LSTM joins its output, so that a head sees the words themselves.
    """

    rnn: int = bounded(200, least=0, most=100_000)
    rnn_layers: int = bounded(1, least=1, most=100)
    dropout: float = bounded(0.5, least=0, most=1)
    shared_dropout: bool = False
    skip: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a task model is trained.

    Attributes:
        epochs: at most so many.
        patience: stop after so many epochs without a better dev score.
        batch: examples per step.
        least_steps: steps that an epoch has at least. A small data set is passed several times per epoch, or
            training would stop, or the learning rate be halved, after very few steps.
        learning_rate: of AdamW, for all but tuned encoders; halved after two epochs without a better score.
        weight_decay: of AdamW.
        clip_norm: the largest norm of all gradients together.
        class_weights: whether rare labels count more (not with a CRF).
        share: how much of the training data to use.
        seed: of all random numbers.
    """

    epochs: int = bounded(50, least=1)
    patience: int = bounded(4, least=1)
    batch: int = bounded(32, least=1)
    least_steps: int = bounded(100, least=1)
    learning_rate: float = bounded(3e-3, least=0, most=10)
    weight_decay: float = bounded(0.0, least=0)
    clip_norm: float = bounded(5.0, least=0)
    class_weights: bool = False
    share: float = bounded(1.0, least=0, most=1)
    seed: int = bounded(1, least=0)

    def __post_init__(self) -> None:
        check_fields(self)

    def passes(self, examples: int) -> int:
        """Return how often an epoch passes over that many examples."""
        steps = math.ceil(examples / self.batch)
        return math.ceil(self.least_steps / max(1, steps))


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """The three groups; a task replaces `head` by its own."""

    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    head: HeadSettings = field(default_factory=HeadSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def changed(self: SettingsT, changes: Iterable[str]) -> SettingsT:
        """Return the settings with changes such as "head.rnn=100".

        Example:
            >>> TaskSettings().changed(["head.rnn=100", "training.epochs=5"]).head.rnn
            100

        Raises:
            ConfigError: a name is unknown or a value is not allowed.
        """
        return changed_settings(self, changes)

    def with_seed(self: SettingsT, seed: int) -> SettingsT:
        """Return the settings with another seed."""
        return replace(self, training=replace(self.training, seed=seed))
