"""From a word and its characters, both counted in lexicons of a model's own, to the word's vector.

Shapes: U types, C characters, F filters, P projection.
"""

import torch
from torch import Tensor, nn

from elmokit.model.char_cnn import CharCNN, make_embedding
from elmokit.model.config import LexiconConfig

# Products treat the rows of a last, incomplete group differently, in the last bit.
_ROWS_TOGETHER = 8


class LexiconEncoder(nn.Module):
    """The token encoder of ELMoForManyLangs: x = W_p [word; y] + b_p.

    y are the characters' filters after their highways, as in `CharCNN`.
    """

    def __init__(self, config: LexiconConfig, output_dim: int) -> None:
        super().__init__()
        filters = config.characters.num_filters
        self.characters = CharCNN(config.characters, filters)
        self.words = make_embedding(config.num_words, config.word_dim) if config.num_words else None
        self.projection = nn.Linear(config.word_dim + filters, output_dim)

    def forward(self, ids: Tensor, used: Tensor, words: Tensor | None = None) -> Tensor:
        """The vector of each type.

        Args:
            ids: (U, C) character ids, each row filled up with the padding character.
            used: (U,) how many ids of a row stand before its padding.
            words: (U,) rows of the table of word vectors, where there is one.

        Returns:
            (U, P).
        """
        x = self.convolve(ids, used)  # (U, F)
        for highway in self.characters.highways:
            x = highway(x)
        vectors: Tensor = self.projection(self.with_word(x, words))
        return vectors

    def convolve(self, ids: Tensor, used: Tensor) -> Tensor:
        """(U, C) → (U, F), by tables of the characters that are there: a lexicon has too many for all."""
        present, places = torch.unique(ids, return_inverse=True)  # (n,), (U, C)
        whole = torch.cat([present, present[:1].expand(-len(present) % _ROWS_TOGETHER)])
        return self.characters.convolve(places, used, self.characters.tables(whole))

    def with_word(self, x: Tensor, words: Tensor | None) -> Tensor:
        """(U, F) → (U, word + F)."""
        return x if self.words is None else torch.cat([self.words(words), x], dim=-1)
