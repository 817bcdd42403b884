"""Read what `torch.save` wrote, whoever sent it: no code in it runs, and it takes no more than its size does.

torch reads only tensors and plain data, but a pickle can say "the same tuple again, twice" sixty times over:
some hundred bytes make a key whose hash takes years. So a pickle is looked through before torch reads it.
"""

import io
import pickletools
import zipfile
from pathlib import Path
from typing import IO, Any

import torch

_OLD_PARTS = 5  # pickles at the beginning of a file by torch before 1.6
# A byte of a pickle may make an object of 64 bytes.
_MOST_SHARE, _SLACK = 1 / 16, 512 * 1024
_MOST_REPEATED = 200  # objects in something that a pickle uses again; a tensor has about 20

_PUT = ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE")
_GET = ("GET", "BINGET", "LONG_BINGET", "DUP")
# What these make may be a key of a dict, and is as large as its parts; a list or dict cannot be one.
_HASHED = ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "REDUCE", "NEWOBJ", "NEWOBJ_EX", "OBJ", "INST", "BUILD")
_MARK = None


def load_pickled(path: Path, *, mapped: bool) -> Any:  # noqa: ANN401 (whatever the pickle holds)
    """Return the content of a file, with all tensors on the CPU.

    Args:
        path: the file, also one of torch before 1.6.
        mapped: read no tensor before it is used, if the file is not an old one.

    Raises:
        Exception: of any kind, if the file is damaged or holds something else.
    """
    most = int(_MOST_SHARE * path.stat().st_size) + _SLACK
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            for _ in range(_OLD_PARTS):
                check_pickle(file, most)
        return torch.load(path, map_location="cpu", weights_only=True)
    reader = torch._C.PyTorchFileReader(str(path))  # the one that `torch.load` will use
    check_pickle(io.BytesIO(reader.get_record("data.pkl")), most)
    del reader
    return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)


def check_pickle(file: IO[bytes], most: int) -> None:
    """Raise a ValueError if a pickle has more than `most` bytes, or would grow by repeating its parts."""
    stack: list[int | None] = []  # of each object, how many are in it
    memo: dict[int, int | None] = {}
    start = file.tell()
    for opcode, argument, place in pickletools.genops(file):
        if (place or 0) - start > most:
            raise ValueError(f"the description of its tensors has more than {most:,} bytes")
        if opcode.name == "MARK":
            stack.append(_MARK)
        elif opcode.name in _PUT:
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif opcode.name in _GET:
            size = stack[-1] if argument is None else memo[argument]
            if (size or 0) > _MOST_REPEATED:
                raise ValueError("it would grow by repeating its parts")
            stack.append(size)
        else:
            parts = _popped(stack, opcode)
            made = 1 + sum(part or 0 for part in parts) if opcode.name in _HASHED else 1
            stack += [made] * len(opcode.stack_after)


def _popped(stack: list[int | None], opcode: pickletools.OpcodeInfo) -> list[int | None]:
    """Remove what an operation takes from the stack."""
    taken, wanted = [], opcode.stack_before
    if pickletools.markobject in wanted:
        while (top := stack.pop()) is not _MARK:
            taken.append(top)
        wanted = wanted[: wanted.index(pickletools.markobject)]
    return taken + [stack.pop() for _ in wanted]
