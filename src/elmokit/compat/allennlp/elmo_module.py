"""AllenNLP's `Elmo` and `ScalarMix`.

Shapes: B sentences, T tokens of the longest, C characters of a token, P projection, L layers.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from elmokit.compat.allennlp.elmo_bilm import _ElmoBiLm
from elmokit.errors import ConfigError
from elmokit.model import first_positions, normalise_layers

logger = logging.getLogger(__name__)


class ScalarMix(nn.Module):
    """γ · Σ_j softmax(w)_j · h_j, with one parameter per weight as in AllenNLP's state dicts.

    `do_layer_norm` normalises each h_j first, with one mean and variance over the mask.
    """

    def __init__(
        self,
        mixture_size: int,
        do_layer_norm: bool = False,
        initial_scalar_parameters: Sequence[float] | None = None,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        start = [0.0] * mixture_size if initial_scalar_parameters is None else initial_scalar_parameters
        if len(start) != mixture_size:
            raise ConfigError(f"expected {mixture_size} initial_scalar_parameters, found {len(start)}")
        self.mixture_size = mixture_size
        self.do_layer_norm = do_layer_norm
        self.scalar_parameters = nn.ParameterList(
            nn.Parameter(torch.tensor([float(weight)]), requires_grad=trainable) for weight in start
        )
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=trainable)

    def forward(self, tensors: Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Mix tensors (…, D) of equal shape; `mask` (…) is needed only for the layer norm."""
        if len(tensors) != self.mixture_size:
            raise ConfigError(f"this mix was made for {self.mixture_size} tensors, found {len(tensors)}")
        layers = torch.stack(list(tensors))  # (L+1, …, D)
        if self.do_layer_norm:
            if mask is None:
                raise ConfigError("do_layer_norm=True needs the mask of the token positions; pass mask")
            layers = normalise_layers(layers, mask.bool(), "allennlp")
        weights = torch.softmax(torch.cat(list(self.scalar_parameters)), dim=0)  # (L+1,)
        mixed: Tensor = self.gamma * torch.tensordot(weights.to(layers), layers, dims=1)
        return mixed


class Elmo(nn.Module):
    """ELMo representations of character ids: one biLM, and any number of trained mixes of its layers.

    The arguments are AllenNLP's. `options_file` and `weight_file` may be any model that `elmokit.load` takes;
    `module` replaces it by another biLM with `num_layers`, `get_output_dim()` and a `forward` like
    `_ElmoBiLm`'s. `scalar_mix_parameters`, w of every mix before the softmax, are not trained. With
    `stateful=True` the state is carried from call to call, as AllenNLP always does.

    Example:
        >>> elmo = Elmo("options.json", "weights.hdf5", 1, dropout=0.0)               # doctest: +SKIP
        >>> elmo(batch_to_ids([["The", "bank"]]))["elmo_representations"][0].shape    # doctest: +SKIP
        torch.Size([1, 2, 1024])
    """

    def __init__(
        self,
        options_file: str | Path | None,
        weight_file: str | Path | None,
        num_output_representations: int,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: list[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: Sequence[float] | None = None,
        module: nn.Module | None = None,
        *,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        if (module is None) == (options_file is None):
            raise ConfigError("pass options_file and weight_file, or a module in their place")
        if options_file is not None:
            module = _ElmoBiLm(options_file, weight_file, requires_grad, vocab_to_cache, stateful=stateful)
        self._elmo_lstm = cast(Any, module)
        self._has_cached_vocab = vocab_to_cache is not None
        self._keep_sentence_boundaries = keep_sentence_boundaries
        self._dropout = nn.Dropout(dropout)
        self._num_mixes = num_output_representations
        num_layers, trainable = self._elmo_lstm.num_layers, scalar_mix_parameters is None
        for number in range(num_output_representations):
            mix = ScalarMix(num_layers, do_layer_norm, scalar_mix_parameters, trainable)
            self.add_module(f"scalar_mix_{number}", mix)

    def get_output_dim(self) -> int:
        """Return 2P."""
        return int(self._elmo_lstm.get_output_dim())

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Compute the representations for ids (…, T, C) or rows (…, T) of the cached vocabulary.

        Returns:
            `elmo_representations`, a list of (…, T, 2P), and `mask` (…, T), true where there is a token; T
            grows by two with `keep_sentence_boundaries`.
        """
        if not isinstance(inputs, Tensor) or inputs.dim() < 3:
            found = f"shape {list(inputs.shape)}" if isinstance(inputs, Tensor) else type(inputs).__name__
            raise ConfigError(f"expected the character ids (B, T, C) of batch_to_ids, found {found}")
        if word_inputs is not None and not self._has_cached_vocab:
            logger.warning("word_inputs are ignored, because the model was made without vocab_to_cache")
            word_inputs = None
        outer = inputs.shape[:-2]
        words = None if word_inputs is None else word_inputs.flatten(0, -2)
        output = self._elmo_lstm(inputs.flatten(0, -3), words)
        mask = output["mask"].bool()  # (B, T+2)
        inner = first_positions(mask.sum(dim=1) - 2, mask.shape[1] - 2)  # (B, T)
        representations = []
        for number in range(self._num_mixes):
            mixed = self.get_submodule(f"scalar_mix_{number}")(output["activations"], mask)  # (B, T+2, 2P)
            if not self._keep_sentence_boundaries:
                mixed = mixed[:, 1:-1] * inner.unsqueeze(-1)  # clears the </S> of shorter sentences
            representations.append(self._dropout(mixed).unflatten(0, outer))
        mask = mask if self._keep_sentence_boundaries else inner
        return {"elmo_representations": representations, "mask": mask.unflatten(0, outer)}
