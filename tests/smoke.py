"""Install each wheel of a folder into an empty environment and use it there, far from the repository.

    python tests/smoke.py dist

`make dist` runs it. torch is installed first and in the version of constraints.txt.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"
SCRIPT = """
import importlib.metadata, pathlib, elmokit

assert "site-packages" in elmokit.__file__, elmokit.__file__
assert elmokit.__version__ == importlib.metadata.version("elmokit")
assert elmokit.bundled_names() == ["en", "zh"], elmokit.bundled_names()
for name, text in (("en", "The bank raised its rates."), ("zh", "银行提高了利率。")):
    assert elmokit.load(name).embed(text).layers.shape[::2] == (3, 384)
assert {"ner-en", "ner-zh", "roles-en"} <= set(elmokit.bundled_task_names()), elmokit.bundled_task_names()
for name in elmokit.bundled_task_names():
    assert str(elmokit.load_task(name).predict("The bank raised its rates.")), name
assert (pathlib.Path(elmokit.__file__).parent / "py.typed").exists()
print("elmokit", elmokit.__version__, "works from its wheel")
"""


def main() -> None:
    """Install and use the wheels; any failure ends this with an error."""
    wheels = list(Path(sys.argv[1]).resolve().glob("*.whl"))
    assert any(wheel.name.endswith("-none-any.whl") for wheel in wheels), wheels
    for wheel in wheels:
        check(wheel)


def check(wheel: Path) -> None:
    """Install and use one wheel."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    with TemporaryDirectory() as folder:
        venv.create(f"{folder}/venv", with_pip=True)
        bin = Path(folder) / "venv" / ("Scripts" if os.name == "nt" else "bin")

        def run(program: str, *arguments: str) -> None:
            command = [str(bin / program), *arguments]
            subprocess.run(command, check=True, cwd=folder, env=environment)

        torch = next(line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("torch=="))
        run("python", "-m", "pip", "install", "--quiet", torch)
        run("python", "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS), str(wheel))
        run("python", "-c", SCRIPT)
        pure = wheel.name.endswith("-none-any.whl")
        run("python", "-c", f"import elmokit; assert (elmokit.load('en').engine == 'torch') == {pure}")
        (Path(folder) / "text.txt").write_text("The bank raised its rates.\n", encoding="utf-8")
        run("elmokit", "embed", "text.txt", "-o", "vectors.h5")
        run("elmokit", "predict", "-m", "ner-en", "text.txt")
        run("elmokit", "info", "ner-en")
        run("elmokit", "--version")
        assert (Path(folder) / "vectors.h5").stat().st_size > 0


if __name__ == "__main__":
    main()
