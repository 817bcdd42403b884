"""What all tests of pretraining share."""

import pytest

from tests.small_runs import prepare, sentences


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("pretrain"), sentences(200), heldout=sentences(20, seed=1))
