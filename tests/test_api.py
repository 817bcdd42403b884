"""Everything a user needs can be had from `elmokit` itself, and importing it costs next to nothing."""

import subprocess
import sys

import pytest

import elmokit


@pytest.mark.parametrize("name", elmokit.__all__)
def test_every_public_name_resolves(name):
    assert getattr(elmokit, name) is not None
    assert name in dir(elmokit)


def test_names_are_listed_once_and_sorted():
    errors = {name for name, value in vars(elmokit.errors).items() if isinstance(value, type)}
    lazy = [name for names in elmokit._ROOMS.values() for name in names.split()]
    assert sorted([*lazy, *errors]) == sorted(elmokit.__all__)


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'elmokit' has no attribute 'lode'"):
        elmokit.lode  # noqa: B018


def test_pretrain_is_a_room_and_a_function():
    from elmokit.pretraining import pretrain

    with pytest.raises(TypeError, match="pretrain") as by_room:
        elmokit.pretrain(nonsense=1)
    with pytest.raises(TypeError) as by_function:
        pretrain(nonsense=1)
    assert str(by_room.value) == str(by_function.value)


def test_import_is_light():
    check = (
        "import sys, elmokit; elmokit.ElmoError; dir(elmokit); "
        "assert not {'torch', 'numpy', 'h5py', 'rich', 'click'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], check=True, capture_output=True)
