"""The rules of the house: how the rooms under src/elmokit import, name and write things.

import-linter checks the floors; these tests check the rest.
"""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "elmokit"
FILES = sorted(ROOT.rglob("*.py"))
LIBRARY = [path for path in FILES if path.relative_to(ROOT).parts[0] != "cli"]

# Rooms that consist of rooms: the front door of `elmokit.tasks.core` is that package.
DIVIDED = ("compat", "integrations", "pretraining", "tasks")
# Files that every task has.
OF_TASKS = ("data.py", "head.py", "prediction.py", "scores.py")
# Classes that old interfaces and other libraries name as we do.
OLD_NAMES = {"Batcher", "Elmo", "ElmoModel", "Embedder", "ScalarMix"}
# Modules that do not exist on Windows.
POSIX_ONLY = {"fcntl", "grp", "pwd", "resource", "termios", "tty"}
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")

LONGEST_FILE = 400
LONGEST_FUNCTION = 50


def name_of(path):
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path):
    return ast.parse(path.read_text("utf-8"))


def room_of(parts):
    return parts[:2] if parts[0] in DIVIDED else parts[:1]


def refuse(found):
    assert found == [], "breaks a rule of the house"


def imports_of(path):
    """Modules of elmokit that a file imports from, wherever in it, as parts below `elmokit`."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} has a relative import"
            modules = [node.module]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            if module.startswith("elmokit."):
                yield tuple(module.split(".")[1:])


def test_other_rooms_are_entered_by_the_front_door():
    found = []
    for path in FILES:
        own = room_of(path.relative_to(ROOT).with_suffix("").parts)
        for module in imports_of(path):
            if module[0] != own[0] and len(module) > len(room_of(module)):
                found.append(f"{name_of(path)} -> {'.'.join(module)}")
    refuse(found)


def test_a_file_name_occurs_once():
    places = defaultdict(list)
    for path in LIBRARY:
        of_task = path.relative_to(ROOT).parts[0] == "tasks" and path.name in OF_TASKS
        if path.name != "__init__.py" and not of_task:
            places[path.name].append(name_of(path))
    refuse([place for found in places.values() if len(found) > 1 for place in found])


def test_a_class_name_occurs_once():
    places = defaultdict(list)
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef) and node.name not in OLD_NAMES:
                places[node.name].append(f"{name_of(path)}: {node.name}")
    refuse([place for found in places.values() if len(found) > 1 for place in found])


def test_files_are_short():
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in FILES}
    refuse([name for name, length in lengths.items() if length > LONGEST_FILE])


def test_functions_are_short():
    found = []
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef):
                code = node.body[bool(ast.get_docstring(node)) :]  # without its signature
                if code and code[-1].end_lineno - code[0].lineno >= LONGEST_FUNCTION:
                    found.append(f"{name_of(path)}: {node.name}")
    refuse(found)


def writes(node):
    """Whether this renames, flushes, locks, or makes a temporary file."""
    if isinstance(node, ast.ImportFrom | ast.Import):
        modules = {getattr(node, "module", None), *(alias.name for alias in node.names)}
        return bool(modules & {"fcntl", "filelock", "msvcrt", "tempfile"})
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    owner, method, arguments = node.func.value, node.func.attr, len(node.args)
    if isinstance(owner, ast.Name) and owner.id in ("os", "shutil"):
        return method in ("fdatasync", "fsync", "move", "rename", "renames", "replace", "sync")
    # `replace` of a string has two arguments, that of a dataclass is no method.
    return method in ("rename", "replace") and arguments == 1 and not node.keywords


def test_only_base_renames_flushes_locks_and_makes_temporary_files():
    outside = [path for path in FILES if path.relative_to(ROOT).parts[0] != "base"]
    refuse([name_of(path) for path in outside if any(map(writes, ast.walk(tree_of(path))))])


def calls(name):
    """Every call of a function in the package: its file and its arguments."""
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
                yield path, node.args


def test_no_other_room_asks_what_kind_an_encoder_is():
    room = ROOT / "encoders"
    nodes = [node for path in room.glob("*.py") if path.name != "base.py" for node in ast.walk(tree_of(path))]
    kinds = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    assert {"ElmoEncoder", "StaticEncoder", "BertEncoder", "CachedEncoder"} <= kinds
    outside = [(path, arguments) for path, arguments in calls("isinstance") if room not in path.parents]
    refuse(
        [name_of(path) for path, (_, kind) in outside if kinds & set(re.findall(r"\w+", ast.unparse(kind)))]
    )


def test_the_global_random_state_is_seeded_in_one_place():
    seeding = ("torch.manual_seed", "torch.seed", "np.random.seed", "numpy.random.seed", "random.seed")
    places = {name_of(path) for name in seeding for path, _ in calls(name)}
    refuse(sorted(places - {"kernels/seeding.py"}))


def docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            yield node.body[0].value


def test_library_messages_name_no_command_line_flags():
    found = []
    for path in LIBRARY:
        ignored = set(docstrings(tree_of(path)))
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in ignored:
                found += [f"{name_of(path)}: {flag}" for flag in FLAG.findall(node.value)]
    refuse(found)


def test_nothing_is_imported_that_windows_lacks():
    found = []
    for path in FILES:
        for node in tree_of(path).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = {getattr(node, "module", None), *(alias.name for alias in node.names)}
                found += [name_of(path)] if modules & POSIX_ONLY else []
    refuse(found)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("path.rename(target)", True),
        ("draft.replace(path)", True),
        ("os.fsync(file)", True),
        ("from tempfile import mkdtemp", True),
        ("import os, tempfile", True),
        ("import fcntl", True),
        ("text.replace('a', 'b')", False),
        ("replace(sentence, vectors=x)", False),
        ("frame.rename(columns=names)", False),
    ],
)
def test_what_counts_as_writing(code, expected):
    assert any(map(writes, ast.walk(ast.parse(code)))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("begin anew with --overwrite", ["--overwrite"]),
        ("(`--split-by`)", ["--split-by"]),
        ("a -- b, x--y and ---", []),
    ],
)
def test_what_counts_as_a_flag(text, expected):
    assert FLAG.findall(text) == expected
