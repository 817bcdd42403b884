"""biLMs of gated convolutions and of transformers: the same interface, and no look ahead."""

from dataclasses import replace

import pytest
import torch

import elmokit
from elmokit.errors import ConfigError
from elmokit.formats import ModelBundle
from elmokit.model import BiLM, BiLMConfig, CharCNNConfig
from elmokit.text import TokenizerSpec

KINDS = ("gated-cnn", "transformer")
CONFIG = BiLMConfig(
    encoder=CharCNNConfig(filters=((1, 8), (2, 8)), embedding_dim=4, max_characters=12),
    cell_dim=16,
    projection_dim=8,
    num_layers=2,
    heads=2,
    width=3,
)


@pytest.fixture(params=KINDS)
def model(request):
    model = BiLM(replace(CONFIG, layers=request.param))
    model.reset_parameters(torch.Generator().manual_seed(0))
    return model.eval()


def test_each_direction_knows_only_what_it_has_read(model):
    x = torch.randn(9, 8, generator=torch.Generator().manual_seed(1))
    changed = x.clone()
    changed[4] += 1
    before, after = (model(one, torch.tensor([9]))[0].unflatten(-1, (2, 8)) for one in (x, changed))
    forward, backward = ((before != after).any(-1)[1:, :, d] for d in range(2))  # (L, T) each
    assert not forward[:, :4].any()
    assert not backward[:, 5:].any()
    assert forward[-1, 4:7].all()
    assert backward[-1, 2:5].all()


def test_sentences_do_not_see_each_other(model):
    lengths = [3, 1, 7, 2]
    x = torch.randn(sum(lengths), 8)
    together = model(x, torch.tensor(lengths))[0]
    assert together.shape == (3, sum(lengths), 16)
    alone = [model(part, torch.tensor([len(part)]))[0] for part in x.split(lengths)]
    torch.testing.assert_close(together, torch.cat(alone, dim=1), rtol=1e-4, atol=1e-5)


def test_convolution_equation():
    model = BiLM(replace(CONFIG, layers="gated-cnn"))
    layer, x = model.layers[0], torch.randn(2, 5, 8)
    found = layer(x, torch.tensor([5]))
    for direction in range(2):
        taps = layer.kernel[direction].view(32, 3, 8)
        for t in range(5):
            z = layer.bias[direction] + sum(taps[:, j] @ x[direction, t - j] for j in range(3) if t >= j)
            h = x[direction, t] + layer.projection[direction] @ (z[:16] * z[16:].sigmoid())
            expected = torch.nn.functional.layer_norm(h, (8,))
            torch.testing.assert_close(found[direction, t], expected, rtol=1e-4, atol=1e-5)


def test_attention_equation():
    model = BiLM(replace(CONFIG, layers="transformer"))
    layer, x = model.layers[0], torch.randn(2, 4, 8)
    found = layer._attend(x @ layer.attended.transpose(1, 2), torch.tensor([4]))
    for direction in range(2):
        q, k, v = (x[direction] @ layer.attended[direction].T).view(4, 3, 2, 4).unbind(1)  # (T, h, d)
        for head, slope in enumerate((2.0**-4, 2.0**-8)):
            for i in range(4):
                scores = torch.stack([q[i, head] @ k[j, head] / 2 - slope * (i - j) for j in range(i + 1)])
                expected = scores.softmax(0) @ v[: i + 1, head]
                own = found[direction, i].view(2, 4)[head]
                torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-5)


def bundle_of(model):
    return ModelBundle(model=model, tokenizer=TokenizerSpec(name="rules", language="en"), source="test")


def test_saved_loaded_and_embedded(model, tmp_path):
    elmokit.save_model(bundle_of(model), tmp_path / "model")
    elmo = elmokit.load(tmp_path / "model")
    assert elmo.bundle.model.config == model.config
    found = elmo.embed(["The bank raised its rates.", "", "Yes."])
    assert [one.layers.shape for one in found] == [(3, 6, 16), (3, 0, 16), (3, 2, 16)]
    tokens = ["<S>", "Yes", ".", "</S>"]
    ids = model.config.encoder.inputs(None, None)(tokens)
    with torch.no_grad():
        expected = model(model.encoder(*ids), torch.tensor([4]))[0][:, 1:3]
    torch.testing.assert_close(torch.from_numpy(found[2].layers), expected, rtol=1e-4, atol=1e-5)
    assert BiLMConfig.from_dict(model.config.to_dict()) == model.config


def test_what_such_a_model_does_not_have(model, tmp_path):
    elmokit.save_model(bundle_of(model), tmp_path / "model")
    with pytest.raises(ConfigError, match="starts every sentence from zero"):
        elmokit.load(tmp_path / "model", stateful=True)
    with pytest.raises(ConfigError, match="LSTM"):
        elmokit.save_model(bundle_of(model), tmp_path / "hdf5", format="hdf5")


def test_impossible_shapes():
    with pytest.raises(ConfigError, match="3 heads do not divide the projection of 8"):
        replace(CONFIG, layers="transformer", heads=3)
    with pytest.raises(ConfigError, match="joined_directions is for LSTM layers"):
        replace(CONFIG, layers="gated-cnn", joined_directions=True)
    assert "width" not in CONFIG.to_dict()
