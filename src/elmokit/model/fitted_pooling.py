"""Sentence vectors whose statistics were fitted on text without labels.

A sentence of tokens t with layers hₗ(t), word weights a / (a + p(t)), p their share in the text (SIF, Arora
et al. 2017), and W, μ fitted on the weighted means of many sentences:

    mₗ = Σₜ weight(t) hₗ(t) / Σₜ weight(t)
    sif       = m̄ − c (c·m̄), m̄ the average of the mₗ, c its common direction
    whitened  = [γₗ unit((mₗ − μₗ) Wₗ)] for each layer l, Wₗ its principal axes, each divided by its standard
                deviation to the power of w: 1 whitens, 0 only centres
                (Mu & Viswanath 2018, "all but the top"; Su et al. 2021, "whitening")
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from elmokit.errors import ConfigError

Floats = npt.NDArray[np.float32]

_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class FittedPooling:
    """What is needed to make sentence vectors of the layers of their tokens.

    Attributes:
        words: Frequent words in lower case; all others have weight 1.
        weights: (number of words,) between 0 and 1.
        common: (D,) the common direction, a unit vector.
        means: (L+1, D).
        axes: (L+1, D, K).
        layer_weights: (L+1,) γ; a layer with weight 0 is left out of the vectors.
    """

    words: tuple[str, ...]
    weights: Floats
    common: Floats
    means: Floats
    axes: Floats
    layer_weights: Floats

    def __post_init__(self) -> None:
        num_layers, dim = self.means.shape if self.means.ndim == 2 else (0, 0)
        found = [self.weights.shape, self.common.shape, self.axes.shape[:2], self.layer_weights.shape]
        if found != [(len(self.words),), (dim,), (num_layers, dim), (num_layers,)] or self.axes.ndim != 3:
            raise ConfigError(f"the statistics of sentence vectors do not fit each other: {found}")
        if not all(np.isfinite(array).all() for array in self.arrays().values()):
            raise ConfigError("the statistics of sentence vectors have numbers that are not finite")

    def arrays(self) -> dict[str, Floats]:
        """Return what is stored beside the words."""
        names = ("weights", "common", "means", "axes", "layer_weights")
        return {name: getattr(self, name) for name in names}

    @property
    def dim(self) -> int:
        """Return the size of a whitened vector."""
        return int(np.count_nonzero(self.layer_weights) * self.axes.shape[2])

    @cached_property
    def _weight_of(self) -> dict[str, float]:
        return dict(zip(self.words, self.weights.tolist(), strict=True))

    def token_weights(self, tokens: Sequence[str]) -> Floats:
        """Return the weight of each token, (T,)."""
        known = self._weight_of
        return np.array([known.get(token.lower(), 1.0) for token in tokens], np.float32)

    def means_of(self, tokens: Sequence[str], layers: Floats) -> Floats:
        """Return the weighted mean (L+1, D) of the layers (L+1, T, D) of a sentence's tokens."""
        weights = self.token_weights(tokens)
        mean: Floats = np.matmul(weights / max(float(weights.sum()), _SMALLEST), layers)
        return mean

    def sif(self, tokens: Sequence[str], layers: Floats) -> Floats:
        """Return the weighted mean without the common direction, (D,); zeros without tokens."""
        mean = self.means_of(tokens, layers).mean(axis=0)
        return np.asarray(mean - self.common * (self.common @ mean), np.float32)

    def whitened(self, means: Floats) -> Floats:
        """Return the whitened vectors (…, dim) of weighted means (…, L+1, D), each of length 1."""
        means_of_used, axes, weights = self._used
        parts = np.matmul((means[..., self._layers, :] - means_of_used)[..., None, :], axes)[..., 0, :]
        parts *= (weights / np.maximum(_lengths(parts), _SMALLEST))[..., None]  # (…, layers, K)
        return _unit(parts.reshape(*parts.shape[:-2], self.dim))

    @cached_property
    def _layers(self) -> npt.NDArray[np.intp] | slice:
        used = np.flatnonzero(self.layer_weights)
        return slice(None) if len(used) == len(self.layer_weights) else used  # a slice copies nothing

    @cached_property
    def _used(self) -> tuple[Floats, Floats, Floats]:
        """The means, axes and weights of the layers that are not left out."""
        return self.means[self._layers], self.axes[self._layers], self.layer_weights[self._layers]

    def leading(self, whitened: Floats, dim: int) -> Floats:
        """Return the first components (…, dim) of whitened vectors, scaled to length 1.

        The token layer comes first, and in each layer the axes along which sentences differ most.
        """
        return _unit(whitened[..., :dim])


def fit_statistics(
    words: Sequence[str],
    weights: Floats,
    means: Floats,
    *,
    layer_weights: Sequence[float],
    num_axes: int,
    whitening: float = 1.0,
) -> FittedPooling:
    """Fit the common direction and the whitening.

    Args:
        words: The words that have weights.
        weights: Theirs.
        means: (n, L+1, D) the weighted means of many sentences.
        layer_weights: γ.
        num_axes: K, the principal axes to keep; a layer of lower rank has zeros instead of the others.
        whitening: w, from 0 to 1.
    """
    average = means.mean(axis=1, dtype=np.float64)  # (n, D)
    common = np.linalg.eigh(average.T @ average)[1][:, -1]
    centres = means.mean(axis=0, dtype=np.float64)  # (L+1, D)
    axes = [_axes(means[:, layer] - centres[layer], num_axes, whitening) for layer in range(means.shape[1])]
    return FittedPooling(
        tuple(words),
        weights,
        common.astype(np.float32),
        centres.astype(np.float32),
        np.stack(axes).astype(np.float32),
        np.array(layer_weights, np.float32),
    )


def _axes(centred: npt.NDArray[np.float64], num_axes: int, whitening: float) -> npt.NDArray[np.float64]:
    """Return the first principal axes (D, K), scaled; whitened, the data have variance 1 along each."""
    variances, directions = np.linalg.eigh(centred.T @ centred / max(1, len(centred) - 1))
    variances, directions = variances[::-1][:num_axes], directions[:, ::-1][:, :num_axes]
    # Signs are a matter of chance: let the largest number be positive.
    directions = directions * np.sign(np.take_along_axis(directions, abs(directions).argmax(0)[None], 0))
    there = variances > 1e-6 * variances[0]
    scales = np.where(there, np.where(there, variances, 1) ** (-whitening / 2), 0)
    scaled = directions * scales
    return np.pad(scaled, ((0, 0), (0, num_axes - scaled.shape[1])))


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(_lengths(vectors), _SMALLEST)[..., None], np.float32)


def _lengths(vectors: Floats) -> Floats:
    lengths: Floats = np.sqrt(np.einsum("...k,...k->...", vectors, vectors))
    return lengths
