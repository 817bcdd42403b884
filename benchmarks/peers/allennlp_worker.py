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


@torch.no_grad()
def embed(sentences: Batch, batch: int) -> dict[str, Any]:
    """Embed sentences in their order, `batch` at a time, and give the seconds of each batch."""
    groups = [sentences[start : start + batch] for start in range(0, len(sentences), batch)]
    return timed(lambda group: loaded["elmo"](allennlp_elmo.batch_to_ids(group)), groups)


def single(sentences: Batch) -> dict[str, Any]:
    """Embed the sentences one by one."""
    return embed(sentences, batch=1)


serve(load, layers, mixed, embed, single, peak_megabytes)
