"""bilm-tf's interface in torch: operations of its graph are modules and tensors here.

from elmokit.compat.bilm import Batcher, BidirectionalLanguageModel      # was: from bilm import …
"""

from elmokit.compat.bilm.bilm_tf import (
    Batcher,
    BidirectionalLanguageModel,
    TokenBatcher,
    dump_bilm_embeddings,
    dump_token_embeddings,
    weight_layers,
)

__all__ = [
    "Batcher",
    "BidirectionalLanguageModel",
    "TokenBatcher",
    "dump_bilm_embeddings",
    "dump_token_embeddings",
    "weight_layers",
]
