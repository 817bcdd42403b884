"""bilm-tf's interface in torch: operations of its graph are modules and tensors here.

from elmokit.compat.bilm import Batcher, BidirectionalLanguageModel      # was: from bilm import …
"""

from elmokit.compat.bilm.batchers import Batcher, TokenBatcher
from elmokit.compat.bilm.bidirectional import BidirectionalLanguageModel, weight_layers
from elmokit.compat.bilm.dumps import dump_bilm_embeddings, dump_token_embeddings

__all__ = [
    "Batcher",
    "BidirectionalLanguageModel",
    "TokenBatcher",
    "dump_bilm_embeddings",
    "dump_token_embeddings",
    "weight_layers",
]
