"""ELMo inside other libraries, each in a module of its name, which needs the extra of that name.

`spacy`, `transformers`, `sentence_transformers`, `sklearn`, `flair`.
"""
