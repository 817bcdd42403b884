"""bilm-tf's interface in torch: operations of its graph are modules and tensors here.

    from elmokit.compat.bilm import Batcher, BidirectionalLanguageModel      # was: from bilm import …

Shapes: B sentences, T tokens of the longest without `<S>` and `</S>`, S tokens of all sentences with them,
C characters of a token, V vocabulary, P projection, L layers.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.base import open_hdf5, output_file
from elmokit.compat.padded_bilm import Ids, encode, lengths_of, run, spell, stack_padded, with_padding_row
from elmokit.embed import InferenceBiLM, TypeVectors, load_elmo
from elmokit.errors import ConfigError, DataError
from elmokit.formats import file_kind, load_model, read_dataset, read_json, read_weights
from elmokit.model import BiLM, CarriedState, ScalarMix, first_positions
from elmokit.text import (
    BEGIN_SENTENCE_TOKEN,
    END_SENTENCE_TOKEN,
    PREDICTION_SHIFT,
    Vocabulary,
    read_lines,
    refuse_bare_string,
)

_TYPES_AT_ONCE = 8192


class Batcher:
    """Converts sentences to ids of at most `max_token_length` characters a token.

    `lm_vocab_file` has no effect: `<S>` and `</S>` are read as the boundaries whether or not it has them.
    """

    def __init__(self, lm_vocab_file: str | Path | None, max_token_length: int) -> None:
        self._max_token_length = max_token_length

    def batch_sentences(self, sentences: Sequence[Sequence[str]]) -> Ids:
        """Return ids (B, T+2, C) of tokens and boundaries, with rows of zeros after shorter sentences.

        Example:
            >>> Batcher(None, 5).batch_sentences([["a"], []])[:, :, 1].tolist()
            [[257, 98, 258], [257, 258, 0]]
        """
        length = self._max_token_length
        return stack_padded([spell(_bounded(one), length) for one in sentences], (length,), np.int64)


class TokenBatcher:
    """Converts sentences to rows of a vocabulary, for the token vectors of `dump_token_embeddings`.

    Raises:
        DataError: it has no `<S>` or `</S>`; later, a word is unknown and it has no `<UNK>`.
    """

    def __init__(self, lm_vocab_file: str | Path) -> None:
        self._vocabulary = _vocabulary(lm_vocab_file)

    def batch_sentences(self, sentences: Sequence[Sequence[str]]) -> Ids:
        """Return ids (B, T+2) of tokens and boundaries, 0 where there is no token."""
        rows = [[self._vocabulary.id(token) for token in _bounded(one)] for one in sentences]
        return stack_padded([np.array(row, np.int64) + PREDICTION_SHIFT for row in rows], (), np.int64)


class BidirectionalLanguageModel(nn.Module):
    """The biLM over padded ids. Its weights are frozen; `requires_grad_()` makes them trainable.

    With `use_character_inputs=False` the ids are those of `TokenBatcher`, and `embedding_weight_file` has the
    vectors of `dump_token_embeddings`. `max_batch_size` has no effect. With `stateful=True` row k starts in
    the state where row k of the previous call ended, as bilm-tf always does.
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
            self._bilm = with_padding_row(self._bilm)
        else:
            table = read_dataset(Path(embedding_weight_file), "embedding", self._bilm.config.projection_dim)
            table = torch.cat([torch.zeros_like(table[:1]), table])  # (1 + V, P)
            self._tokens = nn.Embedding(len(table), table.shape[1], padding_idx=0, _weight=table)
        self.requires_grad_(False)
        self.n_lm_layers = self._bilm.num_outputs
        self._carried = CarriedState() if stateful else None

    def forward(self, ids: Tensor | Ids) -> dict[str, Tensor]:
        """Compute all layers for ids (B, T+2, C) of `Batcher` or (B, T+2) of `TokenBatcher`.

        Returns:
            `lm_embeddings` (B, L+1, T, 2P), zero where there is no token, `lengths` (B,) and `mask` (B, T),
            all without the boundaries; and `token_embeddings` (B, T+2, P) with them.
        """
        ids = torch.as_tensor(ids, device=next(self.parameters()).device)
        if ids.dim() != (3 if self._tokens is None else 2):
            raise ConfigError(
                f"ids have {ids.dim()} dimensions; expected the (B, T, C) of Batcher for characters, "
                "the (B, T) of TokenBatcher for token vectors"
            )
        if self._tokens is None:
            mask = (ids > 0).any(dim=-1)  # (B, T+2)
            vectors = encode(self._bilm, ids[mask])  # (S, P)
        else:
            mask = ids > 0
            vectors = self._tokens(ids[mask])
        lengths = lengths_of(mask) - 2
        if (lengths < 0).any():
            raise ConfigError("a sentence has no <S> and </S>; make the ids with Batcher or TokenBatcher")
        layers = run(self._bilm, vectors, mask, self._carried)  # (L+1, B, T+2, 2P)
        inner = first_positions(lengths, mask.shape[1] - 2)  # (B, T)
        return {
            "lm_embeddings": (layers[:, :, 1:-1] * inner.unsqueeze(-1)).transpose(0, 1),
            "lengths": lengths,
            "token_embeddings": layers[0, ..., : vectors.shape[-1]],
            "mask": inner,
        }


class _WeightedLayers(nn.Module):
    def __init__(self, num_layers: int, l2_coef: float | None, top_only: bool, layer_norm: bool) -> None:
        super().__init__()
        self.l2_coef = l2_coef
        self.gamma = nn.Parameter(torch.ones(1)) if top_only else None
        self.mix = None if top_only else ScalarMix(num_layers, layer_norm="bilm-tf" if layer_norm else None)

    def forward(self, bilm_ops: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return `weighted_op` (B, T, 2P) and `regularization_op` (scalar) for the biLM's output."""
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
    """Make a trainable mix of the layers: a module that is called with the biLM's output.

    `name` has no effect, `num_layers` is a model's `n_lm_layers`, and `l2_coef` is λ of the penalty λ·Σw²,
    returned as `regularization_op`.

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
    """Write the token vectors (V, P) of a vocabulary, in its order, as HDF5 dataset `embedding`."""
    tokens = list(_vocabulary(vocab_file).tokens)
    model = load_model(options_file, weight_file).model
    type_vectors = TypeVectors(InferenceBiLM(model, "float32"), None, torch.device("cpu"))
    with torch.inference_mode():
        starts = range(0, len(tokens), _TYPES_AT_ONCE)
        vectors = torch.cat([type_vectors(tokens[start : start + _TYPES_AT_ONCE]) for start in starts])
    with output_file(Path(outfile)) as draft, open_hdf5(draft) as add:
        add("embedding", vectors.numpy())


def dump_bilm_embeddings(
    vocab_file: str | Path | None,
    dataset_file: str | Path,
    options_file: str | Path,
    weight_file: str | Path | None,
    outfile: str | Path,
    *,
    stateful: bool = False,
) -> None:
    """Write all layers (L+1, T, 2P) of each line of a file of space-separated tokens as HDF5.

    `vocab_file` has no effect. With `stateful=True` each line starts in the state where the line before it
    ended, as bilm-tf always does. The datasets of `outfile` are named "0", "1", … by line.
    """
    embedder = load_elmo(options_file, weight_file, stateful=stateful)
    with output_file(Path(outfile)) as draft, open_hdf5(draft) as add:
        lines = (line.split() for line in read_lines(dataset_file))
        for number, sentence in enumerate(embedder.stream(lines)):
            add(str(number), sentence.layers)


def _load_bilm(options_file: str | Path, weight_file: str | Path | None) -> BiLM:
    if weight_file is not None and file_kind(Path(weight_file)) == "hdf5":
        # Unlike load_model, this needs no vocabulary for a model of words: the caller supplies the ids.
        return read_weights(Path(weight_file), read_json(Path(options_file)))
    return load_model(options_file, weight_file).model


def _vocabulary(path: str | Path) -> Vocabulary:
    """Read a vocabulary; raise a DataError if it lacks a sentence boundary."""
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
