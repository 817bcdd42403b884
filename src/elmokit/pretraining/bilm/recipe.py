"""What is trained and how: a size by name, and settings with defaults that a TOML file may change."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

from elmokit.base import (
    bounded,
    check_fields,
    check_option,
    parse_toml,
    refuse_unknown_keys,
    settings_from_dict,
    shown,
)
from elmokit.errors import ConfigError
from elmokit.model import BiLMConfig, CharCNNConfig
from elmokit.pretraining.bilm.windows import Order

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
        model: Its shape.
        words: Whether the model has a vector for each word of the vocabulary, in place of the encoder of its
            shape: for text by character, where a word has no letters to be read.
        batch: B, rows of text side by side, over all processes.
        unroll: T, tokens of a row in one step; gradients do not reach further back.
        order: "document" reads through the text and carries the state over sentences; "sentence" shuffles
            sentences.
        reset: Chance that a sentence starts from the zero state, as it will when it is embedded.
        join: Share of sentences that continue the one before as one text, for a model that will meet texts
            of several sentences; only in document order.
        lowercase: Chance that a sentence is read in lower case, for a model that will meet such text; the
            words to predict stay as they are.
        softmax: "sampled", "adaptive" or "full".
        negatives: Words that a sampled softmax draws in each direction and step.
        cutoffs: Ranks at which the clusters of an adaptive softmax begin.
        frequency_bias: Whether the bias of the softmax starts at the log frequencies of the words.
        dropout: Of the input of every LSTM layer, and of the top output.
        variational: Whether a dropout mask is the same at all steps of a window.
        weight_drop: Dropout of the weights from state to gates.
        optimizer: "adamw" or "adagrad".
        learning_rate: Its peak.
        warmup: Steps over which the learning rate rises to the peak.
        decay: Share of the budget, at its end, over which the learning rate falls to a hundredth of the peak.
        weight_decay: Of AdamW, for matrices other than the softmax.
        clip_norm: Greatest norm of all gradients together; longer ones are scaled down to it.
        loss_factor: Factor of the loss before gradients are computed.
        imitate: Weight of the distance from a teacher's layers, beside the loss of the language model; only
            with a teacher.
        seed: Of all random numbers.
    """

    NAMES: ClassVar[tuple[str, ...]] = (
        "default", "characters", "paper", "adapt", "gated-cnn", "transformer",
    )  # fmt: skip

    model: BiLMConfig = SIZES["small"]
    words: bool = False
    batch: int = bounded(128, least=1)
    unroll: int = bounded(20, least=1)
    order: Order = "document"
    reset: float = bounded(0.5, least=0, most=1)
    join: float = bounded(0.0, least=0, below=1)
    lowercase: float = bounded(0.0, least=0, most=1)
    softmax: SoftmaxKind = "sampled"
    negatives: int = bounded(4096, least=1)
    cutoffs: tuple[int, ...] = (4000, 20000)
    frequency_bias: bool = True
    dropout: float = bounded(0.1, least=0, below=1)
    variational: bool = False
    weight_drop: float = bounded(0.0, least=0, below=1)
    optimizer: OptimizerKind = "adamw"
    learning_rate: float = bounded(0.003, above=0)
    warmup: int = bounded(300, least=0)
    decay: float = bounded(1.0, least=0, most=1)
    weight_decay: float = bounded(0.01, least=0)
    clip_norm: float = bounded(1.0, above=0)
    loss_factor: float = bounded(1.0, above=0)
    imitate: float = bounded(1.0, least=0)
    seed: int = bounded(1, least=0)

    def __post_init__(self) -> None:
        check_fields(self)
        self._check_cutoffs()
        if self.join and self.order != "document":
            raise ConfigError(f'join must be 0 if order = "{self.order}", found {self.join}')

    def _check_cutoffs(self) -> None:
        found = self.cutoffs
        whole = isinstance(found, list | tuple) and all(isinstance(rank, int) for rank in found)
        if not whole or any(a >= b for a, b in pairwise((0, *found))):
            raise ConfigError(
                f"cutoffs must be a list of ranks, each above the one before, found {shown(found)}"
            )
        if self.softmax == "adaptive" and not found:
            raise ConfigError(
                "an adaptive softmax needs cutoffs, the ranks at which its clusters begin; found none"
            )
        object.__setattr__(self, "cutoffs", tuple(found))

    @classmethod
    def named(cls, name: str) -> "Recipe":
        """Return a recipe by its name, or that of a TOML file; see `read_recipe`."""
        return read_recipe(name)

    def resized(self, size: str) -> "Recipe":
        """Return the recipe with the shape of that name."""
        kind = self.model.layers
        return replace(self, model=replace(size_named(size), layers=kind))

    @property
    def shape_name(self) -> str:
        """The name of its shape, or its numbers in a few characters."""
        like = replace(self.model, layers="lstm")
        names = [name for name, size in SIZES.items() if size == like]
        return names[0] if names else f"{self.model.cell_dim}/{self.model.projection_dim}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Recipe":
        """Read what `to_dict` returned, also that of version 0.1."""
        data = dict(data)
        if "cosine" in data:  # 0.1: whether the learning rate falls over the whole budget
            data["decay"] = 1.0 if data.pop("cosine") else data.get("decay", 0.0)
        if "model" in data:
            data["model"] = BiLMConfig.from_dict(data["model"])
        return settings_from_dict(cls, data, "recipe")


# bilm-tf's own settings: batch 128 on each of three GPUs, gradients of the loss × 20, Adagrad.
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
    decay=0.0,
    weight_decay=0.0,
    clip_norm=10.0,
    loss_factor=20.0,
)

# For Chinese and other text by character: the settings of the bundled Chinese model (recipes/zh.toml).
CHARACTERS = Recipe(
    model=replace(SIZES["small"], cell_dim=640, projection_dim=192),
    words=True,
    batch=96,
    unroll=30,
    reset=1.0,
    negatives=2048,
    dropout=0.0,
    learning_rate=0.004,
)

# Layers that read a text at once learn nothing from what stands outside the window: it is longer, and
# sentences are read as they are embedded.
PARALLEL = {
    kind: Recipe(
        model=replace(SIZES["small"], layers=kind), batch=32, unroll=80, reset=1.0, learning_rate=0.002
    )
    for kind in ("gated-cnn", "transformer")
}

# For a trained model that gets used to some hundred thousand words of another kind: small batches and steps.
ADAPT = Recipe(batch=16, unroll=30, reset=1.0, negatives=2048, learning_rate=0.001, warmup=50)
BASES = {"default": Recipe(), "characters": CHARACTERS, "paper": PAPER, "adapt": ADAPT, **PARALLEL}


def read_recipe(name: str, size: str | None = None) -> Recipe:
    """Return a recipe by its name, or that of a TOML file.

    A file holds any of the settings of `Recipe`, `size = "small"` or a table `[model]` with those that differ
    from the size, and `base = "paper"` to start from that recipe.

    Args:
        name: "default", "characters" (for text that is tokenised by character), "adapt" (for a trained
            model and little text), "paper", "gated-cnn" or "transformer" (for such layers), or a file.
        size: "tiny", "small", "medium" or "original", in place of the recipe's shape.

    Raises:
        ConfigError: There is no such recipe, or a setting is unknown or impossible.
    """
    if name in BASES:
        recipe = BASES[name]
    elif not Path(name).is_file():
        raise ConfigError(f"recipe {name!r} is neither a file nor one of {', '.join(BASES)}; check the path")
    else:
        try:
            data = parse_toml(Path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{name} is not a TOML file: {error}") from error
        known = [field.name for field in fields(Recipe)]
        refuse_unknown_keys(data, [*known, "base", "size"], name)
        base = data.pop("base", "default")
        check_option(f"{name}: base", base, BASES)
        recipe = BASES[base]
        named = data.pop("size", None)
        model = recipe.model if named is None else recipe.resized(named).model
        data["model"] = _changed(model, data.get("model", {}))
        recipe = replace(recipe, **data)
    return recipe if size is None else recipe.resized(size)


def size_named(name: str) -> BiLMConfig:
    """Return the shape of that name.

    Raises:
        ConfigError: There is none.
    """
    check_option("size", name, SIZES)
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
