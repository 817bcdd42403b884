"""Each equation of the network on numbers that were worked by hand."""

import math

import pytest
import torch

from elmokit.model import BiLM, BiLSTMLayer, CharCNN, CharCNNConfig, LayerState
from elmokit.model.char_cnn import Highway
from tests.tiny import tiny_config, tiny_model


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def fill(parameter, values):
    with torch.no_grad():
        parameter.copy_(torch.tensor(values, dtype=torch.float32).view_as(parameter))


def close(found, expected):
    torch.testing.assert_close(found.detach(), torch.tensor(expected), atol=1e-6, rtol=0)


def test_highway():
    highway = Highway(2)
    fill(highway.gate.weight, [[1, 0], [0, 2]])
    fill(highway.gate.bias, [-1, 0])
    fill(highway.transform.weight, [[0, 3], [-1, 0]])
    fill(highway.transform.bias, [0.5, 0])
    # x = (1, 0.5): gate = σ(1·1 - 1) = σ(0), σ(2·0.5) = σ(1); relu(3·0.5 + 0.5) = 2, relu(-1) = 0.
    # y = 0.5·2 + 0.5·1 = 1.5;  σ(1)·0 + (1 - σ(1))·0.5
    close(highway(torch.tensor([[1.0, 0.5]])), [[1.5, 0.5 * (1 - sigmoid(1))]])


def tiny_cnn(activation):
    """Characters 0 to 4 are the numbers 1, -2, 3, 0.5 and, for padding, 0; filters of width 1 and 2."""
    config = CharCNNConfig(
        filters=((1, 1), (2, 1)),
        embedding_dim=1,
        max_characters=4,
        num_characters=5,
        activation=activation,
        projection=False,
    )
    cnn = CharCNN(config, output_dim=2)
    fill(cnn.embedding.weight, [1, -2, 3, 0.5, 0])
    fill(cnn.convolutions[0].weight, [-1])
    fill(cnn.convolutions[0].bias, [0.25])
    fill(cnn.convolutions[1].weight, [1, 2])
    fill(cnn.convolutions[1].bias, [-3])
    return cnn


@pytest.mark.parametrize(("activation", "act"), [("relu", lambda x: max(x, 0.0)), ("tanh", math.tanh)])
def test_convolution_and_maximum(activation, act):
    # Row 1, -2, 3, 0: width 1: max(-1, 2, -3, 0) + 0.25 = 2.25
    #                  width 2: max(1 - 4, -2 + 6, 3 + 0) - 3 = 4 - 3 = 1
    # Row 3, 0.5, 0, 0: width 1: the padding wins, 0 + 0.25; width 2: max(3 + 1, 0.5 + 0, 0) - 3 = 1
    # Row 1, 0, 0, 0: width 1: the padding wins again; width 2: max(1 + 0, 0) - 3 = -2
    ids, used = torch.tensor([[0, 1, 2, 4], [2, 3, 4, 4], [0, 4, 4, 4]]), torch.tensor([3, 2, 1])
    expected = [[act(2.25), act(1.0)], [act(0.25), act(1.0)], [act(0.25), act(-2.0)]]
    close(tiny_cnn(activation)(ids, used), expected)


def test_character_projection():
    config = CharCNNConfig(filters=((1, 2),), embedding_dim=1, max_characters=3, num_characters=2)
    cnn = CharCNN(config, output_dim=1)
    fill(cnn.embedding.weight, [2, 0])
    fill(cnn.convolutions[0].weight, [1, 3])
    fill(cnn.convolutions[0].bias, [0, -1])
    fill(cnn.projection.weight, [10, 1])
    fill(cnn.projection.bias, [0.5])
    close(cnn(torch.tensor([[0, 1, 1]]), torch.tensor([1])), [[10 * 2 + (3 * 2 - 1) + 0.5]])


def one_number_layer(**changes):
    """An LSTM of one number in, cell, and out; the backward direction has other biases."""
    layer = BiLSTMLayer(tiny_config(cell_dim=1, projection_dim=1, num_layers=1, **changes))
    fill(layer.input_weight, [[1, 2, 3, 4], [1, 2, 3, 4]])  # rows i, f, j, o
    fill(layer.state_weight, [[0.5, 1, -1, 2], [0.5, 1, -1, 2]])
    fill(layer.bias, [[0.1, 0.2, 0.3, 0.4], [0, 0, 0, 0]])
    if layer.projection is not None:
        fill(layer.projection, [2, -2])
    return layer


# z = W_x·0.5 + W_h·(-0.2) + b, with the forget gate's 1 added
Z_FWD = (0.5 - 0.1 + 0.1, 1 - 0.2 + 0.2 + 1, 1.5 + 0.2 + 0.3, 2 - 0.4 + 0.4)
Z_BWD = (0.4, 1.8, 1.7, 1.6)
CELL = 0.7


def lstm_step(z):
    i, f, j, o = z
    cell = sigmoid(f) * CELL + sigmoid(i) * math.tanh(j)
    return cell, sigmoid(o) * math.tanh(cell)


def step(layer):
    start = LayerState(torch.full((2, 1, 1), -0.2), torch.full((2, 1, 1), CELL))
    out, end = layer(torch.full((2, 1, 1), 0.5), [1], start)
    close(out, end.hidden.tolist())
    return out.flatten(), end.cell.flatten()


def test_lstm_step():
    (c_fwd, m_fwd), (c_bwd, m_bwd) = lstm_step(Z_FWD), lstm_step(Z_BWD)
    hidden, cell = step(one_number_layer(cell_clip=None, projection_clip=None))
    close(cell, [c_fwd, c_bwd])
    close(hidden, [2 * m_fwd, -2 * m_bwd])


def test_lstm_step_with_clips():
    """The cell is 1.1 and more, so a clip of 1 makes it 1 before the output gate sees it."""
    hidden, cell = step(one_number_layer(cell_clip=1.0, projection_clip=None))
    close(cell, [1.0, 1.0])
    o_fwd, o_bwd = sigmoid(Z_FWD[3]), sigmoid(Z_BWD[3])
    close(hidden, [2 * o_fwd * math.tanh(1), -2 * o_bwd * math.tanh(1)])
    hidden, _ = step(one_number_layer(cell_clip=None, projection_clip=0.25))
    close(hidden, [0.25, -0.25])


def test_lstm_step_without_projection_has_no_clip_of_the_output():
    hidden, _ = step(one_number_layer(cell_clip=None, projection_clip=0.01, projection=False))
    close(hidden, [lstm_step(Z_FWD)[1], lstm_step(Z_BWD)[1]])


def test_forget_bias_is_a_setting():
    _, cell = step(one_number_layer(cell_clip=None, forget_bias=0.0))
    i, f, j, _ = Z_FWD
    close(cell[0], sigmoid(f - 1) * CELL + sigmoid(i) * math.tanh(j))


def test_skips_add_the_input_from_the_second_layer_on():
    outputs = {}
    for skip in (False, True):
        model = tiny_model(tiny_config(num_layers=2, skip_connections=skip))
        with torch.no_grad():
            outputs[skip], _ = model(torch.ones(3, 3), torch.tensor([3]))
    close(outputs[True][:2], outputs[False][:2].tolist())
    close(outputs[True][2], (outputs[False][2] + outputs[False][1]).tolist())


def test_layer_0_is_the_token_vector_twice():
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    layers, _ = tiny_model()(x, torch.tensor([3, 1]))
    assert layers.shape == (3, 4, 6)
    close(layers[0], torch.cat([x, x], dim=1).tolist())


def test_gradients_reach_every_parameter_and_are_right():
    """Against differences of the output, in float64; the clips are wide so that nothing is flat."""
    model = tiny_model(tiny_config(activation="tanh", cell_clip=50.0, projection_clip=50.0)).double()
    ids, used = torch.tensor([[258, 97, 259] + [260] * 47, [258, 98, 259] + [260] * 47]), torch.tensor([3, 3])

    def loss():
        layers, _ = model(model.encoder(ids, used), torch.tensor([2]))
        return layers.sin().sum()

    loss().backward()
    for name, parameter in model.named_parameters():
        place = int(parameter.grad.abs().argmax())
        assert parameter.grad.flatten()[place] != 0, name
        values = []
        for move in (1e-6, -2e-6):
            with torch.no_grad():
                parameter.flatten()[place] += move
                values.append(loss())
        with torch.no_grad():
            parameter.flatten()[place] += 1e-6
        slope = (values[0] - values[1]) / 2e-6
        torch.testing.assert_close(slope, parameter.grad.flatten()[place], atol=1e-5, rtol=1e-4)


def test_a_new_model_has_finite_weights():
    model = BiLM(tiny_config())
    assert all(parameter.isfinite().all() for parameter in model.parameters())
