"""How fast BERT is trained: our job against transformers' Trainer on the same model, and against the peak.

    python benchmarks/pretrain_bert.py          (the Trainer needs: pip install accelerate)

Both train `mini` on the same rows of English Wikipedia, 64 × 128 pieces with next-sentence prediction, in the
same precision (bfloat16 where it is native), in turns. The Trainer gets the rows ready made, with the labels
of the places to predict; `BertForPreTraining` then predicts at all places, and ignores most.

Useful arithmetic is that of the products which training needs: the layers for every piece, attention within
each sequence, the vocabulary at the places to predict; forward and twice that backward.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn
from torch.utils.data import Dataset

from common import gemm_peaks, machine
from elmokit.kernels import keep_freed_memory, training_precision
from elmokit.pretraining.bert.bert_job import BertJob
from elmokit.pretraining.bert.bert_recipe import BertRecipe
from elmokit.pretraining.bert.masked_network import new_bert
from elmokit.pretraining.bert.packed_rows import PackedRows, RowBatch
from elmokit.pretraining.bert.word_pieces import CONTINUES, PieceText, train_pieces, write_pieces
from pretrain import wikipedia

RATE = 1e-3


class Rows(Dataset):
    """Rows as the Trainer takes them: a sequence each, labels at the places to predict."""

    def __init__(self, batches: list[RowBatch]) -> None:
        self.items: list[dict[str, Any]] = []
        for batch in batches:
            labels = np.full(batch.ids.shape, -100)
            labels.flat[batch.masked] = batch.targets
            for row in range(len(batch.ids)):
                self.items.append(
                    {
                        "input_ids": torch.from_numpy(batch.ids[row]),
                        "token_type_ids": torch.from_numpy(batch.parts[row]),
                        "labels": torch.from_numpy(labels[row]),
                        "next_sentence_label": row % 2,
                    }
                )

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self.items[number]


class Clock(transformers.TrainerCallback):
    """The seconds of each step of the Trainer."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_step_begin(self, *_: object, **__: object) -> None:
        """Begin a step."""
        self._began = time.perf_counter()

    def on_step_end(self, *_: object, **__: object) -> None:
        """End it."""
        self.seconds.append(time.perf_counter() - self._began)


def useful_flop(batch: RowBatch, recipe: BertRecipe, pieces: int) -> float:
    """Of a step: see the head of this file."""
    shape, hidden = recipe.model, recipe.model.hidden
    layer = 4 * hidden * hidden + 2 * hidden * shape.inner
    used = batch.sequences >= 0
    squares = sum(float((np.bincount(row[row >= 0]).astype(float) ** 2).sum()) for row in batch.sequences)
    return (
        6 * int(used.sum()) * shape.layers * layer
        + 12 * squares * hidden * shape.layers
        + 6 * len(batch.masked) * hidden * (pieces + hidden)
    )


def trainer(
    recipe: BertRecipe, model: nn.Module, batches: list[RowBatch], precision: str, folder: str
) -> Clock:
    """Train with transformers' Trainer, a step for each batch."""
    clock = Clock()
    given = transformers.TrainingArguments(
        folder,
        per_device_train_batch_size=recipe.batch,
        max_steps=len(batches),
        learning_rate=RATE,
        use_cpu=True,
        bf16=precision == "bfloat16",
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    transformers.Trainer(model, given, train_dataset=Rows(batches), callbacks=[clock]).train()
    return clock


def main() -> None:
    """Measure, print, and write benchmarks/results/pretrain_bert.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2, help="of each system in a round, after one more")
    arguments = parser.parse_args()
    recipe, precision = BertRecipe(), training_precision()
    torch.set_flush_denormal(True)
    with tempfile.TemporaryDirectory() as folder, keep_freed_memory():
        corpus = wikipedia(Path(folder), 6_000_000)
        tokenizer = train_pieces(corpus, recipe.vocabulary)
        write_pieces(corpus, tokenizer, Path(folder) / "pieces")
        text, heldout = (PieceText.open(Path(folder) / "pieces" / name) for name in ("train", "heldout"))
        pieces = tokenizer.get_vocab_size()
        continues = np.array([tokenizer.id_to_token(n).startswith(CONTINUES) for n in range(pieces)])
        job = BertJob(new_bert(recipe, pieces), text, heldout, recipe, continues, precision=precision)
        rows = PackedRows(text, recipe, continues)
        peaks, ours, theirs, speedups = [], [], [], []
        step = 0
        for _ in range(arguments.rounds):
            peaks.append(max(gemm_peaks()[precision].values()))
            seconds = []
            for _ in range(arguments.steps + 1):
                began = time.perf_counter()
                job.compute(step)
                job.update(RATE)
                seconds.append(time.perf_counter() - began)
                step += 1
            batches = [rows(number) for number in range(step - len(seconds), step)]
            clock = trainer(recipe, new_bert(recipe, pieces), batches, precision, folder)
            tokens = recipe.batch * recipe.length
            ours.append(tokens / median(seconds[1:]))
            theirs.append(tokens / median(clock.seconds[1:]))
            speedups.append(ours[-1] / theirs[-1])
        flop = useful_flop(rows(step - 1), recipe, pieces)
    shares = [rate * flop / tokens / 1e9 / peak for rate, peak in zip(ours, peaks, strict=True)]
    result = {
        "machine": machine(),
        "transformers": transformers.__version__,
        "model": f"mini, {pieces:,} pieces, batch {recipe.batch} × {recipe.length}",
        "precision": precision,
        "useful MFLOP per piece": round(flop / tokens / 1e6, 1),
        "GEMM peak, GFLOP/s": [round(peak) for peak in peaks],
        "pieces/s": {"elmokit": [round(r) for r in ours], "Trainer": [round(r) for r in theirs]},
        "elmokit ÷ Trainer": round(median(speedups), 2),
        "share of the peak": round(median(shares), 3),
    }
    written = json.dumps(result, indent=2, ensure_ascii=False)
    print(written)
    (Path(__file__).parent / "results" / "pretrain_bert.json").write_text(written + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
