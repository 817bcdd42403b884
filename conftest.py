"""What is not collected: doctests of integrations whose library is not installed."""

from importlib.util import find_spec

_LIBRARIES = ("flair", "sentence_transformers", "sklearn", "spacy", "transformers")

collect_ignore = [f"src/elmokit/integrations/{name}.py" for name in _LIBRARIES if find_spec(name) is None]
# The server's modules import what the extra `serve` brings.
if find_spec("fastapi") is None:
    collect_ignore.append("src/elmokit/serving")
