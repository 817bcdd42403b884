"""ELMo inside other libraries. Each module needs the library that it is named after, installed as an extra.

`spacy`, `transformers`, `sentence_transformers`, `sklearn`, `flair`; `ray`, `dask`, `spark` for clusters.
"""
