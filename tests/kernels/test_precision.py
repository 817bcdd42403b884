"""Precision, threads and batches change the speed, and the numbers by no more than is said here."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.embed import engine
from elmokit.embed.embedder import Embedder
from elmokit.errors import ConfigError
from elmokit.kernels import precision as precision_module
from elmokit.kernels.lstm_inference import InferenceLSTM
from elmokit.kernels.native import NativeLSTM
from elmokit.kernels.precision import int8_scale, make_product, resolve, supported
from elmokit.model import char_cnn
from tests.tiny import wide_bundle

PRECISIONS = [name for name in supported() if name != "float32"]
# Cosine to float32 of every layer, mean over tokens.
LEAST_COSINE = 0.995

lowered = pytest.mark.parametrize("precision", PRECISIONS)
words = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1), max_size=9)


def cosines(a, b):
    """Mean cosine of each layer of two embeddings of one sentence."""
    dots = (a.layers * b.layers).sum(-1)
    return (dots / np.linalg.norm(a.layers, axis=-1) / np.linalg.norm(b.layers, axis=-1)).mean(-1)


@lowered
def test_near_float32(precision):
    sentence = ["The bank raised its rates again , and nobody was surprised at all ."]
    (exact,) = Embedder(wide_bundle()).embed(sentence)
    (near,) = Embedder(wide_bundle(), precision=precision).embed(sentence)
    assert (cosines(exact, near) > LEAST_COSINE).all()


@pytest.mark.skipif("int8" not in PRECISIONS, reason="no int8 products on this machine")
@settings(max_examples=20)
@given(st.lists(words, min_size=1, max_size=6), st.integers(1, 60))
def test_int8_is_the_same_to_the_bit_in_any_batch(sentences, batch_tokens):
    together = Embedder(wide_bundle(), precision="int8").embed(sentences)
    apart = Embedder(wide_bundle(), precision="int8", batch_tokens=batch_tokens).embed(sentences[::-1])[::-1]
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_array_equal(a.layers, b.layers)


@pytest.mark.parametrize("precision", ["float32", *PRECISIONS])
def test_threads_do_not_change_a_bit(precision):
    sentences = [["word", str(i), "and", "so", "on"] * (i % 4 + 1) for i in range(40)]
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(Embedder(wide_bundle(), precision=precision, batch_tokens=64).embed(sentences))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for one, other in zip(found[0] * 2, found[1] + found[2], strict=True):
        np.testing.assert_array_equal(one.layers, other.layers)


@pytest.mark.parametrize("precision", ["float32", *PRECISIONS])
def test_both_directions_in_one_loop_are_the_same_to_the_bit(precision, monkeypatch):
    sentences = [["word", str(i)] * (i % 5 + 1) for i in range(12)]
    found = []
    for worth_a_thread in (0, 10**12):
        for lstm in (InferenceLSTM, NativeLSTM):
            monkeypatch.setattr(lstm, "worth_a_thread", worth_a_thread)
        found.append(Embedder(wide_bundle(), precision=precision).embed(sentences))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.layers, other.layers)


@pytest.mark.parametrize("precision", ["float32", *PRECISIONS])
def test_a_type_has_the_same_vector_to_the_bit_whatever_it_is_computed_with(precision, monkeypatch):
    monkeypatch.setattr(engine, "_TYPES_AT_ONCE", 16)
    monkeypatch.setattr(char_cnn, "_GROUP_TYPES", 4)
    tokens = ["word" * (i % 12) + str(i) for i in range(70)]
    (together,) = Embedder(wide_bundle(), precision=precision).embed([tokens])
    elmo = Embedder(wide_bundle(), precision=precision)
    for row in (0, 1, 11, 35, 69):
        (alone,) = elmo.embed([tokens[row : row + 1]])
        np.testing.assert_array_equal(alone.layers[0, 0], together.layers[0, row])


@given(st.integers(0, 5000), st.integers(1, 9))
def test_every_thread_has_the_same_to_encode(number, threads):
    most, together = engine._TYPES_AT_ONCE, engine.ROWS_TOGETHER
    size = engine._size_of_parts(number, threads)
    assert 0 < size <= most
    if (
        number > most
    ):  # whole groups, and no more in each thread's parts than its share, but for the last group
        rounds = -(-number // (most * threads))
        assert size % together == 0
        assert size - together < number / (rounds * threads) <= size


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_large_matrices_are_multiplied_by_panels(rows, monkeypatch):
    monkeypatch.setattr(precision_module, "_PANEL_NUMBERS", 64)
    monkeypatch.setattr(precision_module, "_PANEL_COLUMNS", 4)
    random = torch.Generator().manual_seed(3)
    weight, bias = torch.randn(50, 16, generator=random), torch.randn(50, generator=random)
    x = torch.randn(rows, 16, generator=random)
    for product in (make_product("float32", weight, bias), make_product("float32", weight)):
        space, expected = torch.empty(rows, 50), x @ weight.T + (bias if product._bias is not None else 0)
        assert len(product._panels) == 13
        torch.testing.assert_close(product(x), expected)
        assert product(x, space) is space
        torch.testing.assert_close(space, expected)
        product.add_to(space, x)
        torch.testing.assert_close(space, expected + x @ weight.T)


@pytest.mark.skipif("int8" not in PRECISIONS, reason="no int8 products on this machine")
def test_a_known_bound_is_the_range_of_every_row():
    random = torch.Generator().manual_seed(2)
    weight, x = torch.randn(24, 64, generator=random), torch.rand(6, 64, generator=random) - 0.5
    product = make_product("int8", weight, bound=0.5)
    together, alone = torch.empty(6, 24), torch.empty(1, 24)
    product.into(together, x)
    assert torch.nn.functional.cosine_similarity(together, x @ weight.T).min() > LEAST_COSINE
    for row in range(6):
        product.into(alone, x[row : row + 1])
        assert torch.equal(alone[0], together[row])


@lowered
def test_products(precision):
    random = torch.Generator().manual_seed(1)
    weight, bias = torch.randn(24, 16, generator=random), torch.randn(24, generator=random)
    x = torch.randn(5, 16, generator=random) * torch.tensor([[1e-3], [1.0], [50.0], [0.0], [1.0]])
    product = make_product(precision, weight, bias)
    expected = x @ weight.T
    # A row's error is measured by that row's size: a large neighbour must not drown a small row.
    allowed = 0.03 * expected.norm(dim=1, keepdim=True) + 1e-12
    assert ((product(x) - bias - expected).norm(dim=1, keepdim=True) <= allowed + 1e-5).all()
    target = torch.ones(5, 24)
    product.add_to(target, x)
    assert ((target - 1 - expected).norm(dim=1, keepdim=True) <= allowed + 1e-5).all()
    product.into(target, x)
    assert ((target - expected).norm(dim=1, keepdim=True) <= allowed).all()


def test_one_step_of_int8():
    assert int8_scale(torch.tensor([[1.27, -2.54], [0.0, 0.0]]))[0] == pytest.approx(0.02)
    assert int8_scale(torch.zeros(1, 2)) > 0


def test_what_the_machine_does(monkeypatch):
    for name in ("_is_avx2_supported", "_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: False)
    assert supported() == ["float32"]
    with pytest.raises(ConfigError, match=r"'bfloat16' is not native to this machine .* use one of float32"):
        resolve("bfloat16")
    monkeypatch.setattr(torch.cpu, "_is_avx2_supported", lambda: True)
    monkeypatch.setattr(precision_module.platform, "machine", lambda: "x86_64")
    assert resolve("auto") == "int8"
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    assert supported() == ["float32", "bfloat16", "int8"]
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    for native, fastest in ((True, "int8"), (False, "bfloat16")):
        monkeypatch.setattr(precision_module, "_native_int8", lambda native=native: native)
        assert resolve("auto") == fastest
    with pytest.raises(
        ConfigError, match="precision must be one of float32, int8, bfloat16 or auto, found 'int4'"
    ):
        resolve("int4")
