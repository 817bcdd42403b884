"""From raw text to what pretraining reads: mapped shards of ids, a vocabulary, a table of spellings.

The work goes through five steps, each in a file of its own, and none of them holds the corpus in memory:

    sources   files to documents, documents to blocks of text
    chunks    a block to sentences of ids that count the block's own types; in parallel, and what is resumed
    selection which sentences are kept, and which documents are held out
    types     the types of all chunks merged: the vocabulary by frequency, and an id for every spelling
    shards    the chunks again, now with the ids of the corpus
"""

from elmokit.corpus.corpus_report import draw_lengths, report_rows
from elmokit.corpus.corpus_settings import PrepareSettings
from elmokit.corpus.preparation import prepare_corpus
from elmokit.corpus.prepared_corpus import PreparedCorpus, is_prepared
from elmokit.corpus.shards import Shard

__all__ = [
    "PrepareSettings",
    "PreparedCorpus",
    "Shard",
    "draw_lengths",
    "is_prepared",
    "prepare_corpus",
    "report_rows",
]
