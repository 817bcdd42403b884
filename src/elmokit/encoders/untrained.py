"""Encoders that know nothing before the task is trained: their weights belong to the task."""

from pathlib import Path
from zlib import crc32

import torch
from torch import Tensor, nn

from elmokit.encoders.base import LayeredModule, Sentences, fingerprint_of
from elmokit.model import CharCNN, CharCNNConfig, encode_distinct
from elmokit.text import TokenizerSpec

# 128 filters over three characters of 16 numbers: the character CNN of the paper's baselines.
_CHARACTERS = CharCNNConfig(filters=((3, 128),), embedding_dim=16, projection=False)
_WORD_DIM = 100
_WORD_ROWS = 32_768  # tokens may share a row: of 5,000 Chinese characters one in seven does


class UntrainedEncoder:
    """An encoder that is trained with the task; see `Encoder`.

    Args:
        spec: What opens it.
        dim: D.
        module: What is trained.
        sizes: Of the module, as text, for the fingerprint.
    """

    num_layers = 1
    contextual = False
    pretrained = False
    adaptable = False
    tokenizer: TokenizerSpec | None = None

    def __init__(self, spec: str, dim: int, module: LayeredModule, *, sizes: str) -> None:
        self.spec = spec
        self.dim = dim
        self.module = module
        self._sizes = sizes

    @torch.no_grad()
    def encode(self, sentences: Sentences) -> list[Tensor]:
        """Return (1, T, D) for each sentence, by the weights as they are."""
        return list(self.module(sentences).cpu().split([len(sentence) for sentence in sentences], dim=1))

    def fingerprint(self) -> str:
        """Return the fingerprint of the sizes: nothing else is known before training."""
        return fingerprint_of([self._sizes.encode()])

    def save(self, folder: Path) -> str:
        """Write nothing: the weights are saved with the task."""
        return self.spec


class CharacterEncoder(UntrainedEncoder):
    """A small convolution over the bytes of each token."""

    def __init__(self) -> None:
        super().__init__("chars", _CHARACTERS.num_filters, CharacterModule(), sizes=repr(_CHARACTERS))


class CharacterModule(LayeredModule):
    """The convolution; each distinct token of a batch goes through it once."""

    def __init__(self) -> None:
        super().__init__()
        self.cnn = CharCNN(_CHARACTERS, _CHARACTERS.num_filters)
        self._inputs = _CHARACTERS.inputs(None, None)

    def forward(self, sentences: Sentences) -> Tensor:
        """Return the vectors (1, S, D) of all tokens."""
        device = self.cnn.embedding.weight.device
        tokens = [token for sentence in sentences for token in sentence]
        return encode_distinct(
            tokens, lambda types: self.cnn(*(ids.to(device) for ids in self._inputs(types)))
        )[None]


class WordEncoder(UntrainedEncoder):
    """A vector for each token (a word, or a Chinese character), whatever its spelling."""

    def __init__(self) -> None:
        super().__init__("words", _WORD_DIM, WordModule(), sizes=f"{_WORD_ROWS} rows of {_WORD_DIM}")


class WordModule(LayeredModule):
    """The table. A token's row is its hash, so that no vocabulary has to be made and saved."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(_WORD_ROWS, _WORD_DIM)
        nn.init.normal_(self.table.weight, std=_WORD_DIM**-0.5)

    def forward(self, sentences: Sentences) -> Tensor:
        """Return the vectors (1, S, D) of all tokens."""
        rows = [_row(token) for sentence in sentences for token in sentence]
        vectors: Tensor = self.table(torch.tensor(rows, dtype=torch.long, device=self.table.weight.device))
        return vectors[None]


def _row(token: str) -> int:
    return crc32(token.encode("utf-8", "surrogatepass")) % _WORD_ROWS
