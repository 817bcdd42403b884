"""The old systems' interfaces over elmokit, so that old programs need one changed import.

* `elmokit.compat.allennlp`: `Elmo`, `batch_to_ids`, `ScalarMix`, `ElmoEmbedder`.
* `elmokit.compat.bilm`: bilm-tf's `Batcher`, `BidirectionalLanguageModel`, `weight_layers`, … in torch.
* `elmokit.compat.many_langs`: ELMoForManyLangs' `Embedder`.
* `elmokit.compat.simple_elmo`: `ElmoModel`.

Their numbers are the originals', with one difference that can be switched off: no state is carried from call
to call. docs/migrating.md sets old calls beside new ones.
"""
