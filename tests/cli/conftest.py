import pytest
from click.testing import CliRunner

from elmokit.cli import main
from tests.tiny import WORDS, write_folder


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A folder with a tiny model in bilm-tf's layout."""
    return write_folder(tmp_path_factory.mktemp("models") / "tiny", vocabulary=WORDS, softmax=True)


@pytest.fixture
def run():
    """Run a command line and return what came of it."""

    def run(*arguments, **settings):
        return CliRunner().invoke(main, [str(argument) for argument in arguments], **settings)

    return run
