"""What is trained and how: sizes by name, everything else with a default, all of it from TOML."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from elmokit.base import refuse_unknown_keys, settings_from_dict
from elmokit.errors import ConfigError
from elmokit.model import BiLMConfig, CharCNNConfig
from elmokit.pretrain.bilm.windows import Order

SoftmaxKind = Literal["sampled", "adaptive", "full"]
OptimizerKind = Literal["adamw", "adagrad"]

_PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


def _size(cell: int, dim: int, filters: tuple[tuple[int, int], ...], highways: int) -> BiLMConfig:
    return BiLMConfig(
        encoder=CharCNNConfig(filters=filters, embedding_dim=16, num_highway=highways),
        cell_dim=cell,
        projection_dim=dim,
        num_layers=2,
        cell_clip=3.0,
        projection_clip=3.0,
        skip_connections=True,
    )


# small, medium and original are the published shapes.
SIZES = {
    "tiny": _size(256, 64, ((1, 16), (2, 16), (3, 32), (4, 64)), 1),
    "small": _size(1024, 128, _PUBLISHED_FILTERS, 1),
    "medium": _size(2048, 256, _PUBLISHED_FILTERS, 1),
    "original": _size(4096, 512, _PUBLISHED_FILTERS, 2),
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is trained.

    Attributes:
        model: its shape.
        batch: B, rows of text side by side, over all processes.
        unroll: T, tokens of a row in one step; gradients do not go further back.
        order: "document" reads on through the text and carries the state over sentences; "sentence" shuffles
            sentences.
        reset: chance that a sentence starts from the zero state, from which it will start when embedded.
        join: share of the sentences that are read on from the one before as one text, for a model that will
            meet texts of several sentences; in document order alone.
        lowercase: chance that a sentence is read in lower case, for a model that will meet such text, too;
            the words to be predicted stay as they are.
        softmax: "sampled", "adaptive" or "full".
        negatives: words that a sampled softmax draws in each direction and step.
        cutoffs: ranks at which the clusters of an adaptive softmax begin.
        frequency_bias: whether the softmax starts at the words' frequencies.
        dropout: of every LSTM layer's input, and of the top output.
        variational: whether a dropout mask is the same at all steps of a window.
        weight_drop: dropout of the weights from state to gates.
        optimizer: "adamw" or "adagrad".
        learning_rate: its peak.
        warmup: steps over which the learning rate rises to the peak.
        cosine: whether it falls to a hundredth of the peak over the budget, else it stays.
        weight_decay: of AdamW, for matrices other than the softmax.
        clip_norm: to which the norm of all gradients together is cut.
        loss_factor: by which the loss is multiplied before gradients are formed.
        seed: of all random numbers.
    """

    model: BiLMConfig = SIZES["small"]
    batch: int = 128
    unroll: int = 20
    order: Order = "document"
    reset: float = 0.5
    join: float = 0.0
    lowercase: float = 0.0
    softmax: SoftmaxKind = "sampled"
    negatives: int = 4096
    cutoffs: tuple[int, ...] = (4000, 20000)
    frequency_bias: bool = True
    dropout: float = 0.1
    variational: bool = False
    weight_drop: float = 0.0
    optimizer: OptimizerKind = "adamw"
    learning_rate: float = 0.003
    warmup: int = 300
    cosine: bool = True
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    loss_factor: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        self._check_cutoffs()
        for name, choices in (("order", Order), ("softmax", SoftmaxKind), ("optimizer", OptimizerKind)):
            if getattr(self, name) not in get_args(choices):
                raise ConfigError(
                    f"{name} must be one of {', '.join(get_args(choices))}, found {getattr(self, name)!r}"
                )
        for name, least in (("batch", 1), ("unroll", 1), ("negatives", 1), ("warmup", 0), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ConfigError(f"{name} must be a whole number of at least {least}, found {value!r}")
        for name in ("reset", "join", "lowercase", "dropout", "weight_drop"):
            value, may_be_one = getattr(self, name), name in ("reset", "lowercase")
            if not isinstance(value, int | float) or not (0 <= value < 1 or (may_be_one and value == 1)):
                most = "1" if may_be_one else "below 1"
                raise ConfigError(f"{name} must be from 0 to {most}, found {value!r}")
        if self.join and self.order != "document":
            raise ConfigError(f'join must be 0 where order = "{self.order}", found {self.join}')
        for name in ("learning_rate", "clip_norm", "loss_factor"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise ConfigError(f"{name} must be a positive number, found {value!r}")
        if not isinstance(self.weight_decay, int | float) or not 0 <= self.weight_decay < float("inf"):
            raise ConfigError(f"weight_decay must be a number of at least 0, found {self.weight_decay!r}")

    def _check_cutoffs(self) -> None:
        found = self.cutoffs
        whole = isinstance(found, list | tuple) and all(isinstance(rank, int) for rank in found)
        if not whole or any(a >= b for a, b in pairwise((0, *found))):
            raise ConfigError(f"cutoffs must be a list of ranks, each above the one before, found {found!r}")
        if self.softmax == "adaptive" and not found:
            raise ConfigError(
                "an adaptive softmax needs cutoffs, the ranks at which its clusters begin; found none"
            )
        object.__setattr__(self, "cutoffs", tuple(found))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Recipe":
        """The inverse of `to_dict`."""
        data = dict(data)
        if "model" in data:
            data["model"] = BiLMConfig.from_dict(data["model"])
        return settings_from_dict(cls, data, "recipe")

    def differences(self, other: "Recipe") -> list[str]:
        """What is set otherwise in `other`, in words."""
        pairs = [
            (field.name, getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        ]
        return [f"{name} is {a}, was {b}" for name, a, b in pairs if a != b]


# bilm-tf's own settings (FORMATS: batch 128 on each of three GPUs, gradients of the loss × 20, Adagrad).
PAPER = Recipe(
    model=SIZES["original"],
    batch=384,
    unroll=20,
    reset=0.0,
    negatives=8192,
    frequency_bias=False,
    dropout=0.1,
    optimizer="adagrad",
    learning_rate=0.2,
    warmup=0,
    cosine=False,
    weight_decay=0.0,
    clip_norm=10.0,
    loss_factor=20.0,
)


def read_recipe(name: str, size: str | None = None) -> Recipe:
    """The recipe "default" or "paper", or that of a TOML file; `size` takes the place of its model.

    A file holds any of the settings of `Recipe`, `size = "small"` or a table `[model]` with those that differ
    from the size, and `base = "paper"` to start from that recipe.

    Raises:
        ConfigError: there is no such recipe, or a setting is unknown or impossible.
    """
    bases = {"default": Recipe(), "paper": PAPER}
    if name in bases:
        recipe = bases[name]
    elif not Path(name).is_file():
        raise ConfigError(f"recipe {name!r} is none of {', '.join(bases)} and no TOML file; check the path")
    else:
        try:
            data = tomllib.loads(Path(name).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{name} is no TOML file: {error}") from error
        known = [field.name for field in fields(Recipe)]
        refuse_unknown_keys(data, [*known, "base", "size"], name)
        base = data.pop("base", "default")
        if base not in bases:
            raise ConfigError(f"{name}: base must be one of {', '.join(bases)}, found {base!r}")
        recipe = bases[base]
        named = data.pop("size", None)
        model = recipe.model if named is None else size_named(named)
        data["model"] = _changed(model, data.get("model", {}))
        recipe = replace(recipe, **data)
    return recipe if size is None else replace(recipe, model=size_named(size))


def size_named(name: str) -> BiLMConfig:
    """The shape of that name.

    Raises:
        ConfigError: there is none.
    """
    if name not in SIZES:
        raise ConfigError(f"size must be one of {', '.join(SIZES)}, found {name!r}")
    return SIZES[name]


def _changed(model: BiLMConfig, changes: object) -> BiLMConfig:
    if not isinstance(changes, Mapping):
        raise ConfigError(f"[model] must be a table of settings, found {changes!r}")
    data = model.to_dict()
    encoder = changes.get("encoder", {})
    if not isinstance(encoder, Mapping):
        raise ConfigError(f"[model.encoder] must be a table of settings, found {encoder!r}")
    if "num_words" not in encoder:  # a table of words takes the place of the character encoder
        encoder = {**data["encoder"], **encoder}
    return BiLMConfig.from_dict({**data, **changes, "encoder": encoder})
