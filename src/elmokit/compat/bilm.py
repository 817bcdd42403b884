"""bilm-tf's interface in torch: what were operations of a graph are modules and tensors.

    from elmokit.compat.bilm import Batcher, BidirectionalLanguageModel      # was: from bilm import …

Shapes: B sentences, T tokens of the longest without `<S>` and `</S>`, C characters of a token, P projection.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from elmokit.compat import padded
from elmokit.embed import InferenceBiLM, TypeVectors, load
from elmokit.errors import ConfigError, DataError
from elmokit.formats import file_kind, load_model, read_dataset, read_json, read_weights
from elmokit.model import BiLM, CarriedState, ScalarMix
from elmokit.text import (
    BEGIN_SENTENCE_TOKEN,
    END_SENTENCE_TOKEN,
    PREDICTION_SHIFT,
    Vocabulary,
    character_matrix,
    read_lines,
    refuse_bare_string,
)
from elmokit.vectors import open_hdf5

__all__ = [
    "Batcher",
    "BidirectionalLanguageModel",
    "TokenBatcher",
    "dump_bilm_embeddings",
    "dump_token_embeddings",
    "weight_layers",
]

Ids = npt.NDArray[np.int64]
Tokens = Sequence[Sequence[str]]

_TYPES_AT_ONCE = 8192


class Batcher:
    """Sentences to character ids.

    Args:
        lm_vocab_file: kept for old programs; characters need no vocabulary. `<S>` and `</S>` typed as tokens
            are the boundaries, whether a vocabulary has them or not.
        max_token_length: C.
    """

    def __init__(self, lm_vocab_file: str | Path | None, max_token_length: int) -> None:
        self._max_token_length = max_token_length

    def batch_sentences(self, sentences: Tokens) -> Ids:
        """Ids (B, T+2, C) of tokens and boundaries; a position without a token is a row of zeros.

        Example:
            >>> Batcher(None, 5).batch_sentences([["a"], []])[:, :, 1].tolist()
            [[257, 98, 258], [257, 258, 0]]
        """
        return _padded([self._spell(_bounded(sentence)) for sentence in sentences])

    def _spell(self, tokens: list[str]) -> Ids:
        spelt = character_matrix(tokens, max_characters=self._max_token_length)
        return spelt.astype(np.int64) + PREDICTION_SHIFT


class TokenBatcher:
    """Sentences to rows of a vocabulary, for token vectors that were dumped.

    Args:
        lm_vocab_file: the vocabulary that the vectors were dumped with.

    Raises:
        DataError: it has no `<S>` or `</S>`. Nor is there a row for an unknown word if it has no `<UNK>`.
    """

    def __init__(self, lm_vocab_file: str | Path) -> None:
        self._vocabulary = _vocabulary(lm_vocab_file)

    def batch_sentences(self, sentences: Tokens) -> Ids:
        """Ids (B, T+2) of tokens and boundaries, 0 where there is no token."""
        rows = [[self._vocabulary.id(token) for token in _bounded(sentence)] for sentence in sentences]
        return _padded([np.array(row, np.int64) + PREDICTION_SHIFT for row in rows])


class BidirectionalLanguageModel(nn.Module):
    """The biLM over padded ids. Its weights are not trained unless asked for by `requires_grad_()`.

    Args:
        options_file, weight_file: the model, as for `elmokit.load`.
        use_character_inputs: whether ids are those of `Batcher`; else those of `TokenBatcher`.
        embedding_weight_file: the token vectors of `dump_token_embeddings`, for `TokenBatcher`.
        max_batch_size: kept for old programs; there is no limit.
        stateful: go on with row k from where row k of the call before stopped, as bilm-tf always does.
    """

    def __init__(
        self,
        options_file: str | Path,
        weight_file: str | Path | None,
        use_character_inputs: bool = True,
        embedding_weight_file: str | Path | None = None,
        max_batch_size: int = 128,
        *,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        if use_character_inputs == (embedding_weight_file is not None):
            raise ConfigError("embedding_weight_file goes with use_character_inputs=False, and only with it")
        self._tokens: nn.Embedding | None = None
        self._bilm = _load_bilm(options_file, weight_file)
        if embedding_weight_file is None:
            self._bilm = padded.with_padding_row(self._bilm)
        else:
            table = read_dataset(Path(embedding_weight_file), "embedding", self._bilm.config.projection_dim)
            table = torch.cat([torch.zeros_like(table[:1]), table])  # (1 + V, P)
            self._tokens = nn.Embedding(len(table), table.shape[1], padding_idx=0, _weight=table)
        self.requires_grad_(False)
        self.n_lm_layers = self._bilm.num_outputs
        self._carried = CarriedState() if stateful else None

    def forward(self, ids: Tensor | Ids) -> dict[str, Tensor]:
        """All layers of a batch.

        Args:
            ids: (B, T+2, C) of `Batcher` or (B, T+2) of `TokenBatcher`.

        Returns:
            Without the boundaries `lm_embeddings` (B, L+1, T, 2P), zero where there is no token, `lengths`
            (B,) and `mask` (B, T); with them `token_embeddings` (B, T+2, P).
        """
        device = next(self.parameters()).device
        ids = torch.as_tensor(ids, device=device)
        if ids.dim() != (3 if self._tokens is None else 2):
            raise ConfigError(
                f"ids have {ids.dim()} dimensions; expected the (B, T, C) of Batcher for characters, "
                "the (B, T) of TokenBatcher for token vectors"
            )
        if self._tokens is None:
            mask = (ids > 0).any(dim=-1)  # (B, T+2)
            vectors = padded.encode(self._bilm, ids[mask])  # (S, P)
        else:
            mask = ids > 0
            vectors = self._tokens(ids[mask])
        lengths = padded.lengths_of(mask) - 2
        if (lengths < 0).any():
            raise ConfigError("a sentence has no <S> and </S>; make the ids with Batcher or TokenBatcher")
        layers = padded.run(self._bilm, vectors, mask, self._carried)  # (L+1, B, T+2, 2P)
        inner = padded.up_to(lengths, mask.shape[1] - 2)  # (B, T)
        return {
            "lm_embeddings": (layers[:, :, 1:-1] * inner.unsqueeze(-1)).transpose(0, 1),
            "lengths": lengths,
            "token_embeddings": layers[0, ..., : vectors.shape[-1]],
            "mask": inner,
        }


class _WeightedLayers(nn.Module):
    """What `weight_layers` makes."""

    def __init__(self, num_layers: int, l2_coef: float | None, top_only: bool, layer_norm: bool) -> None:
        super().__init__()
        self.l2_coef = l2_coef
        self.gamma = nn.Parameter(torch.ones(1)) if top_only else None
        self.mix = None if top_only else ScalarMix(num_layers, layer_norm="bilm-tf" if layer_norm else None)

    def forward(self, bilm_ops: dict[str, Tensor]) -> dict[str, Tensor]:
        """`weighted_op` (B, T, 2P) and `regularization_op` (scalar) of what the biLM gave."""
        layers = bilm_ops["lm_embeddings"].transpose(0, 1)  # (L+1, B, T, 2P)
        none = layers.new_zeros(())
        if self.mix is None:
            assert self.gamma is not None
            return {"weighted_op": self.gamma * layers[-1], "regularization_op": none}
        penalty = self.mix.weights.square().sum() * self.l2_coef if self.l2_coef else none
        return {"weighted_op": self.mix(layers, bilm_ops["mask"]), "regularization_op": penalty}


def weight_layers(
    name: str,
    num_layers: int = 3,
    l2_coef: float | None = None,
    use_top_only: bool = False,
    do_layer_norm: bool = False,
) -> nn.Module:
    """Make a learnt mix of the layers, a module that is called with what the biLM gives.

    In TensorFlow the mix was a part of the graph, made with the biLM's operations; here it is a part of one's
    own module, so that its weights are trained and saved with it.

    Args:
        name: kept for old programs; a module's name is the attribute that it is assigned to.
        num_layers: L+1, a model's `n_lm_layers`.
        l2_coef: λ of λ·Σw², given as `regularization_op`.
        use_top_only: scale the top layer alone.
        do_layer_norm: normalise each layer first.

    Example:
        >>> mix = weight_layers("input", l2_coef=0.1)
        >>> ops = {"lm_embeddings": torch.ones(1, 3, 2, 4), "mask": torch.ones(1, 2, dtype=torch.bool)}
        >>> mix(ops)["weighted_op"].shape
        torch.Size([1, 2, 4])
    """
    return _WeightedLayers(num_layers, l2_coef, use_top_only, do_layer_norm)


def dump_token_embeddings(
    vocab_file: str | Path, options_file: str | Path, weight_file: str | Path | None, outfile: str | Path
) -> None:
    """Write the token vectors of a vocabulary, (V, P) by its lines, as HDF5 dataset `embedding`."""
    tokens = _vocabulary(vocab_file).tokens
    model = load_model(options_file, weight_file).model
    type_vectors = TypeVectors(InferenceBiLM(model, "float32"), None, torch.device("cpu"))
    vectors = torch.empty(len(tokens), model.config.projection_dim)
    with torch.inference_mode():
        for start in range(0, len(tokens), _TYPES_AT_ONCE):
            chunk = list(tokens[start : start + _TYPES_AT_ONCE])
            vectors[start : start + len(chunk)] = type_vectors(chunk)
    with open_hdf5(Path(outfile)) as file:
        file.add("embedding", vectors.numpy())


def dump_bilm_embeddings(
    vocab_file: str | Path | None,
    dataset_file: str | Path,
    options_file: str | Path,
    weight_file: str | Path | None,
    outfile: str | Path,
    *,
    stateful: bool = False,
) -> None:
    """Write all layers (L+1, T, 2P) of each line of a file, its tokens parted by white space, as HDF5.

    Args:
        vocab_file: kept for old programs; see `Batcher`.
        dataset_file: the text, plain or compressed.
        options_file: the model's options.
        weight_file: its weights.
        outfile: datasets "0", "1", … by line.
        stateful: go on with each line from where the one before it stopped, as bilm-tf always does.
    """
    embedder = load(options_file, weight_file, stateful=stateful)
    with open_hdf5(Path(outfile)) as file:
        lines = (line.split() for line in read_lines(dataset_file))
        for number, sentence in enumerate(embedder.stream(lines)):
            file.add(str(number), sentence.layers)


def _load_bilm(options_file: str | Path, weight_file: str | Path | None) -> BiLM:
    if weight_file is not None and file_kind(Path(weight_file)) == "hdf5":
        # A model of words needs no vocabulary here: its ids come from outside.
        return read_weights(Path(weight_file), read_json(Path(options_file)))
    return load_model(options_file, weight_file).model


def _vocabulary(path: str | Path) -> Vocabulary:
    vocabulary = Vocabulary.load(path)
    missing = [token for token in (BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN) if token not in vocabulary]
    if missing:
        raise DataError(
            f"{path}: has no {' and no '.join(missing)}, which stand around every sentence; add them"
        )
    return vocabulary


def _bounded(sentence: Sequence[str]) -> list[str]:
    refuse_bare_string(sentence)
    return [BEGIN_SENTENCE_TOKEN, *sentence, END_SENTENCE_TOKEN]


def _padded(rows: list[Ids]) -> Ids:
    longest = max(map(len, rows), default=0)
    batch = np.zeros((len(rows), longest, *(rows[0].shape[1:] if rows else ())), np.int64)
    for target, row in zip(batch, rows, strict=True):
        target[: len(row)] = row
    return batch
