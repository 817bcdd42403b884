"""Sentences read in lower case: a cased model then copes with text that is not."""

import numpy as np

from elmokit.corpus import PreparedCorpus
from elmokit.pretrain.windows import Ids
from elmokit.text.vocabulary import SPECIAL_TOKENS


class LowerCase:
    """The types of a corpus in lower case.

    Attributes:
        ids: (types,) for each type of the corpus that of its spelling in lower case. Those that the corpus
            does not have are counted on from its last one.
    """

    def __init__(self, corpus: PreparedCorpus) -> None:
        self._corpus = corpus
        spellings = corpus.spellings(np.arange(corpus.num_types))
        found = {spelling: number for number, spelling in enumerate(spellings)}
        self.ids: Ids = np.arange(corpus.num_types)
        for number, spelling in enumerate(spellings):
            if number >= len(SPECIAL_TOKENS):
                self.ids[number] = found.setdefault(spelling.lower(), len(found))
        self._more = list(found)[corpus.num_types :]

    def spellings(self, ids: Ids) -> list[str]:
        """The spellings of types, given their ids in rising order."""
        known = int(np.searchsorted(ids, self._corpus.num_types))
        more = (self._more[number] for number in (ids[known:] - self._corpus.num_types).tolist())
        return [*self._corpus.spellings(ids[:known]), *more]
