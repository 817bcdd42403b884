"""Turn raw text into what pretraining reads: shards of ids, a vocabulary and a table of spellings.

The five steps, one file each; none of them holds the corpus in memory:

    sources     files to documents, documents to blocks of text
    chunks      a block to sentences of ids, numbered within the block; in parallel, and resumed
    selection   which sentences are kept, and which documents are held out
    type_table  the types of all chunks merged: the vocabulary by frequency, and an id for every spelling
    shards      the sentences and documents again, with the ids of the corpus
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
