"""From the encoders to the task: mix the layers of each encoder and concatenate the mixes.

    x = [mix_1(encoder 1); mix_2(encoder 2); …]       at the input of the task's RNN
    e = [mix'_2(encoder 2); …]                         at its output, contextual encoders only

Each place has its own mix (Peters et al. 2018, section 3.3). Shapes: see `encoders.base`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elmokit.encoders import Encoder, LayeredModule, Sentences, TunableEncoder
from elmokit.errors import ConfigError
from elmokit.model import ScalarMix
from elmokit.tasks.core.task_settings import EncoderSettings


@dataclass(frozen=True)
class LearntMix:
    """The state of one learnt mix: the share of each layer, and γ."""

    encoder: str
    place: str
    shares: list[float]
    gamma: float


class WeightedLayers(NamedTuple):
    """The layers of one encoder at one place, each times its weight in the mix.

    Attributes:
        encoder: its spec.
        place: "input" or "output" of the task's RNN.
        weights: of the layers, lowest first.
        layers: (L, S, D).
    """

    encoder: str
    place: str
    weights: list[float]
    layers: Tensor


class TaskInputs(nn.Module):
    """All encoders of a task.

    Args:
        encoders: whose vectors are concatenated, in this order.
        settings: for contextual encoders; others are always at the input.
    """

    def __init__(self, encoders: Sequence[Encoder], settings: EncoderSettings) -> None:
        super().__init__()
        self.settings = settings
        self.parts = nn.ModuleList(EncoderPart(encoder, settings) for encoder in encoders)
        if settings.tune_from is not None and not any(encoder.contextual for encoder in encoders):
            raise ConfigError("tune_from is for ELMo and BERT, and none is among the encoders; leave it out")
        if not self.input_dim:
            raise ConfigError(
                "place is 'output', and no encoder is left for the input of the RNN; add one, such as chars"
            )

    @property
    def input_dim(self) -> int:
        """Size of x."""
        return sum(part.encoder.dim for part in self._parts() if part.input_mix is not None)

    @property
    def output_dim(self) -> int:
        """Size of e."""
        return sum(part.encoder.dim for part in self._parts() if part.output_mix is not None)

    def forward(self, sentences: Sentences) -> tuple[Tensor, Tensor]:
        """Return the vectors x (S, input_dim) and e (S, output_dim)."""
        inputs, outputs = [], []
        for part in self._parts():
            layers = part(sentences)  # (L, S, D)
            if part.input_mix is not None:
                inputs.append(part.input_mix(layers))
            if part.output_mix is not None:
                outputs.append(part.output_mix(layers))
        device = next(self.parameters()).device
        none = torch.empty(sum(map(len, sentences)), 0, device=device)
        return torch.cat([none, *inputs], dim=1), torch.cat([none, *outputs], dim=1)

    @torch.no_grad()
    def weighted_layers(self, sentences: Sentences) -> list["WeightedLayers"]:
        """Return what each mix sums up in use, those at the input first: x and e are made of these sums."""
        found = []
        for part in self._parts():
            layers = part(sentences)  # (L, S, D)
            for place, mix in (("input", part.input_mix), ("output", part.output_mix)):
                if mix is not None:
                    weights = mix.coefficients().to(layers)
                    terms = layers * weights[:, None, None]
                    found.append(WeightedLayers(part.encoder.spec, place, weights.tolist(), terms))
        return sorted(found, key=lambda one: one.place)

    def regulariser(self) -> Tensor:
        """Return what the learnt mixes add to the loss."""
        terms = [mix.regulariser(self.settings.mix_penalty) for _, _, mix in self._learnt()]
        return torch.stack(terms).sum() if terms else torch.zeros(())

    def learnt_mixes(self) -> list[LearntMix]:
        """Return the learnt mixes as they are now."""
        return [
            LearntMix(part.encoder.spec, place, mix.weights.softmax(0).tolist(), mix.gamma.item())
            for part, place, mix in self._learnt()
            if mix.gamma is not None
        ]

    def tuned_parts(self) -> dict[int, LayeredModule]:
        """Return the pretrained encoders that are trained with the task, by their positions in `parts`."""
        parts = enumerate(self._parts())
        return {place: part.module for place, part in parts if part.tuned and part.module is not None}

    def _learnt(self) -> Iterator[tuple["EncoderPart", str, ScalarMix]]:
        for part in self._parts():
            for place, mix in (("input", part.input_mix), ("output", part.output_mix)):
                if mix is not None and mix.gamma is not None:
                    yield part, place, mix

    def _parts(self) -> list["EncoderPart"]:
        return [part for part in self.parts if isinstance(part, EncoderPart)]


class EncoderPart(nn.Module):
    """One encoder with its mixes; the encoder is a submodule if it is trained with the task."""

    module: LayeredModule | None

    def __init__(self, encoder: Encoder, settings: EncoderSettings) -> None:
        super().__init__()
        self.encoder = encoder
        self.tuned = encoder.contextual and settings.tune_from is not None
        place = settings.place if encoder.contextual else "input"
        self.input_mix = _make_mix(encoder, settings) if place in ("input", "both") else None
        self.output_mix = _make_mix(encoder, settings) if place in ("output", "both") else None
        self.module = None
        if self.tuned or not encoder.pretrained:
            assert isinstance(encoder, TunableEncoder)  # contextual and untrained encoders are
            self.module = encoder.module

    def forward(self, sentences: Sentences) -> Tensor:
        """Return the layers of all tokens, (L, S, D)."""
        if self.module is not None:
            layers: Tensor = self.module(sentences)
            return layers
        empty = torch.empty(self.encoder.num_layers, 0, self.encoder.dim)
        device = next(self.parameters()).device
        return torch.cat([empty, *self.encoder.encode(sentences)], dim=1).to(device)


def _make_mix(encoder: Encoder, settings: EncoderSettings) -> ScalarMix:
    dropout = settings.dropout if encoder.contextual else 0.0
    count = encoder.num_layers
    if settings.mix == "learnt" and count > 1:
        return ScalarMix(count, dropout=dropout)
    weights = [0.0] * (count - 1) + [1.0] if settings.mix == "top" else [1.0 / count] * count
    return ScalarMix(count, kind="fixed", weights=weights, dropout=dropout)
