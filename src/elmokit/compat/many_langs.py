"""ELMoForManyLangs' `Embedder`.

    from elmokit.compat.many_langs import Embedder      # was: from elmoformanylangs import Embedder

Shapes: T tokens, L layers, P projection.
"""

from collections.abc import Sequence
from pathlib import Path

from elmokit.embed import Floats, load_elmo
from elmokit.errors import ConfigError
from elmokit.text import lists_of_tokens

_AVERAGE, _ALL = -1, -2


class Embedder:
    """Vectors of tokenised sentences, each the same as the original gives for its first sentence.

    The original carries its state from batch to batch and shuffles the batches, so no two runs of it agree.
    Here a sentence's vectors depend on the sentence alone. `model_dir` may be a folder in the original's
    format, a zip of one, or any other model; `batch_size` has no effect.
    """

    def __init__(self, model_dir: str | Path, batch_size: int = 64) -> None:
        self.model_dir = model_dir
        self.batch_size = batch_size
        self._embedder = load_elmo(model_dir)

    def sents2elmo(self, sents: Sequence[Sequence[str]], output_layer: int = -1) -> list[Floats]:
        """Return the vectors of each sentence.

        Args:
            sents: the tokens of each sentence.
            output_layer: -1 for the average of all layers (T, 2P), -2 for all of them (L+1, T, 2P), or the
                number of one (T, 2P), where 0 is the token layer. A model with the encoder "lstm" has only
                its top layer (T, 2P), and like the original takes the tokens for layers: -1 is the average
                of its tokens (2P,), a number is one token.

        Raises:
            ConfigError: there is no such layer, or a sentence is a string.
        """
        sentences = lists_of_tokens(sents)
        if self._embedder.model.config.joined_directions:
            return [_select(one.layers[-1], output_layer) for one in self._embedder.embed(sentences)]
        if not _ALL <= output_layer < self._embedder.num_layers:
            raise ConfigError(
                f"output_layer is {output_layer}; it takes -2 (all), -1 (average) "
                f"or 0 to {self._embedder.num_layers - 1}"
            )
        return [_select(one.layers, output_layer) for one in self._embedder.embed(sentences)]


def _select(layers: Floats, output_layer: int) -> Floats:
    if output_layer == _ALL:
        return layers
    selected: Floats = layers.mean(axis=0) if output_layer == _AVERAGE else layers[output_layer]
    return selected
