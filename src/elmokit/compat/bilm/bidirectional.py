"""bilm-tf's model and its mix of the layers.

Shapes: B sentences, T tokens of the longest without `<S>` and `</S>`, S tokens of all sentences with them,
C characters of a token, P projection, L layers.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from elmokit.compat.padded_bilm import Ids, encode, lengths_of, run, with_padding_row
from elmokit.errors import ConfigError
from elmokit.formats import file_kind, load_model, read_dataset, read_json, read_weights
from elmokit.model import BiLM, CarriedState, ScalarMix, first_positions


class BidirectionalLanguageModel(nn.Module):
    """The biLM over padded ids. Its weights are frozen; `requires_grad_()` makes them trainable.

    Args:
        options_file, weight_file: the model, as for `elmokit.load`.
        use_character_inputs: whether the ids come from `Batcher` or else from `TokenBatcher`.
        embedding_weight_file: the token vectors of `dump_token_embeddings`, for `TokenBatcher`.
        max_batch_size: accepted for old programs; has no effect.
        stateful: start row k in the state where row k of the previous call ended, as bilm-tf always does.
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
        """Compute all layers of a batch.

        Args:
            ids: (B, T+2, C) from `Batcher` or (B, T+2) from `TokenBatcher`.

        Returns:
            `lm_embeddings` (B, L+1, T, 2P), zero where there is no token, `lengths` (B,) and `mask` (B, T),
            all without the boundaries; and `token_embeddings` (B, T+2, P) with them.
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
    """Make a learnt mix of the layers: a module that is called with the biLM's output.

    In TensorFlow the mix was part of the graph; here you make it part of your own module.

    Args:
        name: accepted for old programs; has no effect.
        num_layers: L+1, a model's `n_lm_layers`.
        l2_coef: λ of the penalty λ·Σw², returned as `regularization_op`.
        use_top_only: scale the top layer alone.
        do_layer_norm: normalise each layer first.

    Example:
        >>> mix = weight_layers("input", l2_coef=0.1)
        >>> ops = {"lm_embeddings": torch.ones(1, 3, 2, 4), "mask": torch.ones(1, 2, dtype=torch.bool)}
        >>> mix(ops)["weighted_op"].shape
        torch.Size([1, 2, 4])
    """
    return _WeightedLayers(num_layers, l2_coef, use_top_only, do_layer_norm)


def _load_bilm(options_file: str | Path, weight_file: str | Path | None) -> BiLM:
    if weight_file is not None and file_kind(Path(weight_file)) == "hdf5":
        # Unlike load_model, this needs no vocabulary for a model of words: the caller supplies the ids.
        return read_weights(Path(weight_file), read_json(Path(options_file)))
    return load_model(options_file, weight_file).model
