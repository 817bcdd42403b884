import json
import re

import pytest

import elmokit


def test_table(run, model):
    shown = run("info", model)
    assert shown.exit_code == 0, shown.stderr
    for name, value in {"layers": 3, "dim": 6, "vocabulary": 10, "softmax": 10}.items():
        assert re.search(rf"^{name} +{value}$", shown.stdout, flags=re.MULTILINE)
    assert re.search(r"tokenizer.name +rules\n", shown.stdout)
    assert "{" not in shown.stdout
    assert "encoder.convolutions.0.weight" in shown.stdout
    assert "2 × 4 × 1" in shown.stdout


def test_json_counts_every_parameter(run, model):
    facts = json.loads(run("info", model, "--json").stdout)
    assert facts["parameters"] == sum(weight["parameters"] for weight in facts["weights"])
    assert facts["weights"][0] == {"name": "encoder.embedding.weight", "shape": [261, 4], "parameters": 1044}
    assert facts["tokenizer"] == {"name": "rules", "language": None, "lowercase": False}


def test_weights_apart(run, model, tmp_path):
    options = tmp_path / "options.json"
    options.write_bytes((model / "options.json").read_bytes())
    facts = json.loads(run("info", options, "--weights", model / "lm_weights.hdf5", "--json").stdout)
    assert (facts["vocabulary"], facts["softmax"]) == (None, None)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".h5"])
def test_vectors_of_every_format(run, model, tmp_path, ending):
    """A table of vectors is no text, and files say what they were made with where they can."""
    path = tmp_path / f"v{ending}"
    run("embed", "-t", "the cat", "-m", model, "--layers", "2", "-o", path)
    facts = json.loads(run("info", path, "--json").stdout)
    assert (facts["kind"], facts["vectors per"]) == ("a file of vectors", "token")
    if ending in (".parquet", ".h5"):
        assert (facts["written with"]["layers"], facts["written with"]["elmokit"]) == (2, elmokit.__version__)
    assert run("doctor", path).exit_code == 0
