"""One vector for a sentence: how it is made of the vectors of its tokens, and the fitting of that."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from elmokit.base import check_number, check_option, check_whole_number, progress_display, random_sample
from elmokit.embed.sentence import Floats, LayerChoice, Pooling, Sentence, layer_index
from elmokit.errors import ConfigError, DataError
from elmokit.formats import bundled_names, find_model, looks_native, try_json, write_pooling
from elmokit.model import FittedPooling, fit_statistics
from elmokit.text import Input, TextSource, make_tokenizer, read_texts, split_language

if TYPE_CHECKING:
    from elmokit.embed.text_embedder import TextEmbedder

SentencePooling = Literal["mean", "max", "ends", "sif", "whitened"]

_WORDS = 10_000  # with a weight; rarer ones hardly differ from 1
_FEWEST = 1000  # sentences to fit on


@dataclass(frozen=True)
class Pooler:
    """Makes a vector of each sentence; `SentencePooling` names the ways.

    Attributes:
        pooling: The way.
        layers: The layers, for the ways that are not fitted.
        shape: The shape of a vector, with the number of layers first if there are several.
        fitted: The statistics, for "sif" and "whitened".
    """

    pooling: SentencePooling
    layers: LayerChoice
    shape: tuple[int, ...]
    fitted: FittedPooling | None

    @classmethod
    def of(
        cls,
        embedder: "TextEmbedder",
        pooling: SentencePooling | None,
        layers: LayerChoice | None,
        dim: int | None = None,
    ) -> "Pooler":
        """Check a choice and fill in what was not said.

        By default vectors are "whitened" if that was fitted for the model, else the "mean" of the layers'
        mix; the mean, too, if only layers are chosen.

        Raises:
            ConfigError: The choice is unknown, not fitted for this model, or contradicts itself.
        """
        fitted = embedder.pooling
        if pooling is None:
            pooling = "whitened" if fitted is not None and layers is None else "mean"
        check_option("pooling", pooling, get_args(SentencePooling))
        if dim is not None and pooling != "whitened":
            raise ConfigError(
                f'dim={dim} needs pooling="whitened", found {pooling!r}: only whitened vectors have their '
                "most important numbers first, so that the last ones can be left out"
            )
        if pooling in get_args(Pooling):
            chosen = "mix" if layers is None else layers
            found = [] if chosen in ("mix", "average") else layer_index(chosen, embedder.num_layers)
            several = [len(found)] if isinstance(found, list) and found else []
            return cls(pooling, chosen, (*several, embedder.dim), None)
        if fitted is None:
            raise ConfigError(
                f"pooling={pooling!r} needs statistics, which this model does not have; fit them with "
                "elmokit.fit_pooling, or choose mean, max or ends"
            )
        if layers is not None:
            raise ConfigError(
                f"pooling={pooling!r} has layers of its own, found layers={layers!r}; leave it out"
            )
        if dim is not None:
            check_whole_number("dim", dim, least=1, most=fitted.dim)
        size = embedder.dim if pooling == "sif" else dim or fitted.dim
        return cls(pooling, "all", (size,), fitted)

    def __call__(self, sentence: Sentence) -> Floats:
        """Return the vector of a sentence; zeros for an empty one."""
        if self.fitted is None:
            simple: Pooling = self.pooling  # type: ignore[assignment]  # `of` has checked it
            return sentence.pool(simple, layers=self.layers)
        if not len(sentence):
            return np.zeros(self.shape, np.float32)
        if self.pooling == "sif":
            return self.fitted.sif(sentence.tokens, sentence.layers)
        vector = self.fitted.whitened(self.fitted.means_of(sentence.tokens, sentence.layers))
        return vector if self.shape == vector.shape else self.fitted.leading(vector, self.shape[0])


def fit_pooling(
    embedder: "TextEmbedder",
    source: TextSource,
    *,
    tokens: bool = False,
    split: bool | str = False,
    smoothing: float = 3e-4,
    layer_weights: Sequence[float] | None = None,
    num_axes: int = 192,
    whitening: float = 1.0,
    most: int = 30_000,
    folder: str | Path | None = None,
    progress: bool = False,
) -> FittedPooling:
    """Fit what "sif" and "whitened" sentence vectors need, on text without labels.

    Args:
        embedder: The model.
        source: A text file, one sentence per line; "-" for standard input; or a list of lines.
        tokens: Whether lines are tokens separated by blanks.
        split: Whether to split running text into sentences first. A language code chooses the rules; True
            means the language of the model's tokenizer.
        smoothing: a in the weight a / (a + p) of a word whose share in the text is p.
        layer_weights: The weight of each layer in a whitened vector, token layer first; by default 1 for the
            token layer and 0.3 for the others.
        num_axes: The numbers of a whitened vector for each layer.
        whitening: How far the numbers are brought to the same variance: 1 wholly, 0 not at all.
        most: How many sentences to fit on; of more, a random sample is taken.
        folder: Store the statistics in this folder, see `store_pooling`.
        progress: Show progress on standard error, if that is a terminal.

    Raises:
        ConfigError: A value is not allowed.
        DataError: The text has less than a thousand sentences.

    Example:
        >>> elmo.pooling = elmokit.fit_pooling(elmo, "text.txt")  # doctest: +SKIP
    """
    check_number("smoothing", smoothing, above=0)
    check_number("whitening", whitening, least=0, most=1)
    check_whole_number("num_axes", num_axes, least=1)
    check_whole_number("most", most, least=_FEWEST)
    if folder is not None:
        _place_for_pooling(folder)
    if layer_weights is None:
        layer_weights = [1.0] + [0.3] * (embedder.num_layers - 1)
    if len(layer_weights) != embedder.num_layers or not any(layer_weights) or min(layer_weights) < 0:
        raise ConfigError(f"expected {embedder.num_layers} weights of layers, found {list(layer_weights)}")
    language = split_language(split, embedder.tokenizer_spec.language, tokens=tokens)
    sentences = _sample(source, tokens, language, most)
    tokenize = make_tokenizer(embedder.tokenizer_spec)
    counts = Counter(
        word.lower()
        for text in sentences
        for word in (text if isinstance(text, list) else [token.text for token in tokenize(text)])
    )
    total = counts.total()
    common = [(word, count) for word, count in counts.most_common(_WORDS) if word and "\n" not in word]
    weights = np.array([smoothing / (smoothing + count / total) for _, count in common], np.float32)
    words = [word for word, _ in common]
    dim = embedder.dim
    start = FittedPooling(
        tuple(words),
        weights,
        np.zeros(dim, np.float32),
        np.zeros((embedder.num_layers, dim), np.float32),
        np.zeros((embedder.num_layers, dim, 1), np.float32),
        np.array(layer_weights, np.float32),
    )
    with progress_display(shown=progress) as begin:
        advance = begin("sentences", len(sentences))
        means = []
        for sentence in embedder.stream(sentences, copy=False):
            advance()
            if len(sentence):
                means.append(start.means_of(sentence.tokens, sentence.layers))
    fitted = fit_statistics(
        words,
        weights,
        np.stack(means),
        layer_weights=layer_weights,
        num_axes=min(num_axes, dim),
        whitening=whitening,
    )
    if folder is not None:
        store_pooling(embedder, fitted, folder)
    return fitted


def store_pooling(embedder: "TextEmbedder", pooling: FittedPooling, folder: str | Path) -> None:
    """Write fitted statistics into the folder of the model, and use them from now on.

    Raises:
        ConfigError: The folder is not one that elmokit wrote, or it is a bundled model.
        DataError: It cannot be written.
    """
    write_pooling(pooling, _place_for_pooling(folder))
    embedder.pooling = pooling


def _place_for_pooling(folder: str | Path) -> Path:
    if str(folder) in bundled_names():
        raise ConfigError(
            f"{folder} comes with elmokit and stays as it is; save a copy of the model, and pass its folder"
        )
    place = find_model(folder)
    if not looks_native(try_json(place / "config.json")):
        raise ConfigError(
            f"{folder} is not in elmokit's own format, which alone has room for the statistics of sentence "
            "vectors; convert the model first"
        )
    return place


def _sample(source: TextSource, tokens: bool, language: str | None, most: int) -> list[Input]:
    texts = read_texts(source, tokens=tokens, split=language)
    kept, read = random_sample((text for text in texts if "".join(text).strip()), most)
    if read < _FEWEST:
        raise DataError(
            f"the text has {read:,} sentences, expected at least {_FEWEST:,} to fit on; pass more text, or "
            "split=True if a line holds several sentences"
        )
    return kept
