"""Files with any byte changed or any end missing: they load, or an ElmoError says why not. Nothing else."""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elmokit import ElmoError
from elmokit.formats import load_model, save_model
from tests.tiny import WORDS, tiny_bundle, tiny_config, tiny_model, write_folder, write_zip

SMALL = tiny_config(
    filters=((1, 1),), embedding_dim=1, num_highway=0, cell_dim=2, projection_dim=2, num_layers=1
)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model in each format, and the contents of its files."""
    root = tmp_path_factory.mktemp("fuzz")
    save_model(tiny_bundle(tiny_model(SMALL), vocabulary=True, softmax=True), root / "native")
    write_folder(root / "hdf5", SMALL, vocabulary=WORDS, softmax=True)
    write_zip(root / "model.zip", root / "hdf5")
    files = [*(root / "native").iterdir(), *(root / "hdf5").iterdir(), root / "model.zip"]
    return root, {path: path.read_bytes() for path in files}


def load_all(path):
    bundle = load_model(path)
    if bundle.softmax is not None:
        bundle.softmax.read()


# Most of an HDF5 file is numbers; what describes them stands at the beginning.
PLACES = st.integers(0, 3000) | st.integers(0, 40_000)
CHANGES = st.lists(st.tuples(PLACES, st.integers(0, 255)), max_size=5)


@settings(max_examples=150)
@given(name=st.sampled_from(["native", "hdf5", "model.zip"]), data=st.data())
def test_any_damage_is_told(models, name, data):
    root, contents = models
    mine = sorted(path for path in contents if root / name in (path, path.parent))
    path = data.draw(st.sampled_from(mine))
    changed = bytearray(contents[path])
    for place, byte in data.draw(CHANGES):
        changed[place % len(changed)] = byte
    if data.draw(st.booleans()):
        changed = changed[: data.draw(st.integers(0, len(changed)))]
    path.write_bytes(changed)
    try:
        with suppress(ElmoError):  # whatever else is raised fails the test
            load_all(root / name)
    finally:
        path.write_bytes(contents[path])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def places(data, path=()):
    """Where in a JSON document something stands."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


@settings(max_examples=150)
@given(name=st.sampled_from(["native/config.json", "hdf5/options.json"]), value=JSON, data=st.data())
@example(name="native/config.json", value={}, data=None)
def test_any_setting_may_be_anything(models, name, value, data):
    root, contents = models
    path = root / name
    document = {"": json.loads(contents[path])}
    *above, key = data.draw(st.sampled_from(list(places(document))[1:])) if data else ("",)
    holder = document
    for step in above:
        holder = holder[step]
    holder[key] = value
    path.write_text(json.dumps(document[""]))
    try:
        with suppress(ElmoError):
            load_all(path)
    finally:
        path.write_bytes(contents[path])
