import pytest
import torch

from elmokit.encoders import ElmoEncoder
from elmokit.tasks import Settings
from elmokit.tasks.dataset import TaskData
from elmokit.tasks.examples import Example
from tests.tiny import WORDS, write_folder

PEOPLE, PLACES, VERBS = (
    ("Ada", "Alan", "Grace Hopper"),
    ("Paris", "Rome", "New York"),
    ("saw", "left", "likes"),
)


def sentences():
    """All ways to say that someone did something to some place: (words, BIO tags, what was done)."""
    for person in PEOPLE:
        for verb in VERBS:
            for place in PLACES:
                words, tags = [], []
                for text, kind in ((person, "PER"), (verb, None), (place, "LOC"), (".", None)):
                    for number, word in enumerate(text.split()):
                        words.append(word)
                        tags.append("O" if kind is None else f"{'I' if number else 'B'}-{kind}")
                yield words, tags, verb


@pytest.fixture(scope="session")
def elmo(tmp_path_factory):
    """The folder of a tiny model."""
    return str(write_folder(tmp_path_factory.mktemp("models") / "tiny", vocabulary=WORDS))


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Data of all three tasks, by the task; train and dev are the same, so that dev can be learnt."""
    root = tmp_path_factory.mktemp("data")
    for part in ("train", "dev"):
        (root / "tagger").mkdir(exist_ok=True)
        blocks = ("\n".join(map("\t".join, zip(w, t, strict=True))) for w, t, _ in sentences())
        (root / "tagger" / f"{part}.txt").write_text("\n\n".join(blocks) + "\n")
        (root / "classifier").mkdir(exist_ok=True)
        rows = [f"{verb}\t{' '.join(words)}" for words, _, verb in sentences()]
        (root / "classifier" / f"{part}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
        intent = root / "intent" / part
        intent.mkdir(parents=True)
        for name, lines in (
            ("seq.in", [" ".join(words) for words, _, _ in sentences()]),
            ("seq.out", [" ".join(tags) for _, tags, _ in sentences()]),
            ("label", [verb for _, _, verb in sentences()]),
        ):
            (intent / name).write_text("\n".join(lines) + "\n")
    return {task: root / task for task in ("tagger", "classifier", "intent")}


@pytest.fixture
def quick():
    """Settings that learn little data by heart in a second."""
    return Settings().changed(
        [
            "head.rnn=16",
            "head.dropout=0",
            "encoder.dropout=0",
            "training.learning_rate=0.02",
            "training.epochs=12",
            "training.patience=12",
            "training.batch=9",
            "training.least_steps=1",
        ]
    )


@pytest.fixture
def tiny_encoder(elmo):
    """The tiny model, opened."""
    return ElmoEncoder.open(elmo)


@pytest.fixture
def examples():
    """The sentences as examples with all labels."""
    return [
        Example(tuple(words), tuple(tags), (verb,), f"made, line {number}")
        for number, (words, tags, verb) in enumerate(sentences(), start=1)
    ]


@pytest.fixture
def data(examples):
    """The examples as training and dev data."""
    return TaskData(examples, examples)


@pytest.fixture(autouse=True)
def _same_random_numbers():
    torch.manual_seed(0)
