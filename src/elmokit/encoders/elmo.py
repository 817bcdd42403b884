"""ELMo as an encoder: frozen through the `Embedder`, which is fast; trained through the `BiLM` itself."""

import json
from functools import cached_property
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn

from elmokit.embed import Embedder, load_elmo
from elmokit.encoders.base import LayeredModule, Sentences, fingerprint_of, weight_bytes
from elmokit.formats import UNRECORDED, ModelBundle
from elmokit.model import encode_distinct
from elmokit.text import TokenizerSpec


class ElmoEncoder:
    """Any model that `elmokit.load` opens; see `Encoder`."""

    contextual = True
    pretrained = True
    adaptable = True

    def __init__(self, embedder: Embedder, spec: str) -> None:
        self.embedder = embedder
        self.spec = spec
        self.dim = embedder.dim
        self.num_layers = embedder.num_layers

    @classmethod
    def open(cls, spec: str, *, device: str = "cpu", precision: str = "float32") -> "ElmoEncoder":
        """Load a model: a folder, an options file, a zip, or a bundled name."""
        path = Path(spec)
        embedder = load_elmo(spec, device=device, precision=precision)
        return cls(embedder, str(path.resolve()) if path.exists() else spec)

    @property
    def tokenizer(self) -> TokenizerSpec | None:
        """Return the model's own, if its files name it."""
        spec = self.embedder.tokenizer_spec
        return None if spec == UNRECORDED else spec

    @cached_property
    def module(self) -> "TunableElmo":
        """Return the model itself, to be trained with the task."""
        return TunableElmo(self.embedder.bundle)

    def encode(self, sentences: Sentences) -> list[Tensor]:
        """Return (L, T, D) for each sentence."""
        return [sentence.to_torch() for sentence in self.embedder.stream(sentences)]

    def fingerprint(self) -> str:
        """Return the fingerprint of sizes, weights, and the words or characters that number rows."""
        model, bundle = self.embedder.model, self.embedder.bundle
        sizes = json.dumps(model.config.to_dict()).encode()
        known = b""
        lexicon = bundle.lexicon
        if lexicon is not None or model.config.encoder.vocabulary_size is not None:
            words = None if bundle.vocabulary is None else bundle.vocabulary.tokens
            tables = [] if lexicon is None else [lexicon.characters, lexicon.words or {}]
            known = repr((words, [sorted(table.items()) for table in tables])).encode()
        return fingerprint_of(chain([sizes, known], weight_bytes(model)))

    def save(self, folder: Path) -> str:
        """Write the model, tuned or not, as an elmokit folder."""
        self.embedder.save(folder)
        return str(folder)


class TunableElmo(LayeredModule):
    """A biLM whose vectors carry gradients. Stage 0 is the token encoder, stage l the l-th LSTM layer."""

    def __init__(self, bundle: ModelBundle) -> None:
        super().__init__()
        self.bilm = bundle.model
        self._begin, self._end = bundle.boundaries
        self._inputs = bundle.model.config.encoder.inputs(bundle.vocabulary, bundle.lexicon)

    def forward(self, sentences: Sentences) -> Tensor:
        """Return the vectors (L, S, D) of all tokens, without those of the boundaries."""
        device = next(self.bilm.parameters()).device
        tokens = [token for sentence in sentences for token in (self._begin, *sentence, self._end)]
        vectors = encode_distinct(
            tokens, lambda types: self.bilm.encoder(*(ids.to(device) for ids in self._inputs(types)))
        )  # (S + 2B, P)
        lengths = torch.tensor([len(sentence) + 2 for sentence in sentences])
        layers: Tensor = self.bilm(vectors, lengths)[0]  # (L, S + 2B, D)
        ends = lengths.cumsum(0)
        inside = torch.ones(len(tokens), dtype=torch.bool)
        inside[ends - 1] = False
        inside[ends - lengths] = False
        return layers[:, inside.to(device)]

    def stages(self) -> list[list[nn.Parameter]]:
        """Return the parameters of the token encoder, then those of each LSTM layer."""
        return [list(part.parameters()) for part in (self.bilm.encoder, *self.bilm.layers)]
