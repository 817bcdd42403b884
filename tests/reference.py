"""A slow ELMo in float64 and numpy, written after FORMATS.md: the oracle of the parity tests.

It shares no code with the package: it reads the datasets of a weights file by their names, walks each
sentence token by token, and never batches. Where the package is clever, this is plain.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.tiny import Arrays

BEGIN_WORD, END_WORD, PAD = 258, 259, 260
BOUNDARY = {"<S>": 256, "</S>": 257}

# The cell c and the output h of one sentence, by (direction, layer).
State = dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]


class Reference:
    """One model: its datasets, its options and, for a model of word vectors, its words."""

    def __init__(self, arrays: Arrays, options: dict[str, Any], words: Sequence[str] = ()) -> None:
        self.arrays = {name: array.astype(np.float64) for name, array in arrays.items()}
        self.char_cnn = options.get("char_cnn")
        self.lstm = options["lstm"]
        self.words = list(words)

    def embed(self, tokens: Sequence[str], state: State | None = None) -> np.ndarray:
        """All layers of a sentence with its boundaries, (L+1, T+2, 2P); `state` is read and replaced."""
        state = {} if state is None else state
        token_layer = np.stack([self.token(token) for token in ["<S>", *tokens, "</S>"]])  # (T+2, P)
        forward = self._direction(0, token_layer, state)
        backward = [layer[::-1] for layer in self._direction(1, token_layer[::-1], state)]
        pairs = zip([token_layer, *forward], [token_layer, *backward], strict=True)
        return np.stack([np.concatenate(pair, axis=1) for pair in pairs])

    def token(self, token: str) -> np.ndarray:
        """The vector (P,) of a token out of context."""
        if self.char_cnn is None:
            word = token if token in self.words else "<UNK>"
            return self.arrays["embedding"][self.words.index(word)]
        characters = self.arrays["char_embed"][self._spell(token)]  # (C, E)
        parts = []
        for i, (width, _) in enumerate(self.char_cnn["filters"]):
            kernel, bias = self.arrays[f"CNN/W_cnn_{i}"][0], self.arrays[f"CNN/b_cnn_{i}"]
            places = range(len(characters) - width + 1)
            answers = [
                np.einsum("we,wen->n", characters[place : place + width], kernel) + bias for place in places
            ]
            parts.append(np.max(answers, axis=0))
        x = np.concatenate(parts)
        x = np.maximum(x, 0) if self.char_cnn["activation"] == "relu" else np.tanh(x)
        for i in range(self.char_cnn.get("n_highway") or 0):
            weights = {name: self.arrays[f"CNN_high_{i}/{name}"] for name in self._highway_names}
            gate = _sigmoid(x @ weights["W_carry"] + weights["b_carry"])
            changed = np.maximum(x @ weights["W_transform"] + weights["b_transform"], 0)
            x = gate * changed + (1 - gate) * x
        if "CNN_proj/W_proj" in self.arrays:
            x = x @ self.arrays["CNN_proj/W_proj"] + self.arrays["CNN_proj/b_proj"]
        return x

    _highway_names = ("W_carry", "b_carry", "W_transform", "b_transform")

    def _spell(self, token: str) -> list[int]:
        length = self.char_cnn["max_characters_per_token"]
        inside = [BOUNDARY[token]] if token in BOUNDARY else list(token.encode("utf-8", "ignore"))
        row = [BEGIN_WORD, *inside[: length - 2], END_WORD]
        return row + [PAD] * (length - len(row))

    def _direction(self, direction: int, x: np.ndarray, state: State) -> list[np.ndarray]:
        """(T+2, P) in the order of reading → the same of each layer."""
        outputs = []
        for layer in range(self.lstm.get("n_layers", 1)):
            y = self._layer(direction, layer, x, state)
            x = y + x if layer > 0 and self.lstm.get("use_skip_connections") else y
            outputs.append(x)
        return outputs

    def _layer(self, direction: int, layer: int, x: np.ndarray, state: State) -> np.ndarray:
        path = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        if f"{path}/W_0" not in self.arrays:
            path = f"RNN_{direction}/RNN/LSTMCell"
        zeros = np.zeros(self.lstm["dim"]), np.zeros(self.lstm["projection_dim"])
        c, h = state.get((direction, layer), zeros)
        outputs = []
        for token in x:
            gates = np.concatenate([token, h]) @ self.arrays[f"{path}/W_0"] + self.arrays[f"{path}/B"]
            i, j, f, o = np.split(gates, 4)
            c = _clip(_sigmoid(f + 1) * c + _sigmoid(i) * np.tanh(j), self.lstm.get("cell_clip"))
            h = _sigmoid(o) * np.tanh(c)
            if f"{path}/W_P_0" in self.arrays:
                h = _clip(h @ self.arrays[f"{path}/W_P_0"], self.lstm.get("proj_clip"))
            outputs.append(h)
        state[direction, layer] = c, h
        return np.stack(outputs)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _clip(x: np.ndarray, limit: float | None) -> np.ndarray:
    return np.clip(x, -limit, limit) if limit else x
