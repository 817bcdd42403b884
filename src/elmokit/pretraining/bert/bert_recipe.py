"""What is trained and how: a size by name, and settings with defaults that a TOML file may change."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from elmokit.base import (
    bounded,
    check_fields,
    check_option,
    parse_toml,
    refuse_unknown_keys,
    settings_from_dict,
)
from elmokit.errors import ConfigError

_MOST = 100_000


@dataclass(frozen=True, kw_only=True)
class BertShape:
    """The sizes of the network, as Devlin et al. 2018 name them.

    Attributes:
        layers: L, transformer layers.
        hidden: H, size of every vector.
        heads: Of the attention; they divide `hidden`.
        inner: Size of the feed-forward network between two layers.
    """

    layers: int = bounded(MISSING, least=1, most=100)
    hidden: int = bounded(MISSING, least=1, most=_MOST)
    heads: int = bounded(MISSING, least=1, most=_MOST)
    inner: int = bounded(MISSING, least=1, most=_MOST)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.hidden % self.heads:
            raise ConfigError(f"{self.heads} heads do not divide {self.hidden} numbers; choose a divisor")


# The published small BERTs of Turc et al. 2019. mini has about as many parameters as the bundled `en`.
BERT_SIZES = {
    "tiny": BertShape(layers=2, hidden=128, heads=2, inner=512),
    "mini": BertShape(layers=4, hidden=256, heads=4, inner=1024),
    "small": BertShape(layers=4, hidden=512, heads=8, inner=2048),
}


@dataclass(frozen=True, kw_only=True)
class BertRecipe:
    """How a BERT is trained.

    Attributes:
        model: Its shape.
        vocabulary: Pieces of its vocabulary, at most.
        batch: Rows of a step, over all processes.
        length: Pieces of a row, which holds one sequence or several; the model reads no longer text at once.
        masked: Share of the pieces that are to be predicted. Of these 80 % are hidden, 10 % replaced by
            another piece, and 10 % left as they are.
        whole_words: Whether the pieces of a word are predicted together.
        nsp: Whether the model also predicts if the second part of a sequence follows the first one in the
            text (next-sentence prediction).
        dropout: Of the network in pretraining. A model that reads its text once or twice does not need it.
        learning_rate: Its peak.
        warmup: Steps over which the learning rate rises to the peak.
        decay: Share of the budget, at its end, over which the learning rate falls to a hundredth of the peak.
        weight_decay: Of AdamW, for matrices.
        clip_norm: Greatest norm of all gradients together; longer ones are scaled down to it.
        seed: Of all random numbers.
    """

    NAMES: ClassVar[tuple[str, ...]] = ("default", "paper")

    model: BertShape = BERT_SIZES["mini"]
    vocabulary: int = bounded(16_000, least=100, most=1_000_000)
    batch: int = bounded(64, least=1)
    length: int = bounded(128, least=8, most=_MOST)
    masked: float = bounded(0.15, above=0, below=1)
    whole_words: bool = False
    nsp: bool = True
    dropout: float = bounded(0.0, least=0, below=1)
    learning_rate: float = bounded(0.001, above=0)
    warmup: int = bounded(500, least=0)
    decay: float = bounded(1.0, least=0, most=1)
    weight_decay: float = bounded(0.01, least=0)
    clip_norm: float = bounded(1.0, above=0)
    seed: int = bounded(1, least=0)

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def named(cls, name: str) -> "BertRecipe":
        """Return a recipe by its name, or that of a TOML file; see `read_bert_recipe`."""
        return read_bert_recipe(name)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "BertRecipe":
        """Undo `to_dict`."""
        return settings_from_dict(cls, data, "recipe")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)

    def resized(self, size: str) -> "BertRecipe":
        """Return the recipe with the shape of that name.

        Raises:
            ConfigError: There is none.
        """
        check_option("size", size, BERT_SIZES)
        return replace(self, model=BERT_SIZES[size])

    @property
    def shape_name(self) -> str:
        """The name of its shape, or its layers and their size."""
        names = [name for name, size in BERT_SIZES.items() if size == self.model]
        return names[0] if names else f"{self.model.layers}/{self.model.hidden}"


# As published, apart from the length and the batch, which are those of a small machine.
_PAPER = BertRecipe(vocabulary=30_522, dropout=0.1, learning_rate=1e-4, warmup=10_000)
_BASES = {"default": BertRecipe(), "paper": _PAPER}


def read_bert_recipe(name: str) -> BertRecipe:
    """Return a recipe by its name, or that of a TOML file.

    A file holds any of the settings of `BertRecipe`, `size = "tiny"` or a table `[model]` with those that
    differ from the size, and `base = "paper"` to start from that recipe.

    Raises:
        ConfigError: There is no such recipe, or a setting is unknown or impossible.
    """
    if name in _BASES:
        return _BASES[name]
    if not Path(name).is_file():
        raise ConfigError(f"recipe {name!r} is neither a file nor one of {', '.join(_BASES)}; check the path")
    try:
        data = parse_toml(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} is not a TOML file: {error}") from error
    refuse_unknown_keys(data, [*(field.name for field in fields(BertRecipe)), "base", "size"], name)
    base = data.pop("base", "default")
    check_option(f"{name}: base", base, _BASES)
    recipe = _BASES[base]
    if "size" in data:
        recipe = recipe.resized(data.pop("size"))
    model = data.get("model", {})
    if not isinstance(model, Mapping):
        raise ConfigError(f"[model] must be a table of settings, found {model!r}")
    return BertRecipe.from_dict({**recipe.to_dict(), **data, "model": {**asdict(recipe.model), **model}})
