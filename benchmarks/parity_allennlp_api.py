"""`elmokit.compat.allennlp` beside AllenNLP 2.10.1: every argument of `Elmo`, its state dicts and gradients.

    python benchmarks/parity_allennlp_api.py

AllenNLP runs in an environment of its own (`peers/`). Exit status 1 if a difference exceeds 1e-5.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from common import SHAPES, markdown_table, random_model, write_hdf5
from elmokit.compat.allennlp import Elmo, batch_to_ids
from parity import TOLERANCE, toy
from peers import Peer

Call = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]

FIRST = [["The", "cat", "sat", "."], ["one"], ["x" * 80, "é" * 40, "自然", "", "<S>"]]
SECOND = [["A", "shorter", "batch"], ["", "b"]]
VOCABULARY = ["@@PADDING@@", "@@UNKNOWN@@", "The", "cat", "sat", ".", "one"]
WORDS = [[2, 3, 4, 5], [6, 0, 0, 0]]


def calls(*batches: list[list[str]]) -> list[Call]:
    """Calls of three dimensions, without words."""
    return [{"batches": [batch], "words": None} for batch in batches]


CASES: dict[str, tuple[list[Call], Call]] = {
    "plain": (calls(FIRST), {}),
    "two mixes, state carried over three calls": (
        calls(FIRST, SECOND, FIRST),
        {"num_output_representations": 2},
    ),
    "layer norm": (calls(FIRST), {"do_layer_norm": True}),
    "boundaries kept": (calls(FIRST), {"keep_sentence_boundaries": True}),
    "boundaries kept, layer norm": (calls(FIRST), {"keep_sentence_boundaries": True, "do_layer_norm": True}),
    "fixed mix": (calls(FIRST), {"scalar_mix_parameters": [0.3, -0.2, 0.9]}),
    "four dimensions": ([{"batches": [FIRST, FIRST[::-1]], "words": None}], {}),
    "cached vocabulary": ([{"batches": [FIRST[:2]], "words": WORDS}], {"vocab_to_cache": VOCABULARY}),
    "cached vocabulary, four dimensions": (
        [{"batches": [FIRST[:2], FIRST[:2]], "words": [WORDS, WORDS]}],
        {"vocab_to_cache": VOCABULARY},
    ),
    "cached vocabulary, a word beyond it": (
        [{"batches": [FIRST[:2]], "words": [[2, 3, 4, 99], [6, 0, 0, 0]]}],
        {"vocab_to_cache": VOCABULARY},
    ),
    "gradients of the biLM": (calls(SECOND), {"requires_grad": True}),
    "gradients, layer norm": (calls(SECOND), {"requires_grad": True, "do_layer_norm": True}),
}


def ours(files: dict[str, str], cases: list[Call], settings: Call, state: Path) -> tuple[Arrays, float]:
    """The same from our class with AllenNLP's weights, and how far its state dict is from AllenNLP's."""
    model = Elmo(files["options"], files["weights"], **settings, stateful=True).eval()
    theirs = torch.load(state, weights_only=True)
    model.load_state_dict(theirs)
    back = model.state_dict()
    assert back.keys() == theirs.keys(), back.keys() ^ theirs.keys()
    state_difference = max(float((back[name] - theirs[name]).abs().max()) for name in theirs)
    arrays: Arrays = {}
    for number, call in enumerate(cases):
        ids = torch.stack([batch_to_ids(batch) for batch in call["batches"]])
        words = None if call["words"] is None else torch.tensor(call["words"])
        output = model(ids if len(ids) > 1 else ids[0], words)
        arrays[f"{number}/mask"] = output["mask"].numpy()
        for mix, vectors in enumerate(output["elmo_representations"]):
            arrays[f"{number}/{mix}"] = vectors.detach().numpy()
        if settings["requires_grad"]:
            output["elmo_representations"][0].sum().backward()
    if settings["requires_grad"]:
        arrays |= gradients(model)
    return arrays, state_difference


def gradients(model: Elmo) -> Arrays:
    """Our gradients under AllenNLP's names: the state dict of a model whose weights are the gradients."""
    found = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            found[name] = parameter.grad
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(found.get(name, torch.zeros_like(parameter)))
    return {
        f"gradient/{name}": (tensor - _forget_bias(name, tensor)).numpy()
        for name, tensor in model.state_dict().items()
    }


def _forget_bias(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """What AllenNLP's weights have more than ours, and gradients have not."""
    more = torch.zeros_like(tensor)
    if name.endswith("state_linearity.bias"):
        more[len(tensor) // 4 : len(tensor) // 2] = 1
    return more


def compare(peer: Peer, name: str, files: dict[str, str], folder: Path) -> list[float]:
    """The largest difference of representations, gradients (relative to the largest) and state dict."""
    cases, settings = CASES[name]
    settings = {"num_output_representations": 1, "requires_grad": False, "dropout": 0.0, **settings}
    out, state = folder / "theirs.npz", folder / "theirs.th"
    peer.ask("represent", calls=cases, settings=settings, state=str(state), out=str(out))
    with np.load(out) as file:
        theirs = {key: file[key] for key in file.files}
    answers, state_difference = ours(files, cases, settings, state)
    assert theirs.keys() <= answers.keys(), theirs.keys() - answers.keys()
    vectors = gradient = 0.0
    for key, expected in theirs.items():
        assert answers[key].shape == expected.shape, (key, answers[key].shape, expected.shape)
        difference = float(np.abs(answers[key] * 1.0 - expected).max())
        if key.startswith("gradient/"):
            gradient = max(gradient, difference / max(float(np.abs(expected).max()), 1.0))
        else:
            vectors = max(vectors, difference)
    return [vectors, gradient, state_difference]


def main() -> None:
    """Print the table."""
    rows = []
    with Peer("allennlp") as peer:
        shapes = {"toy": toy(2, "relu", 1, (0.5, 0.3)), "small": SHAPES["small"]}
        for shape, config in shapes.items():
            with TemporaryDirectory() as folder:
                files = write_hdf5(random_model(config), Path(folder) / "model")
                peer.ask("load", **files)
                for name in CASES if shape == "toy" else ("plain", "gradients of the biLM"):
                    rows.append([shape, name, *compare(peer, name, files, Path(folder))])
    print("\nLargest difference of elmokit.compat.allennlp.Elmo from AllenNLP 2.10.1\n")
    print(markdown_table(["model", "case", "representations", "gradients", "state dict"], rows))
    worst = max(value for row in rows for value in row if isinstance(value, float))
    print(f"\nlargest of all {worst:.2g}, allowed {TOLERANCE:g}")
    sys.exit(not worst <= TOLERANCE)


if __name__ == "__main__":
    main()
