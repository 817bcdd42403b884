"""Words alone, or Chinese characters: a vector for each, trained with the task."""

from zlib import crc32

import torch
from torch import Tensor, nn

from elmokit.encoders.base import LayeredModule, Sentences
from elmokit.encoders.untrained import UntrainedEncoder

_DIM = 100
_ROWS = 32768  # tokens share them by chance: of 5,000 characters one in seven has a row with another


class WordEncoder(UntrainedEncoder):
    """A vector for each token, whatever its spelling."""

    def __init__(self) -> None:
        super().__init__("words", _DIM, WordModule(), sizes=f"{_ROWS} rows of {_DIM}")


class WordModule(LayeredModule):
    """The table. A token's row is its hash, so that no vocabulary has to be made and saved."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(_ROWS, _DIM)
        nn.init.normal_(self.table.weight, std=_DIM**-0.5)

    def forward(self, sentences: Sentences) -> Tensor:
        """(1, S, D)."""
        rows = [_row(token) for sentence in sentences for token in sentence]
        vectors: Tensor = self.table(torch.tensor(rows, dtype=torch.long, device=self.table.weight.device))
        return vectors[None]

    def stages(self) -> list[list[nn.Parameter]]:
        """One stage."""
        return [list(self.parameters())]


def _row(token: str) -> int:
    return crc32(token.encode("utf-8", "surrogatepass")) % _ROWS  # half a surrogate is odd, but no error
