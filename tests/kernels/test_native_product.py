"""Products and activations of the native kernel against float64."""

import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError
from elmokit.kernels.native import NativeProduct, library
from elmokit.kernels.precision import make_product
from tests.kernels.native import cases, parametrize, seeds

ACTIVATIONS = {
    "none": lambda z: z,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
# The largest error of σ and tanh, for any number; product.h says so.
LARGEST_ERROR = 2.5e-7


def draw(*size, seed=0, scale=1.0):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed)) * scale


def activate(engine, x, activation):
    out = torch.empty_like(x)
    number = list(ACTIVATIONS).index(activation)
    library.call("activate", *engine.codes, x.data_ptr(), len(x), out.data_ptr(), number)
    return out


@parametrize()
@pytest.mark.parametrize("activation", ["sigmoid", "tanh"])
def test_error_of_activations(engine, activation):
    tiny = torch.logspace(-45, 0, 20_001)
    x = torch.cat([torch.linspace(-110, 110, 200_001), torch.linspace(-3, 3, 200_001), tiny, -tiny])
    x = torch.cat([x, torch.tensor([0.0, 1e4, -1e4, 1e30, -1e30, 3.4e38, -3.4e38, torch.inf, -torch.inf])])
    found = activate(engine, x, activation)
    assert (found - ACTIVATIONS[activation](x.double())).abs().max() < LARGEST_ERROR
    exact = activate(engine, torch.tensor([0.0, torch.nan]), activation)
    assert exact[0] == (0.5 if activation == "sigmoid" else 0.0)
    assert exact[1].isnan()


@parametrize()
def test_relu_keeps_what_is_not_a_number(engine):
    found = activate(engine, torch.tensor([-1.0, 2.0, torch.nan, torch.inf]), "relu")
    assert found[:2].tolist() == [0.0, 2.0]
    assert found[2].isnan()


@parametrize()
@cases
@given(
    rows=st.integers(0, 120),
    inputs=st.integers(1, 700),
    outputs=st.integers(1, 150),
    activation=st.sampled_from(list(ACTIVATIONS)),
    biased=st.booleans(),
    seed=seeds,
)
def test_products(engine, rows, inputs, outputs, activation, biased, seed):
    weight, x = draw(outputs, inputs, seed=seed), draw(rows, inputs, seed=seed + 1, scale=inputs**-0.5)
    bias = draw(outputs, seed=seed + 2) if biased else None
    found = NativeProduct(engine, (weight, bias), activation=activation)(x)
    expected = ACTIVATIONS[activation](
        x.double() @ weight.double().T + (0.0 if bias is None else bias.double())
    )
    assert found.shape == (rows, outputs)
    tolerance = {"float32": 1e-5, "bfloat16": 0.05, "int8": 0.15}[engine.precision]
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=tolerance)


@parametrize()
@cases
@given(rows=st.integers(1, 30), dim=st.integers(1, 100), seed=seeds)
def test_highways(engine, rows, dim, seed):
    weight, bias = draw(2 * dim, dim, seed=seed), draw(2 * dim, seed=seed + 1)
    x = draw(rows, dim, seed=seed + 2, scale=dim**-0.5)
    linears = zip(weight.chunk(2), bias.chunk(2), strict=True)
    found = NativeProduct(engine, *linears, activation="highway")(x)
    gate, transform = (x.double() @ weight.double().T + bias.double()).chunk(2, dim=1)
    expected = torch.lerp(x.double(), torch.relu(transform), torch.sigmoid(gate))
    tolerance = {"float32": 1e-5, "bfloat16": 0.05, "int8": 0.15}[engine.precision]
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=tolerance)


@parametrize()
@cases
@given(rows=st.integers(2, 130), inputs=st.integers(1, 600), seed=seeds)
def test_a_row_has_the_same_bits_whatever_stands_beside_it(engine, rows, inputs, seed):
    product = NativeProduct(engine, (draw(33, inputs, seed=seed), draw(33, seed=seed)), activation="tanh")
    x = draw(rows, inputs, seed=seed + 1)
    together = product(x)
    for row in {0, rows // 2, rows - 1}:
        assert torch.equal(product(x[row : row + 1])[0], together[row])


@parametrize("int8")
@pytest.mark.parametrize("bound", [None, 0.5, 1.0, 3.0])
def test_int8_is_torchs_int8(engine, bound, monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: engine.name not in ("avx2", "avx512"))
    weight, bias, x = draw(40, 100, seed=1), draw(40, seed=2), draw(30, 100, seed=3)
    if bound is not None:
        x = x.clamp(-0.99 * bound, 0.99 * bound)  # the bound itself lies between two integers
    x[4] = 0.0
    x[5] *= 1e-30
    x[6] *= 1e20 if bound is None else 1.0
    found = NativeProduct(engine, (weight, bias), bound=bound)(x)
    torch.testing.assert_close(
        found, make_product("int8", weight, bias, bound=bound)(x), rtol=2e-6, atol=2e-5
    )


@parametrize()
def test_not_a_number_stays_in_its_row(engine):
    product, x = NativeProduct(engine, (draw(20, 30), None)), draw(9, 30, seed=1)
    clean = product(x)
    x[3, 29] = torch.nan
    spoilt = product(x)
    assert spoilt[3].isnan().all()
    others = torch.arange(9) != 3
    assert torch.equal(spoilt[others], clean[others])


@parametrize("float32")
def test_what_does_not_fit_is_refused(engine):
    product = NativeProduct(engine, (draw(20, 30), None))
    for wrong in (draw(5, 29), draw(5, 30).double(), draw(30)):
        with pytest.raises(ConfigError, match="native kernel"):
            product(wrong)
    for linears in ([(draw(30, 20), None)] * 2, [(draw(30, 30), None)]):
        with pytest.raises(ConfigError, match="takes no weight"):
            NativeProduct(engine, *linears, activation="highway")
    assert torch.equal(pickle.loads(pickle.dumps(product))(torch.ones(1, 30)), product(torch.ones(1, 30)))
    assert torch.equal(product(torch.ones(30, 2).T), product(torch.ones(2, 30)))
