"""Sentences read in lower case, so that a cased model also handles text without capitals."""

import numpy as np

from elmokit.corpus import PreparedCorpus
from elmokit.pretraining.bilm.windows import Ids
from elmokit.text import SPECIAL_TOKENS


class LowerCase:
    """The types of a corpus in lower case.

    Attributes:
        ids: (types,) For each type of the corpus, that of its spelling in lower case. Spellings that the
            corpus does not have get the numbers after its last type.
    """

    def __init__(self, corpus: PreparedCorpus) -> None:
        self._corpus = corpus
        spellings = corpus.spellings(np.arange(corpus.num_types))
        # A vocabulary given by the user may hold a word twice: then there are fewer spellings than types.
        found = {spelling: number for number, spelling in enumerate(spellings)}
        self.ids: Ids = np.arange(corpus.num_types)
        self._more: list[str] = []
        for number, spelling in enumerate(spellings):
            lower = spelling.lower()
            if number >= len(SPECIAL_TOKENS):
                if lower not in found:
                    found[lower] = corpus.num_types + len(self._more)
                    self._more.append(lower)
                self.ids[number] = found[lower]

    def spellings(self, ids: Ids) -> list[str]:
        """Return the spellings of types, given their ids in ascending order."""
        known = int(np.searchsorted(ids, self._corpus.num_types))
        more = (self._more[number] for number in (ids[known:] - self._corpus.num_types).tolist())
        return [*self._corpus.spellings(ids[:known]), *more]
