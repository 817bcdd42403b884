"""Without the libraries."""

import importlib
import subprocess
import sys

import pytest

from elmokit.errors import MissingExtra

EXTRAS = {
    "spacy": ("spacy", "spacy"),
    "transformers": ("transformers", "transformers"),
    "sentence_transformers": ("sentence_transformers", "sentence-transformers"),
    "sklearn": ("sklearn", "sklearn"),
    "flair": ("flair", "flair"),
    "ray": ("ray", "ray"),
    "dask": ("dask", "dask"),
    "spark": ("pyspark", "spark"),
}


@pytest.mark.parametrize("module", EXTRAS)
def test_the_install_line(module, monkeypatch):
    library, extra = EXTRAS[module]
    for name in [library, *(name for name in sys.modules if name.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"elmokit.integrations.{module}", raising=False)
    with pytest.raises(MissingExtra, match=rf"not installed; pip install 'elmokit\[{extra}\]'"):
        importlib.import_module(f"elmokit.integrations.{module}")


def test_none_is_imported_unasked():
    code = (
        "import sys, elmokit, elmokit.cli, elmokit.integrations; elmokit.load; "
        f"print([name for name in {[library for library, _ in EXTRAS.values()]} if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
