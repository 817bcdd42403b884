"""The bundled English model: every engine is as near to float64 as the guide to the engine promises."""

from copy import deepcopy

import pytest
import torch
from torch.nn.functional import cosine_similarity

import elmokit
from elmokit.embed.engine import Batch, InferenceBiLM
from elmokit.kernels import supported
from elmokit.kernels.native import engines

TEXTS = (
    "The bank raised its rates for the second time this year , and shares of lenders fell sharply .",
    "They walked along the bank of the river until the light was gone .",
    "In 1905 , Einstein published four papers that changed what physicists think of space and time .",
    "No",
)
CASES = [(precision, one.name) for precision in supported() for one in engines(precision)]
CASES += [(precision, "torch") for precision in supported()]


@pytest.fixture(scope="module")
def english():
    """The model, its inputs, lengths and the layers in float64."""
    bundle = elmokit.load_model("en")
    model, sentences = bundle.model.eval(), [text.split() for text in TEXTS]
    inputs = model.config.encoder.inputs(bundle.vocabulary, bundle.lexicon)
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    with torch.inference_mode():
        x = InferenceBiLM(model, "float32").encode(*inputs([word for each in sentences for word in each]))
        exact, _ = deepcopy(model).double()(x.double(), lengths)  # (L+1, S, 2P)
    return model, x, lengths, exact


@pytest.mark.parametrize(("precision", "engine"), CASES)
def test_difference_from_float64(english, precision, engine, monkeypatch):
    model, x, lengths, exact = english
    monkeypatch.setenv("ELMOKIT_KERNEL", engine)
    with torch.inference_mode():
        ((layers, _),) = InferenceBiLM(model, precision)([Batch(x, lengths)])
    if precision == "float32":
        assert (layers - exact).abs().max() < 2e-6
    seven_bits = engine in ("avx2", "avx512") or (engine == "torch" and not torch.cpu._is_vnni_supported())
    least = 0.999 if precision != "int8" or not seven_bits else 0.998
    assert cosine_similarity(layers[1:].double(), exact[1:], dim=-1).mean() > least
