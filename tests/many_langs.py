"""Tiny random ELMoForManyLangs folders, written after FORMATS.md, and a slow oracle of their numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.reference import Reference, _sigmoid

CHARACTERS = [*"abcdehiknorstu.T中é", "\u3000", "\u2028"]
CHARACTER_MARKS = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "the", "cat", "sat", "bank", "中", "t" * 48]
NETWORK = {
    "encoder": {
        "name": "elmo",
        "projection_dim": 3,
        "dim": 5,
        "n_layers": 2,
        "cell_clip": 3,
        "proj_clip": 3,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 2], [2, 3], [3, 4]],
        "n_highway": 1,
        "word_dim": 4,
        "char_dim": 6,
        "max_characters_per_token": 50,
    },
    "classifier": {"name": "sampled_softmax", "n_samples": 8192},
    "dropout": 0.1,
}
Network = dict[str, Any]
States = tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]


def network(*, encoder: Network | None = None, token_embedder: Network | None = None) -> Network:
    """The network file with some of its settings changed."""
    changes = {"encoder": encoder or {}, "token_embedder": token_embedder or {}}
    return NETWORK | {name: NETWORK[name] | change for name, change in changes.items()}


def lexicons() -> tuple[dict[str, int], dict[str, int]]:
    """Numbers of characters and of words as they are read.

    Lines are stripped, and a symbol lost by that is taken for U+3000; the last such line counts.
    """
    characters = {symbol: number for number, symbol in enumerate(CHARACTERS + CHARACTER_MARKS)}
    characters["\u3000"] = characters.pop("\u2028")
    return characters, {word: number for number, word in enumerate(WORDS)}


def random_states(net: Network, *, seed: int = 0, scale: float = 0.5) -> States:
    """Random state dicts of token embedder and encoder."""
    token, lstm = net["token_embedder"], net["encoder"]
    filters = sum(number for _, number in token["filters"])
    cell, dim = lstm["dim"], lstm["projection_dim"]
    shapes: dict[str, tuple[int, ...]] = {
        "char_emb_layer.embedding.weight": (len(CHARACTERS) + len(CHARACTER_MARKS), token["char_dim"])
    }
    if token["word_dim"]:
        shapes["word_emb_layer.embedding.weight"] = (len(WORDS), token["word_dim"])
    for i, (width, number) in enumerate(token["filters"]):
        shapes[f"convolutions.{i}.weight"] = (number, token["char_dim"], width)
        shapes[f"convolutions.{i}.bias"] = (number,)
    for i in range(token["n_highway"]):
        shapes[f"highways._layers.{i}.weight"] = (2 * filters, filters)
        shapes[f"highways._layers.{i}.bias"] = (2 * filters,)
    shapes["projection.weight"], shapes["projection.bias"] = (dim, token["word_dim"] + filters), (dim,)
    of_encoder: dict[str, tuple[int, ...]] = {}
    if lstm["name"] == "lstm":
        modules = torch_lstm(net)
        of_encoder = {name: tuple(tensor.shape) for name, tensor in modules.state_dict().items()}
    for layer in range(lstm["n_layers"] if lstm["name"] == "elmo" else 0):
        for direction in ("forward", "backward"):
            path = f"{direction}_layer_{layer}."
            of_encoder[path + "input_linearity.weight"] = (4 * cell, dim)
            of_encoder[path + "state_linearity.weight"] = (4 * cell, dim)
            of_encoder[path + "state_linearity.bias"] = (4 * cell,)
            of_encoder[path + "state_projection.weight"] = (dim, cell)
    random = torch.Generator().manual_seed(seed)
    return tuple(
        {name: scale * torch.randn(shape, generator=random) for name, shape in part.items()}
        for part in (shapes, of_encoder)
    )


def write_folder(
    folder: Path, net: Network | None = None, states: States | None = None, *, old_pickles: bool = False
) -> Path:
    """Write a folder as it is published; `old_pickles` as torch before 1.6 wrote them."""
    net = net or NETWORK
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "net.json").write_text(json.dumps(net), encoding="utf-8")
    arguments = {"seed": 1, "lr": 0.001, "config_path": "/home/someone/configs/net.json"}
    (folder / "config.json").write_text(json.dumps(arguments), encoding="utf-8")
    for name, symbols in (("char.dic", CHARACTERS + CHARACTER_MARKS), ("word.dic", WORDS)):
        lines = "".join(f"{symbol}\t{number}\n" for number, symbol in enumerate(symbols))
        (folder / name).write_text(lines, encoding="utf-8", newline="")
    for name, state in zip(("token_embedder", "encoder"), states or random_states(net), strict=True):
        torch.save(state, folder / f"{name}.pkl", _use_new_zipfile_serialization=not old_pickles)
    return folder


class ManyLangsReference(Reference):
    """The oracle: its LSTMs are `Reference`'s after a change of names, its tokens its own."""

    def __init__(self, net: Network, states: States) -> None:
        self.network = net
        token, encoder = ({name: t.double().numpy() for name, t in state.items()} for state in states)
        self.tensors = token
        arrays = {}
        for layer in range(net["encoder"]["n_layers"]):
            for number, direction in enumerate(("forward", "backward")):
                theirs = f"{direction}_layer_{layer}."
                ours = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
                kernel = np.concatenate(
                    [encoder[theirs + f"{half}_linearity.weight"].T for half in ("input", "state")]
                )
                arrays[ours + "W_0"] = _tensorflow_gates(kernel)
                bias = encoder[theirs + "state_linearity.bias"].copy()
                bias[len(bias) // 4 : len(bias) // 2] -= 1  # which `Reference` adds
                arrays[ours + "B"] = _tensorflow_gates(bias)
                arrays[ours + "W_P_0"] = encoder[theirs + "state_projection.weight"].T
        super().__init__(arrays, {"lstm": net["encoder"] | {"use_skip_connections": True}})

    def embed(self, tokens, state=None):
        # `Reference` puts <S> and </S> around; here they are called otherwise.
        self.boundaries = iter(["<bos>", *tokens, "<eos>"])
        return super().embed(tokens, state)

    def token(self, token):
        token = next(self.boundaries)
        settings, tensors = self.network["token_embedder"], self.tensors
        characters, words = lexicons()
        room = settings["max_characters_per_token"] - 2
        token = token[:room]
        if token in ("<bos>", "<eos>"):
            spelt = [characters[token]]
        else:
            spelt = [characters.get(c, characters["<oov>"]) for c in token]
        ids = [characters["<eow>"], *spelt, characters["<bow>"]]
        ids += [characters["<pad>"]] * (room + 2 - len(ids))
        e = tensors["char_emb_layer.embedding.weight"][ids]  # (C, E)
        parts = []
        for i, (width, _) in enumerate(settings["filters"]):
            kernel, bias = tensors[f"convolutions.{i}.weight"], tensors[f"convolutions.{i}.bias"]
            answers = [
                np.einsum("we,new->n", e[place : place + width], kernel) + bias
                for place in range(len(e) - width + 1)
            ]
            parts.append(np.max(answers, axis=0))
        x = np.concatenate(parts)
        x = np.maximum(x, 0) if settings["activation"] == "relu" else np.tanh(x)
        for i in range(settings["n_highway"]):
            weight, bias = tensors[f"highways._layers.{i}.weight"], tensors[f"highways._layers.{i}.bias"]
            changed, gate = np.split(weight @ x + bias, 2)
            x = _sigmoid(gate) * x + (1 - _sigmoid(gate)) * np.maximum(changed, 0)
        if settings["word_dim"]:
            word = tensors["word_emb_layer.embedding.weight"][words.get(token, words["<oov>"])]
            x = np.concatenate([word, x])
        return tensors["projection.weight"] @ x + tensors["projection.bias"]


def torch_lstm(net: Network) -> torch.nn.ModuleDict:
    """The modules of the encoder "lstm", named as in its state dict."""
    sizes = net["encoder"]
    cell, dim = sizes["dim"], sizes["projection_dim"]
    lstm = torch.nn.LSTM(dim, cell, sizes["n_layers"], bidirectional=True, batch_first=True)
    return torch.nn.ModuleDict({"encoder": lstm, "projection": torch.nn.Linear(cell, dim)})


class LstmReference(ManyLangsReference):
    """The oracle of the encoder "lstm": the original's two lines, for one sentence alone."""

    def __init__(self, net: Network, states: States) -> None:
        self.network = net
        self.tensors = {name: tensor.double().numpy() for name, tensor in states[0].items()}
        self.modules = torch_lstm(net).double()
        self.modules.load_state_dict(states[1])

    def embed(self, tokens, state=None):
        """(2, T+2, 2P): the token layer and the output."""
        self.boundaries = iter(words := ["<bos>", *tokens, "<eos>"])
        x = np.stack([self.token(word) for word in words])
        with torch.no_grad():
            hidden = self.modules["encoder"](torch.from_numpy(x)[None])[0]
            forward, backward = hidden.split(self.network["encoder"]["dim"], 2)
            output = torch.cat([self.modules["projection"](half) for half in (forward, backward)], dim=2)
        return np.stack([np.concatenate([x, x], axis=1), output[0].numpy()])


def _tensorflow_gates(x: np.ndarray) -> np.ndarray:
    """i, f, j, o → i, j, f, o in the last axis."""
    i, f, j, o = np.split(x, 4, axis=-1)
    return np.concatenate([i, j, f, o], axis=-1)
