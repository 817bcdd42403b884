"""What a linear probe finds of the parts of speech in each layer: trained on train, accuracy on dev.

    ELMOKIT_DATA=… python benchmarks/layers.py MODEL [--task gsd-zh] [--words 100000]

The probe is a multinomial logistic regression on standardised vectors. English words are given to the model
as they are; a Chinese word is the mean of the pieces that the model's tokenizer makes of it.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

import elmokit
from common import data_file, markdown_table, model_parser, percent, report
from elmokit.base import progress_display
from elmokit.tasks.tagger import TaggedText, TaggerTask
from elmokit.text import make_word_tokenizer

SEED = 0
AIM = 3.0  # points by which the first LSTM layer is to exceed the token layer
AT_ONCE = 512  # sentences whose vectors are all in memory
EPOCHS, BATCH, RATE, DECAY = 20, 512, 0.02, 0.01  # 0.4 points below L-BFGS at 30,000 words


@dataclass(frozen=True)
class Task:
    """Where a treebank lies, and whether its words are cut as the model's tokenizer does."""

    train: str
    dev: str
    source: str
    cut: bool = False


TASKS = {
    "ewt": Task(
        "tasks/pos-ewt/en_ewt-ud-train.conllu.xz", "tasks/pos-ewt/en_ewt-ud-dev.conllu.xz", "UD_English-EWT"
    ),
    "gsd-zh": Task(
        "tasks/pos-gsd-zh/train.conllu.xz", "tasks/pos-gsd-zh/dev.conllu", "UD_Chinese-GSD", cut=True
    ),
}


def read(path: Path, words: int | None = None) -> list[TaggedText]:
    """The sentences of a treebank; or some of them, drawn once for all, with no more than so many words."""
    examples = TaggerTask.formats.read(path, tokenize=str.split)
    if words is None:
        return examples
    random.Random(SEED).shuffle(examples)
    kept, room = [], words
    for example in examples:
        room -= len(example.tokens)
        if room < 0:
            break
        kept.append(example)
    return kept


def word_vectors(
    elmo: elmokit.Embedder,
    examples: list[TaggedText],
    cut: Callable[[str], list[str]],
    advance: Callable[..., None],
) -> Tensor:
    """The vectors of all words, (layers, words, D), each the mean of the word's pieces."""
    found = []
    for start in range(0, len(examples), AT_ONCE):
        words = [
            [cut(word) or [word] for word in example.tokens] for example in examples[start : start + AT_ONCE]
        ]
        pieces = elmo.embed([list(chain.from_iterable(sentence)) for sentence in words])
        layers = torch.cat([sentence.to_torch() for sentence in pieces], dim=1)  # (L+1, pieces, D)
        counts = torch.tensor([len(word) for sentence in words for word in sentence])  # (words,)
        owner = torch.arange(len(counts)).repeat_interleave(counts)  # (pieces,)
        sums = layers.new_zeros(len(layers), len(counts), elmo.dim).index_add(1, owner, layers)
        found.append(sums / counts[:, None])
        advance(len(words))
    return torch.cat(found, dim=1)


def probe(train: Tensor, train_tags: Tensor, dev: Tensor, dev_tags: Tensor) -> float:
    """Accuracy on dev (words, D) of a logistic regression that was trained on train (words, D)."""
    deviation, mean = torch.std_mean(train, dim=0)
    train, dev = ((part - mean) / deviation.clamp(min=1e-6) for part in (train, dev))
    generator = torch.Generator().manual_seed(SEED)
    weight = torch.zeros(int(train_tags.max()) + 1, train.shape[1], requires_grad=True)  # (K, D)
    bias = torch.zeros(len(weight), requires_grad=True)  # (K,)
    optimizer = torch.optim.AdamW([weight, bias], lr=RATE, weight_decay=DECAY)
    steps = EPOCHS * -(-len(train) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(train), generator=generator).split(BATCH):
            loss = functional.cross_entropy(functional.linear(train[rows], weight, bias), train_tags[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        decided = functional.linear(dev, weight, bias).argmax(dim=1)  # (words,)
    return float((decided == dev_tags).float().mean())


def main() -> None:
    """Measure, print, write."""
    parser = model_parser(__doc__)
    parser.add_argument("--task", choices=TASKS, default="ewt")
    parser.add_argument(
        "--words", type=int, default=100_000, help="at most so many for training; default %(default)s"
    )
    arguments = parser.parse_args()
    task = TASKS[arguments.task]
    elmo = elmokit.load(arguments.model, precision=arguments.precision)
    parts = [
        read(data_file(task.train, task.source), arguments.words),
        read(data_file(task.dev, task.source)),
    ]
    known = sorted({tag for example in parts[0] for tag in example.tags})
    # A tag that train does not have can only be an error.
    tags = [
        torch.tensor([known.index(tag) if tag in known else -1 for example in part for tag in example.tags])
        for part in parts
    ]
    cut = make_word_tokenizer(elmo.tokenizer_spec) if task.cut else lambda word: [word]
    with progress_display(shown=True) as start:
        advance = start("embedding", sum(map(len, parts)))
        train, dev = (word_vectors(elmo, part, cut, advance) for part in parts)
        names = [*(f"layer {number}" for number in range(len(train))), "mean"]
        advance = start("probes", len(names))
        accuracies = {}
        for place, name in enumerate(names):
            vectors = [part.mean(dim=0) if name == "mean" else part[place] for part in (train, dev)]
            accuracies[name] = percent(probe(vectors[0], tags[0], vectors[1], tags[1]))
            advance()

    gain = round(accuracies["layer 1"] - accuracies["layer 0"], 2)
    verdict = (
        f"layer 1 - layer 0 = {gain:+.2f} points, {'at least' if gain >= AIM else 'NOT'} the {AIM:g} aimed at"
    )
    rows = [[name, f"{accuracy:.2f}"] for name, accuracy in accuracies.items()]
    counts = {"train words": len(tags[0]), "dev words": len(tags[1])}
    text = f"{markdown_table([f'{task.source}, UPOS', 'dev accuracy, %'], rows)}\n\n{counts}\n{verdict}"
    settings = {"seed": SEED, "epochs": EPOCHS, "batch": BATCH, "rate": RATE, "decay": DECAY}
    result = {
        "data": task.source,
        **counts,
        "probe": settings,
        "accuracy": accuracies,
        "layer 1 - layer 0": gain,
    }
    report("layers", arguments, text, result, suffix=f"-{arguments.task}")


if __name__ == "__main__":
    main()
