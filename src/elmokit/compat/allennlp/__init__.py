"""AllenNLP's ELMo: `Elmo`, `batch_to_ids` and `ScalarMix` of 2.x, `ElmoEmbedder` of 0.9.

    from elmokit.compat.allennlp import Elmo, batch_to_ids      # was: from allennlp.modules.elmo import …

State dicts use AllenNLP's names: they can be exchanged with AllenNLP in both directions.
"""

from elmokit.compat.allennlp.elmo_bilm import _ElmoBiLm, batch_to_ids
from elmokit.compat.allennlp.elmo_embedder import ElmoEmbedder
from elmokit.compat.allennlp.elmo_module import Elmo, ScalarMix

__all__ = ["Elmo", "ElmoEmbedder", "ScalarMix", "_ElmoBiLm", "batch_to_ids"]
