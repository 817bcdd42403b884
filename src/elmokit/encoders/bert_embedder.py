"""A BERT behind the interface of the embedder, and `load`, which opens either."""

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Self

import torch

from elmokit.embed import PreparedText, Reader, Sentence, Text, TextEmbedder, batches_by_length, load_elmo
from elmokit.encoders.bert import BertEncoder, PiecePooling
from elmokit.errors import ConfigError
from elmokit.formats import UNRECORDED
from elmokit.kernels import find_device
from elmokit.model import MixChoice
from elmokit.text import Token, TokenizerSpec, make_tokenizer, tokens_from_list

KINDS = ("bert", "bert-mean")


class BertEmbedder(TextEmbedder):
    """A model of the BERT family, ready to embed: words, offsets and all layers, the embeddings first.

    It offers what `Embedder` does, except that there is no state to carry and no vectors of sentence
    boundaries: `boundaries` are zeros, and pooling="ends" means nothing.

    Args:
        spec: "bert:FOLDER", where a word is its first piece, or "bert-mean:FOLDER".
        device, tokenizer, words, mix, batch_tokens: See `load`.
    """

    def __init__(
        self,
        spec: str,
        *,
        device: str = "cpu",
        tokenizer: TokenizerSpec | str | None = None,
        words: TokenizerSpec | str | None = None,
        mix: MixChoice = "average",
        batch_tokens: int = 8192,
    ) -> None:
        kind, _, folder = spec.partition(":")
        pooling: PiecePooling = "mean" if kind == "bert-mean" else "first"
        self.encoder = BertEncoder.open(folder, pooling=pooling, device=device)
        parsed = TokenizerSpec.parse(tokenizer) if isinstance(tokenizer, str) else tokenizer
        super().__init__(
            source=self.encoder.spec,
            device=find_device(device),
            precision="float32",
            tokenizer=parsed or self.encoder.tokenizer or UNRECORDED,
            words=words,
            mix=mix,
            batch_tokens=batch_tokens,
        )
        self.path = self.encoder.spec

    def _make_reader(self) -> Reader:
        return _WordReader(self.tokenizer_spec)

    def twin(self) -> Self:
        """Return an embedder for another thread; both share the weights."""
        return copy(self)

    @property
    def engine(self) -> str:
        """Return what computes: torch."""
        return "torch"

    @property
    def num_layers(self) -> int:
        """Return L + 1, the number of layers of each token, the embeddings included."""
        return self.encoder.num_layers

    @property
    def dim(self) -> int:
        """Return the size of each vector."""
        return self.encoder.dim

    def save(self, folder: str | Path) -> None:
        """Write model and tokenizer as transformers does."""
        self.encoder.save(Path(folder))

    @torch.inference_mode()
    def _embed_window(self, window: list[PreparedText], copy: bool) -> list[Sentence]:
        """Embed sentences in batches of similar length and return them in order."""
        found = {}
        for rows in batches_by_length([len(one) for one in window], self.batch_tokens):
            group = [window[row] for row in rows]
            layers = self.encoder.module([one.words for one in group])  # (L + 1, S, D)
            lengths = [len(one.words) for one in group]
            parts = zip(layers.split(lengths, dim=1), self.mix(layers).split(lengths), strict=True)
            for row, one, (own_layers, own_vectors) in zip(rows, group, parts, strict=True):
                sentence = Sentence(
                    text=one.text,
                    tokens=one.words,
                    offsets=one.offsets,
                    layers=own_layers.cpu().numpy(),
                    vectors=own_vectors.cpu().numpy(),
                    boundaries=own_layers.new_zeros(len(own_layers), 2, self.dim).cpu().numpy(),
                    truncated=[],
                    unknown=[],
                )
                found[row] = sentence if one.runs is None else sentence.merged(one.runs)
        return [found[row] for row in range(len(window))]


class _WordReader:
    """Tokenises texts; a BERT reads every word to its end and knows all by their pieces."""

    def __init__(self, spec: TokenizerSpec) -> None:
        self._tokenize = make_tokenizer(spec)

    def __call__(self, text: Text) -> list[Token]:
        return self._tokenize(text) if isinstance(text, str) else tokens_from_list(text)

    def truncated(self, tokens: Sequence[str]) -> list[int]:
        return []

    def unknown(self, tokens: Sequence[str]) -> list[int]:
        return []


def load(
    path: str | Path,
    weights: str | Path | None = None,
    *,
    precision: str = "float32",
    device: str = "cpu",
    stateful: bool = False,
    tokenizer: TokenizerSpec | str | None = None,
    words: TokenizerSpec | str | None = None,
    mix: MixChoice = "average",
    batch_tokens: int = 8192,
) -> TextEmbedder:
    """Open a model, whatever its format.

    Args:
        path: A folder, an options file, a zip, or the name of a bundled model; "bert:FOLDER" (where a word is
            its first piece) or "bert-mean:FOLDER" for a model of the BERT family.
        weights: The weights, if they do not lie beside the options.
        precision: "float32", "int8", "bfloat16", or "auto" for the fastest that this machine does natively.
            A BERT computes in float32.
        device: "cpu", "cuda", … or "auto" for the fastest there is.
        stateful: Carry the LSTM's state from call to call, as the old systems do; see `Embedder`.
        tokenizer: Replaces the model's own: a spec, or "name" or "name:language".
        words: Another tokenizer, such as "jieba", whose tokens are put together from those of the model: the
            vectors of a word are the means of those of its tokens. For models that read characters; texts
            that are given as lists of tokens stay as they are.
        mix: How `vectors` are made from `layers`: their "average", the "top" one, a list with the weight of
            each layer, or a `ScalarMix`. Its layer norm takes the statistics from the sentence alone.
        batch_tokens: About how many tokens go through the network at once.
    """
    if str(path).partition(":")[0] not in KINDS:
        return load_elmo(
            path,
            weights,
            precision=precision,
            device=device,
            stateful=stateful,
            tokenizer=tokenizer,
            words=words,
            mix=mix,
            batch_tokens=batch_tokens,
        )
    refused = {"weights": weights is not None, "stateful": stateful, "precision": precision != "float32"}
    for name, given in refused.items():
        if given:
            raise ConfigError(f"{name} is for ELMo, and {path} is a BERT; leave it out")
    return BertEmbedder(
        str(path), device=device, tokenizer=tokenizer, words=words, mix=mix, batch_tokens=batch_tokens
    )
