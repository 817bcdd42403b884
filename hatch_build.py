"""Compile the native kernel: hatchling's build hook, and a script for developers.

    python hatch_build.py [--sanitize] [OUTPUT]

The hook compiles when there is a C++17 compiler ($CXX, c++, g++ or clang++) for x86-64 Linux or macOS, also
for editable installs. Otherwise, or with ELMOKIT_NO_NATIVE set, the wheel is pure Python
and elmokit uses torch.
"""

import argparse
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script
    BuildHookInterface = object

SOURCES = Path(__file__).parent / "src" / "elmokit" / "kernels" / "native"
LIBRARY = "libelmokit_native.so"

AVX2 = ["-mavx2", "-mfma"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"]
AVX512 += ["-Wno-maybe-uninitialized", "-Wno-uninitialized"]  # false alarms in GCC's own header, bug 105593
# Each file is compiled for its own instruction set; the library chooses among them at run time.
FLAGS = {
    "library": [],
    "avx2": AVX2,
    "avxvnni": [*AVX2, "-mavxvnni"],
    "avx512": AVX512,
    "avx512vnni": [*AVX512, "-mavx512vnni"],
    "avx512bf16": [*AVX512, "-mavx512bf16"],
}
COMMON = ["-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-Wall", "-Wextra"]
# A product is fused with a sum only where the source says so: results must not depend on the number of rows.
COMMON += ["-ffp-contract=off"]
# Without it the library would need a newer C++ library than manylinux_2_17 promises.
COMMON += ["-fno-sized-deallocation"]
# GCC would keep constants of later steps in registers that the inner loop needs. clang has no such pass.
COMMON += ["-fno-gcse", "-Wno-ignored-optimization-argument", "-Wno-unknown-warning-option"]
SANITIZE = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


class CompileError(RuntimeError):
    """The kernel cannot be compiled here."""


def compile_native(output: Path, *, sanitize: bool = False, strict: bool = False) -> None:
    """Compile the library to `output`.

    Args:
        output: File to write.
        sanitize: With AddressSanitizer and UndefinedBehaviorSanitizer.
        strict: Treat warnings as errors.

    Raises:
        CompileError: It did not work, with the reason.
    """
    compiler = _find_compiler()
    flags = COMMON + (["-Werror"] if strict else []) + (SANITIZE if sanitize else [])
    with TemporaryDirectory() as folder:

        def compile_one(name: str) -> str:
            target = str(Path(folder) / f"{name}.o")
            _run([*compiler, *flags, *FLAGS[name], "-c", str(SOURCES / f"{name}.cpp"), "-o", target])
            return target

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compile_one, FLAGS))
        output.parent.mkdir(parents=True, exist_ok=True)
        draft = output.with_name(f".{os.getpid()}-{output.name}")
        try:
            _run([*compiler, *flags, "-shared", *objects, "-o", str(draft)])
            draft.replace(output)  # a process that has loaded the old one keeps it
        finally:
            draft.unlink(missing_ok=True)


def _find_compiler() -> list[str]:
    if platform.machine().lower() not in ("x86_64", "amd64") or os.name != "posix":
        raise CompileError(f"it is written for x86-64 Linux and macOS, this is {platform.platform()}")
    found = os.environ.get("CXX") or next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if found is None:
        raise CompileError("no C++ compiler (c++, g++ or clang++) was found")
    return shlex.split(found)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise CompileError(f"{command[0]} cannot be run: {error}") from error
    if done.returncode:
        raise CompileError(f"{' '.join(command)} failed:\n{done.stderr}")


def platform_tag(library: Path) -> str:
    """Return the tag of the systems that can load the library: on Linux manylinux, by the glibc it needs."""
    if platform.libc_ver()[0] != "glibc":
        return re.sub(r"[-.]", "_", sysconfig.get_platform())
    versions = re.findall(rb"GLIBC_2\.(\d+)", library.read_bytes())
    return f"manylinux_2_{max(17, *map(int, versions))}_{platform.machine()}"


class CustomBuildHook(BuildHookInterface):
    """Add the compiled kernel to the wheel, or to the sources of an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is put together."""
        if os.environ.get("ELMOKIT_NO_NATIVE"):
            return
        editable = version == "editable"
        library = (SOURCES if editable else Path(self.root) / "build" / "native") / LIBRARY
        try:
            compile_native(library)
        except CompileError as error:
            self.app.display_warning(f"no native kernel, torch does its work: {error}")
            return
        if editable:
            return
        build_data["force_include"][str(library)] = f"elmokit/kernels/native/{LIBRARY}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(library)}"


def main() -> None:
    """Compile by hand, with warnings as errors."""
    parser = argparse.ArgumentParser(description="Compile the native kernel.")
    parser.add_argument("output", nargs="?", type=Path, default=SOURCES / LIBRARY)
    parser.add_argument("--sanitize", action="store_true", help="find invalid reads and undefined behaviour")
    options = parser.parse_args()
    try:
        compile_native(options.output, sanitize=options.sanitize, strict=True)
    except CompileError as error:
        sys.exit(f"no native kernel: {error}")


if __name__ == "__main__":
    main()
