"""AllenNLP's biLM module: padded character ids in, all layers out. Its state dict uses AllenNLP's names.

Shapes: B sentences, T tokens of the longest, S tokens of all sentences, C characters of a token,
P projection, L layers.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.compat.padded_bilm import encode, lengths_of, run, spell, stack_padded, with_padding_row
from elmokit.formats import allennlp_entries, load_model
from elmokit.model import CarriedState, first_positions, with_boundaries
from elmokit.text import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, lists_of_tokens

_MAX_CHARACTERS = 50


def batch_to_ids(batch: Sequence[Sequence[str]]) -> Tensor:
    """Return the character ids (B, T, 50) of tokenised sentences, with rows of zeros after shorter ones.

    Example:
        >>> batch_to_ids([["a", "b"], ["c"]])[:, :, :4].tolist()
        [[[259, 98, 260, 261], [259, 99, 260, 261]], [[259, 100, 260, 261], [0, 0, 0, 0]]]
    """
    rows = [spell(sentence, _MAX_CHARACTERS) for sentence in lists_of_tokens(batch)]
    return torch.from_numpy(stack_padded(rows, (_MAX_CHARACTERS,), np.int64))


class _Recurrence:
    """The state, which old programs switch and reset through `elmo._elmo_lstm._elmo_lstm`."""

    def __init__(self, stateful: bool) -> None:
        self.stateful = stateful
        self.carried = CarriedState()

    def reset_states(self) -> None:
        """Start the next call from the zero state."""
        self.carried.reset()


class _ElmoBiLm(nn.Module):
    """All layers of the biLM over padded character ids.

    `vocab_to_cache` are words whose token vectors are computed once, for `word_inputs`. With `stateful=True`
    row k starts in the state where row k of the previous call ended.
    """

    def __init__(
        self,
        options_file: str | Path,
        weight_file: str | Path | None,
        requires_grad: bool = False,
        vocab_to_cache: list[str] | None = None,
        *,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        self._bilm = with_padding_row(load_model(options_file, weight_file).model)
        self._bilm.requires_grad_(requires_grad)
        self._requires_grad = requires_grad
        self._elmo_lstm = _Recurrence(stateful)
        self._word_embedding: nn.Embedding | None = None
        self.num_layers = self._bilm.num_outputs
        self.register_state_dict_post_hook(_to_their_names)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_to_our_names)  # type: ignore[no-untyped-call]
        if vocab_to_cache:
            self.create_cached_cnn_embeddings(vocab_to_cache)

    def get_output_dim(self) -> int:
        """Return 2P."""
        return self._bilm.config.output_dim

    def create_cached_cnn_embeddings(self, tokens: list[str]) -> None:
        """Compute the token vectors of a vocabulary whose first entry is padding."""
        with torch.no_grad():
            table = self._spell(tokens)  # (V, P)
            table[0] = 0
        self._word_embedding = nn.Embedding(len(tokens), table.shape[1], padding_idx=0, _weight=table)
        self._word_embedding.requires_grad_(self._requires_grad)

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Compute all layers for `inputs` (B, T, C) of `batch_to_ids`.

        If all `word_inputs` (B, T), 0 for padding, are rows of the cached vocabulary, they are used instead.

        Returns:
            `activations`, a list of (B, T+2, 2P), bottom layer first, and `mask` (B, T+2), both with `<S>`
            and `</S>`.
        """
        table, ids = self._word_embedding, word_inputs
        if table is None or ids is None or not ((ids >= 0) & (ids < table.num_embeddings)).all():
            mask = (inputs > 0).any(dim=-1)  # (B, T)
            vectors = encode(self._bilm, inputs[mask])  # (S, P)
        else:
            mask = ids > 0
            vectors = table(ids[mask])
        lengths = lengths_of(mask)
        boundaries = self._spell([BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN])  # (2, P)
        x, _ = with_boundaries(torch.cat([boundaries, vectors]), lengths)  # (S + 2B, P)
        mask = first_positions(lengths + 2, mask.shape[1] + 2)  # (B, T+2)
        carried = self._elmo_lstm.carried if self._elmo_lstm.stateful else None
        layers = run(self._bilm, x, mask, carried)  # (L+1, B, T+2, 2P)
        return {"activations": list(layers), "mask": mask}

    def _spell(self, tokens: list[str]) -> Tensor:
        ids = batch_to_ids([tokens])[0].to(next(self._bilm.parameters()).device)  # (n, C)
        return encode(self._bilm, ids)


def _to_their_names(module: nn.Module, state: dict[str, Any], prefix: str, metadata: object) -> None:
    """After `state_dict`: replace our tensors by AllenNLP's."""
    assert isinstance(module, _ElmoBiLm)
    inside = f"{prefix}_bilm."
    ours = {key.removeprefix(inside): state.pop(key) for key in list(state) if key.startswith(inside)}
    state.update(
        (prefix + entry.name, entry.content(ours)) for entry in allennlp_entries(module._bilm.config)
    )


def _to_our_names(
    module: nn.Module,
    state: dict[str, Any],
    prefix: str,
    metadata: Mapping[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    """Before `load_state_dict`: the inverse. A weight that is missing or does not fit keeps its value."""
    assert isinstance(module, _ElmoBiLm)
    ours = {key: tensor.detach().clone() for key, tensor in module._bilm.state_dict().items()}
    for entry in allennlp_entries(module._bilm.config):
        content = state.pop(prefix + entry.name, None)
        if content is None:
            missing.append(prefix + entry.name)
        elif tuple(content.shape) != entry.shape:
            errors.append(
                f"size mismatch for {prefix}{entry.name}: found {list(content.shape)}, "
                f"the model has {list(entry.shape)}."
            )
        else:
            entry.fill(ours, content)
    state.update((f"{prefix}_bilm.{key}", tensor) for key, tensor in ours.items())
