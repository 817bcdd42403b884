"""The interfaces of older systems on top of elmokit: an old program needs one changed import.

* `elmokit.compat.allennlp`: `Elmo`, `batch_to_ids`, `ScalarMix`, `ElmoEmbedder`.
* `elmokit.compat.bilm`: bilm-tf's `Batcher`, `BidirectionalLanguageModel`, `weight_layers`, … in torch.
* `elmokit.compat.many_langs`: ELMoForManyLangs' `Embedder`.
* `elmokit.compat.simple_elmo`: `ElmoModel`.

They give the numbers of the originals, except that no state is carried from call to call unless asked for.
docs/guides/migrate.md shows old calls beside new ones.
"""
