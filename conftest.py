"""What is not collected: doctests of integrations whose library is not installed."""

from importlib.util import find_spec

_LIBRARIES = ("dask", "flair", "ray", "sentence_transformers", "sklearn", "spacy", "transformers")

collect_ignore = [f"src/elmokit/integrations/{name}.py" for name in _LIBRARIES if find_spec(name) is None]
if find_spec("ray") is None:
    collect_ignore.append("src/elmokit/integrations/ray_actors.py")
if find_spec("pyspark") is None:
    collect_ignore.append("src/elmokit/integrations/spark.py")
# The server's modules import what the extra `serve` brings.
if find_spec("fastapi") is None:
    collect_ignore.append("src/elmokit/serving")
