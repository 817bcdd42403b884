"""How sentences are laid out, and what of a sentence reaches which half of which vector."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.embed.engine import Batch, InferenceBiLM
from elmokit.kernels import lstm_inference as inference
from elmokit.model import BiLM, LayerState, Packing, char_cnn, lstm
from tests.tiny import tiny_config, tiny_model

LENGTHS = st.lists(st.integers(0, 7), max_size=8)


@given(LENGTHS)
def test_packing_is_a_permutation(lengths):
    packing = Packing.of(torch.tensor(lengths, dtype=torch.long))
    total = sum(lengths)
    assert sorted(packing.order.tolist()) == list(range(len(lengths)))
    assert sum(packing.step_sizes) == total
    assert packing.step_sizes == sorted(packing.step_sizes, reverse=True)
    for direction in range(2):
        assert sorted(packing.index[direction].tolist()) == list(range(total))
        assert packing.index[direction][packing.inverse[direction]].tolist() == list(range(total))


@given(LENGTHS)
def test_step_t_holds_the_t_th_token_of_each_sentence_that_has_one(lengths):
    packing = Packing.of(torch.tensor(lengths, dtype=torch.long))
    starts = [sum(lengths[:row]) for row in range(len(lengths))]
    order = packing.order.tolist()
    forward, backward = packing.index.tolist()
    place = 0
    for step, size in enumerate(packing.step_sizes):
        running = order[:size]
        assert all(lengths[row] > step for row in running)
        assert forward[place : place + size] == [starts[row] + step for row in running]
        assert backward[place : place + size] == [starts[row] + lengths[row] - 1 - step for row in running]
        place += size


# BiLM says what is computed; InferenceBiLM computes the same faster. Both keep all that is promised here.
both = pytest.mark.parametrize("ready", [lambda model: model, lambda model: InferenceBiLM(model, "float32")])


def run(model, sentences, state=None):
    """Layers of each sentence, and the state after them."""
    lengths = torch.tensor([len(x) for x in sentences], dtype=torch.long)
    with torch.inference_mode():
        if isinstance(model, InferenceBiLM):
            ((layers, end),) = model([Batch(torch.cat(sentences), lengths, state)])
        else:
            layers, end = model(torch.cat(sentences), lengths, state)
    return torch.split(layers, lengths.tolist(), dim=1), end


def sentences_of(lengths, seed=0):
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(length, 3, generator=random) for length in lengths]


@both
@given(st.lists(st.integers(0, 7), min_size=1, max_size=6))
def test_a_batch_gives_each_sentence_what_it_has_alone(ready, lengths):
    model, sentences = ready(tiny_model()), sentences_of(lengths)
    together, ends = run(model, sentences)
    for row, sentence in enumerate(sentences):
        (alone,), end = run(model, [sentence])
        torch.testing.assert_close(together[row], alone, atol=1e-6, rtol=0)
        for layer, layer_alone in zip(ends, end, strict=True):
            torch.testing.assert_close(layer.hidden[:, [row]], layer_alone.hidden, atol=1e-6, rtol=0)
            torch.testing.assert_close(layer.cell[:, [row]], layer_alone.cell, atol=1e-6, rtol=0)


@both
def test_an_empty_sentence_keeps_its_state(ready):
    model = ready(tiny_model())
    random = torch.Generator().manual_seed(5)
    state = [
        LayerState(torch.randn(2, 2, 3, generator=random), torch.randn(2, 2, 5, generator=random))
        for _ in range(2)
    ]
    _, ends = run(model, sentences_of([0, 2]), state)
    for before, after in zip(state, ends, strict=True):
        assert torch.equal(before.hidden[:, 0], after.hidden[:, 0])
        assert torch.equal(before.cell[:, 0], after.cell[:, 0])
        assert not torch.equal(before.cell[:, 1], after.cell[:, 1])


@both
def test_nothing_but_empty_sentences(ready):
    model = ready(tiny_model())
    parts, ends = run(model, [torch.empty(0, 3)] * 2)
    layers = torch.cat(parts, dim=1)
    assert layers.shape == (3, 0, 6)
    assert [end.cell.shape for end in ends] == [(2, 2, 5)] * 2


@both
@given(length=st.integers(1, 8), data=st.data())
def test_a_direction_sees_only_its_own_side(ready, length, data):
    changed = data.draw(st.integers(0, length - 1))
    model, (sentence,) = ready(tiny_model(tiny_config(num_layers=3))), sentences_of([length], seed=length)
    other = sentence.clone()
    other[changed] += 1
    ((before,), _), ((after,), _) = run(model, [sentence]), run(model, [other])
    moved = (before != after).any(dim=0)  # (T, 2P)
    assert not moved[:changed, :3].any()  # the forward half of earlier tokens
    assert not moved[changed + 1 :, 3:].any()  # the backward half of later ones
    assert moved[changed].any()


@both
def test_state_cut_anywhere_goes_on_as_if_uncut(ready):
    """Forward only: the backward direction starts again at the end of every piece."""
    model, (sentence,) = ready(tiny_model()), sentences_of([9])
    (whole,), _ = run(model, [sentence])
    (first,), state = run(model, [sentence[:4]])
    (second,), _ = run(model, [sentence[4:]], state)
    torch.testing.assert_close(torch.cat([first, second], dim=1)[..., :3], whole[..., :3], atol=1e-6, rtol=0)


@both
@pytest.mark.parametrize("numbers", [1, 8 * 5 * 3, 8 * 5 * 7])
def test_gates_by_small_blocks_are_the_same(ready, numbers, monkeypatch):
    model, sentences = ready(tiny_model()), sentences_of([6, 1, 3, 6, 2])
    whole, _ = run(model, sentences)
    monkeypatch.setattr(lstm, "_GATE_NUMBERS", numbers)
    monkeypatch.setattr(inference, "_BLOCK_NUMBERS", numbers)
    blocks, _ = run(model, sentences)
    for a, b in zip(whole, blocks, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_layers": 3},
        {"skip_connections": False, "cell_clip": 0.1, "projection_clip": 0.1},
        {"cell_dim": 3, "projection": False, "forget_bias": 0.0, "cell_clip": None},
        {"num_highway": 2, "activation": "tanh", "projection_clip": None},
    ],
)
def test_inference_is_the_model(changes):
    model = tiny_model(tiny_config(**changes))
    fast = InferenceBiLM(model, "float32")
    ids = torch.tensor([[258, 97 + i] + [98] * (i % 3) + [259] + [260] * (47 - i % 3) for i in range(9)])
    used = torch.tensor([3 + i % 3 for i in range(9)])
    with torch.inference_mode():
        x = model.encoder(ids, used)
    torch.testing.assert_close(fast.encode(ids, used), x, atol=1e-6, rtol=0)
    state = None
    for _ in range(2):  # the second time from the state of the first
        (layers, end), (fast_layers, fast_end) = (run(m, [x[:4], x[4:], x[:0]], state) for m in (model, fast))
        for a, b in zip(layers, fast_layers, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=0)
        for a, b in zip(end, fast_end, strict=True):
            torch.testing.assert_close(a.hidden, b.hidden, atol=1e-5, rtol=0)
            torch.testing.assert_close(a.cell, b.cell, atol=1e-5, rtol=0)
        state = end


WORDS_OF_BYTES = st.lists(st.lists(st.integers(0, 255), max_size=6), min_size=1, max_size=8)


@given(WORDS_OF_BYTES)
def test_trimming_the_characters_is_exact(words):
    """Against the convolution over the whole row, padding and all."""
    model = tiny_model(tiny_config(max_characters=8, filters=((1, 2), (3, 2), (8, 2))))
    rows = [[258, *word, 259] for word in words]
    ids = torch.tensor([row + [260] * (8 - len(row)) for row in rows])
    used = torch.tensor([len(row) for row in rows])
    with torch.inference_mode():
        trimmed = model.encoder(ids, used)
        full = model.encoder(ids, torch.full_like(used, 8))
        alone = torch.cat([model.encoder(ids[[row]], used[[row]]) for row in range(len(words))])
    torch.testing.assert_close(trimmed, full, atol=1e-6, rtol=0)
    torch.testing.assert_close(trimmed, alone, atol=1e-6, rtol=0)


def test_many_types_go_by_groups(monkeypatch):
    model = tiny_model()
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 256, (11, 50), generator=random)
    used = torch.randint(2, 5, (11,), generator=random)
    ids[torch.arange(50) >= used[:, None]] = 260
    with torch.inference_mode():
        whole = model.encoder(ids, used)
        monkeypatch.setattr(char_cnn, "_GROUP_NUMBERS", 1)
        groups = model.encoder(ids, used)
    torch.testing.assert_close(whole, groups, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("char_projection", "dim"), [(True, 3), (False, 9)])
def test_no_types(char_projection, dim):
    model = tiny_model(tiny_config(projection_dim=dim, char_projection=char_projection))
    ids = torch.empty(0, 50, dtype=torch.long)
    assert model.encoder(ids, torch.empty(0, dtype=torch.long)).shape == (0, dim)


def test_state_dict_goes_to_a_model_of_the_same_config():
    model = tiny_model(seed=3)
    other = BiLM(model.config)
    other.load_state_dict(model.state_dict())
    (a,), _ = run(model, sentences_of([4]))
    (b,), _ = run(other, sentences_of([4]))
    assert torch.equal(a, b)
