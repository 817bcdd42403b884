import json


def test_table(run, model):
    shown = run("info", model)
    assert shown.exit_code == 0, shown.stderr
    assert "layers      3" in shown.stdout
    assert "dim         6" in shown.stdout
    assert "vocabulary  10" in shown.stdout
    assert "softmax     10" in shown.stdout
    assert '"name": "rules"' in shown.stdout
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
