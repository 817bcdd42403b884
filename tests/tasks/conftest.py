import pytest
import torch

from elmokit.encoders import ElmoEncoder
from elmokit.tasks.classifier import LabelledText
from elmokit.tasks.intent.data import IntentText
from elmokit.tasks.tagger import TaggedText
from tests.task_data import WRITERS, quick_settings, sentences
from tests.tiny import WORDS, write_folder


@pytest.fixture(scope="session")
def elmo(tmp_path_factory):
    """The folder of a tiny model."""
    return str(write_folder(tmp_path_factory.mktemp("models") / "tiny", vocabulary=WORDS))


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Data of all tasks, by the task; train and dev are the same, so that dev can be learnt."""
    root = tmp_path_factory.mktemp("data")
    for task, write in WRITERS.items():
        (root / task).mkdir()
        for part in ("train", "dev"):
            write(root / task, part)
    return {task: root / task for task in WRITERS}


@pytest.fixture
def quick():
    """Those of a tagger."""
    return quick_settings("tagger")


@pytest.fixture
def tiny_encoder(elmo):
    """The tiny model, opened."""
    return ElmoEncoder.open(elmo)


@pytest.fixture
def examples():
    """The sentences as examples with tags and labels."""
    return [
        IntentText(TaggedText(tuple(words), tuple(tags), "made"), LabelledText(tuple(words), (verb,), "made"))
        for words, tags, verb in sentences()
    ]


@pytest.fixture(autouse=True)
def _same_random_numbers():
    torch.manual_seed(0)
