"""How fast training is: our loop against the same model written plainly, and against the machine's peak.

    python benchmarks/pretrain.py

* native: `elmokit.pretrain`, as `elmokit pretrain` runs it: reading, gradients, clipping, update.
* torch: the same without the native kernel, which is what elmokit 0.1 does.
* plain: torch's own `nn.LSTM(proj_size=…)`, the character CNN on every token, the same sampled softmax,
  autograd, `torch.optim.AdamW` on all parameters; float32, as one would write it from the paper. (It has no
  clipping of cells, which `nn.LSTM` does not know.)
* peak: products alone, at the best rate that a matrix product reaches on this machine in the same run.

All train on the same windows of English Wikipedia, in turns, each in a process of its own.
"""

import argparse
import itertools
import json
import lzma
import multiprocessing
import os
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional

from common import data_file, gemm_peaks, machine
from elmokit.corpus import PreparedCorpus, PrepareSettings, prepare_corpus
from elmokit.kernels import PairOfThreads, keep_freed_memory
from elmokit.model import BiLM, BiLMConfig, CharCNNConfig
from elmokit.pretraining.bilm.bilm_optimizer import Optimizer
from elmokit.pretraining.bilm.network import TrainingNetwork
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.bilm.softmax_training import SoftmaxTable, draw_log_uniform, log_expected_count
from elmokit.pretraining.bilm.windows import Window, Windows
from elmokit.text import default_spec

FILTERS = ((1, 16), (2, 32), (3, 64), (4, 100), (5, 150), (6, 150))
CONFIG = BiLMConfig(
    encoder=CharCNNConfig(filters=FILTERS, embedding_dim=16, num_highway=1),
    cell_dim=1024,
    projection_dim=128,
    num_layers=2,
    cell_clip=3.0,
    projection_clip=3.0,
    skip_connections=True,
)
RATE = 1e-3


def recipe(batch: int) -> Recipe:
    """Batch × 20 tokens, 4,096 negatives."""
    return Recipe(model=CONFIG, batch=batch, unroll=20, negatives=4096, learning_rate=RATE)


class Native:
    """A step of our loop."""

    def __init__(self, corpus: PreparedCorpus, batch: int) -> None:
        self._memory = keep_freed_memory()
        self._memory.__enter__()  # until the process ends
        torch.set_flush_denormal(True)
        settings, random = recipe(batch), torch.Generator().manual_seed(0)
        self.model, table = BiLM(CONFIG), SoftmaxTable(len(corpus.vocabulary), CONFIG.projection_dim)
        self.model.reset_parameters(random)
        table.start(corpus.counts, random)
        to_inputs = CONFIG.encoder.inputs(corpus.vocabulary, None)
        threads = PairOfThreads(torch.device("cpu"))
        self.network = TrainingNetwork(
            self.model,
            table,
            settings,
            lambda types: to_inputs(corpus.spellings(types)),
            threads=threads,
            precision=os.environ["PRECISION"],
        )
        self.optimizer = Optimizer(self.model, table, settings, threads)
        self.state = self.model.start(batch)

    def step(self, window: Window, number: int) -> float:
        """One step; its loss."""
        result = self.network.step(window, self.state, number)
        self.optimizer.step(result.table, RATE)
        self.state = result.state
        return (result.forward + result.backward) / 2


class Torch(Native):
    """The same without the native kernel."""


class Plain(nn.Module):
    """The same model, written plainly."""

    def __init__(self, corpus: PreparedCorpus, batch: int) -> None:
        super().__init__()
        dim = CONFIG.projection_dim
        self.to_inputs, self.corpus = CONFIG.encoder.inputs(corpus.vocabulary, None), corpus
        self.characters = nn.Embedding(261, 16)
        self.convolutions = nn.ModuleList(nn.Conv1d(16, number, width) for width, number in FILTERS)
        self.gate, self.transform = nn.Linear(512, 512), nn.Linear(512, 512)
        self.projection = nn.Linear(512, dim)
        self.lstms = nn.ModuleList(nn.LSTM(dim, 1024, proj_size=dim) for _ in range(4))
        self.weight = nn.Parameter(torch.randn(len(corpus.vocabulary), dim) * dim**-0.5)
        self.bias = nn.Parameter(torch.zeros(len(corpus.vocabulary)))
        self.states: list[tuple[Tensor, Tensor] | None] = [None] * 4
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=RATE)
        self.random = torch.Generator().manual_seed(0)

    def encode(self, types: Tensor) -> Tensor:
        """(T, B) → (T, B, P), every token by itself."""
        ids, _ = self.to_inputs(self.corpus.spellings(types.flatten().numpy()))
        x = self.characters(ids).transpose(1, 2)  # (TB, 16, 50)
        maxima = [convolution(x).amax(-1) for convolution in self.convolutions]
        x = functional.relu(torch.cat(maxima, dim=-1))
        x = torch.lerp(x, functional.relu(self.transform(x)), torch.sigmoid(self.gate(x)))
        return self.projection(x).view(*types.shape, -1)

    def loss(self, types: Tensor, targets: Tensor, direction: int) -> Tensor:
        """Sampled softmax of one direction."""
        x = functional.dropout(self.encode(types), 0.1)
        for layer in range(2):
            number = 2 * direction + layer
            out, (hidden, cell) = self.lstms[number](x, self.states[number])
            self.states[number] = (hidden.detach(), cell.detach())
            x = functional.dropout(out if layer == 0 else out + x, 0.1)
        hidden, targets = x.flatten(0, 1), targets.flatten()
        targets = targets.masked_fill(targets >= len(self.weight), 2)
        drawn, tries = draw_log_uniform(len(self.weight), 4096, self.random)
        logits = (
            hidden @ self.weight[drawn].T
            + self.bias[drawn]
            - log_expected_count(drawn, len(self.weight), tries)
        )
        logits = logits.masked_fill(drawn == targets[:, None], -torch.inf)
        own = (hidden * self.weight[targets]).sum(1) + self.bias[targets]
        own = own - log_expected_count(targets, len(self.weight), tries)
        return functional.cross_entropy(
            torch.cat([own[:, None], logits], dim=1), torch.zeros(len(own), dtype=torch.long)
        )

    def step(self, window: Window, number: int) -> float:
        """One step; its loss."""
        types, targets = torch.from_numpy(window.types[window.inputs]), torch.from_numpy(window.targets)
        loss = sum(self.loss(types[d], targets[d], d) for d in range(2)) / 2
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


def worker(connection: Connection, kind: type[Native] | type[Plain], folder: str, batch: int) -> None:
    """Do as many steps as asked for, and answer with the seconds of each; 0 ends it."""
    os.environ["ELMOKIT_KERNEL"] = "torch" if kind is Torch else ""
    corpus = PreparedCorpus(folder)
    system = kind(corpus, batch)
    windows = Windows(corpus.train, rows=batch, steps=20, order="document", seed=0)
    numbers = itertools.count()
    while steps := connection.recv():
        seconds = []
        for number in itertools.islice(numbers, steps):
            start = time.perf_counter()
            system.step(windows(number), number)
            seconds.append(time.perf_counter() - start)
        connection.send(seconds)


def flop_per_token(corpus: PreparedCorpus, batch: int) -> float:
    """Additions and products of one token in both directions, forward and back (3 × forward)."""
    cell, dim = CONFIG.cell_dim, CONFIG.projection_dim
    lstm = 2 * CONFIG.num_layers * 2 * (9 * cell * dim)
    softmax = 2 * 2 * 4096 * dim
    windows = Windows(corpus.train, rows=batch, steps=20, order="document", seed=0)
    types = median(len(windows(step).types) for step in range(5)) / (batch * 20)  # each goes through once
    filters = sum(number for _, number in FILTERS)
    return 3 * (lstm + softmax + types * 2 * (2 * filters * filters + filters * dim))


def wikipedia(folder: Path, characters: int) -> PreparedCorpus:
    """The beginning of the English text, prepared."""
    path = data_file("lm/en-wikipedia.txt.xz", "English Wikipedia prose, a paragraph a line")
    with lzma.open(path, "rt", encoding="utf-8") as source:
        (folder / "text.txt").write_text(source.read(characters), encoding="utf-8")
    settings = PrepareSettings(tokenizer=default_spec("en"), min_count=1, max_vocabulary=60_000)
    return prepare_corpus([folder / "text.txt"], folder / "corpus", settings)


def ratio(rates: dict[str, list[float]], one: str, other: str) -> float:
    """The median over the rounds."""
    return round(median(a / b for a, b in zip(rates[one], rates[other], strict=True)), 2)


def main() -> None:
    """Measure, print, and write benchmarks/results/pretrain.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=4, help="of each system in a round")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    arguments = parser.parse_args()
    os.environ["PRECISION"] = arguments.precision
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        corpus = wikipedia(Path(folder), 20_000_000)
        flop = flop_per_token(corpus, arguments.batch)
        connections = {}
        for kind in (Native, Torch, Plain):
            ours, theirs = context.Pipe()
            context.Process(
                target=worker, args=(theirs, kind, str(corpus.path), arguments.batch), daemon=True
            ).start()
            ours.send(2)  # to warm up
            ours.recv()
            connections[kind.__name__] = ours
        rates: dict[str, list[float]] = {name: [] for name in connections}
        peaks = []
        for _ in range(arguments.rounds):
            peaks.append(max(gemm_peaks()["float32"].values()))
            for name, connection in connections.items():
                connection.send(arguments.steps)
                rates[name].append(arguments.batch * 20 / median(connection.recv()))
        for connection in connections.values():
            connection.send(0)
    possible = [peak * 1e9 / flop for peak in peaks]
    result = {
        "machine": machine(),
        "batch": f"{arguments.batch} × 20",
        "MFLOP per token": round(flop / 1e6, 1),
        "GEMM peak, GFLOP/s": [round(peak) for peak in peaks],
        "tokens/s": {name: [round(rate) for rate in values] for name, values in rates.items()},
        "precision": arguments.precision,
        "native ÷ torch": ratio(rates, "Native", "Torch"),
        "native ÷ plain": ratio(rates, "Native", "Plain"),
        "share of the peak": round(median(a / b for a, b in zip(rates["Native"], possible, strict=True)), 3),
    }
    text = json.dumps(result, indent=2)
    print(text)
    (Path(__file__).parent / "results" / "pretrain.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
