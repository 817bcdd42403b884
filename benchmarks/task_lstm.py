"""The task's LSTM against torch's own over the same packed batches: a step forward and back, on one thread.

python benchmarks/task_lstm.py

Writes benchmarks/results/task_lstm.md.
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from common import RESULTS, machine, markdown_table
from elmokit.kernels.lstm_training import bidirectional_lstm
from elmokit.model import Packing

_SENTENCES, _INPUT, _CELLS, _ROUNDS = 32, 228, 200, 3


def by_torch(lstm: nn.LSTM, x: Tensor, packing: Packing) -> Tensor:
    """What `nn.LSTM` gives for a packed batch, tokens in the order of the text."""
    packed = PackedSequence(x[packing.index[0]], torch.tensor(packing.step_sizes))
    return lstm(packed)[0].data[packing.inverse[0]]


def seconds(run: Callable[[nn.LSTM, Tensor, Packing], Tensor], lengths: Tensor) -> float:
    """The median time of a step forward and back over sentences of these lengths."""
    lstm = nn.LSTM(_INPUT, _CELLS, bidirectional=True)
    x = torch.randn(int(lengths.sum()), _INPUT, requires_grad=True)
    packing = Packing.of(lengths)
    taken = []
    for _ in range(1 + _ROUNDS):
        began = time.perf_counter()
        run(lstm, x, packing).sum().backward()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])


def main() -> None:
    """Both, for batches of ever longer sentences."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rows = []
    for longest in (20, 60, 120, 240):
        lengths = torch.linspace(0.8 * longest, longest, _SENTENCES).long()
        theirs, ours = seconds(by_torch, lengths), seconds(bidirectional_lstm, lengths)
        tokens = int(lengths.sum())
        rows.append([longest, tokens, tokens / theirs, tokens / ours, theirs / ours])
    header = ["longest sentence", "tokens of the batch", "torch, tokens/s", "elmokit, tokens/s", "ratio"]
    facts = ", ".join(f"{name} {value}" for name, value in machine().items() if name != "instructions")
    table = markdown_table(header, rows)
    text = (
        f"# The task's LSTM against torch's own\n\n{_SENTENCES} sentences, one thread. {facts}.\n\n{table}\n"
    )
    (RESULTS / "task_lstm.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
