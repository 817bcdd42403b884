"""AllenNLP 2.10.1's ELMo as it is. Its package imports much that its ELMo does not reach: see `_StandIns`."""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import torch
from worker import peak_megabytes, serve, timed


class _StandInClass(type):
    """Any attribute of a stand-in class is a stand-in class."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandInClass(name, (), {})


class _StandInModule(ModuleType):
    """A module in which every name is an empty class: enough for imports, annotations and base classes."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandInClass(name, (), {})


class _StandIns(MetaPathFinder, Loader):
    """Answers imports of the listed packages where they are not installed."""

    packages = (
        "_jsonnet", "cached_path", "fairscale", "huggingface_hub", "lmdb", "spacy", "torchvision",
        "transformers",
    )  # fmt: skip

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        known = fullname.partition(".")[0] in self.packages
        return ModuleSpec(fullname, self, is_package=True) if known else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


sys.meta_path.append(_StandIns())  # last: what is installed is used
from allennlp.modules import elmo as allennlp_elmo  # noqa: E402
from allennlp.modules import elmo_lstm  # noqa: E402

# Files are local here: a name stands for itself.
allennlp_elmo.cached_path = elmo_lstm.cached_path = str

Batch = list[list[str]]
loaded: dict[str, Any] = {}


def load(options: str, weights: str) -> None:
    """Read a model; the one before it is forgotten."""
    loaded["files"] = options, weights
    loaded["elmo"] = allennlp_elmo.Elmo(options, weights, num_output_representations=1, dropout=0.0).eval()


@torch.no_grad()
def layers(batches: list[Batch], reset: bool, out: str) -> None:
    """Write all layers of every sentence, `<S>` and `</S>` included, as array "batch/row" (L+1, T+2, 2P).

    Args:
        batches: sentences of each call.
        reset: forget the carried state before each call, or before the first alone.
        out: an .npz file.
    """
    bilm = loaded["elmo"]._elmo_lstm
    arrays = {}
    for number, batch in enumerate(batches):
        if reset or number == 0:
            bilm._elmo_lstm.reset_states()
        activations = torch.stack(bilm(allennlp_elmo.batch_to_ids(batch))["activations"])  # (L+1, B, T+2, 2P)
        for row, sentence in enumerate(batch):
            arrays[f"{number}/{row}"] = activations[:, row, : len(sentence) + 2].numpy()
    np.savez(out, **arrays)


@torch.no_grad()
def mixed(batches: list[Batch], weights: list[float], gamma: float, layer_norm: bool, out: str) -> None:
    """Write the scalar mix of every sentence, without the boundaries, as array "batch/row" (T, 2P)."""
    model = allennlp_elmo.Elmo(
        *loaded["files"],
        num_output_representations=1,
        dropout=0.0,
        do_layer_norm=layer_norm,
        scalar_mix_parameters=weights,
    ).eval()
    model.scalar_mix_0.gamma.fill_(gamma)
    arrays = {}
    for number, batch in enumerate(batches):
        model._elmo_lstm._elmo_lstm.reset_states()
        vectors = model(allennlp_elmo.batch_to_ids(batch))["elmo_representations"][0]  # (B, T, 2P)
        for row, sentence in enumerate(batch):
            arrays[f"{number}/{row}"] = vectors[row, : len(sentence)].numpy()
    np.savez(out, **arrays)


def represent(calls: list[dict[str, Any]], settings: dict[str, Any], state: str, out: str) -> None:
    """Write what a new `Elmo` gives: "call/k" of mix k, "call/mask", and "gradient/name" of mix 0's sum.

    Args:
        calls: the `batches` of each, stacked if there are many, and `words`, their rows of the vocabulary or
            None. The state is carried from call to call.
        settings: arguments of `Elmo`.
        state: where to save its state dict.
        out: an .npz file.
    """
    model = allennlp_elmo.Elmo(*loaded["files"], **settings).eval()
    if "vocab_to_cache" not in settings:  # which was computed with the weights as they are
        for name, parameter in model.named_parameters():  # such that each is unlike the one in the file
            parameter.data.mul_(0.9).add_(0.01 * len(name) / 100)
    torch.save(model.state_dict(), state)
    arrays: dict[str, Any] = {}
    for number, call in enumerate(calls):
        ids = torch.stack([allennlp_elmo.batch_to_ids(batch) for batch in call["batches"]])  # (n, B, T, 50)
        words = None if call["words"] is None else torch.tensor(call["words"])
        output = model(ids if len(ids) > 1 else ids[0], words)
        arrays[f"{number}/mask"] = output["mask"].numpy()
        for mix, vectors in enumerate(output["elmo_representations"]):
            arrays[f"{number}/{mix}"] = vectors.detach().numpy()
        if settings.get("requires_grad"):
            model.zero_grad()
            output["elmo_representations"][0].sum().backward()
    if settings.get("requires_grad"):
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        arrays |= {f"gradient/{name}": gradient.numpy() for name, gradient in gradients.items()}
    np.savez(out, **arrays)


@torch.no_grad()
def embed(sentences: Batch, batch: int) -> dict[str, Any]:
    """Embed sentences in their order, `batch` at a time, and give the seconds of each batch."""
    groups = [sentences[start : start + batch] for start in range(0, len(sentences), batch)]
    return timed(lambda group: loaded["elmo"](allennlp_elmo.batch_to_ids(group)), groups)


def single(sentences: Batch) -> dict[str, Any]:
    """Embed the sentences one by one."""
    return embed(sentences, batch=1)


serve(load, layers, mixed, represent, embed, single, peak_megabytes)
