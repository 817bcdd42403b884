"""Read checkpoints of bilm-tf's training, softmax included, without TensorFlow.

model.ckpt-<step>.index                 a table: name of each variable → type, shape, place, checksum
model.ckpt-<step>.data-00000-of-00001   the numbers
options.json                            as for HDF5 weights

The index is a LevelDB table: blocks of sorted keys, each sharing a prefix with the one before, then a block
that lists the blocks, then a footer. Its values are protocol buffers. Every checksum is verified.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmokit.errors import ModelFileError
from elmokit.formats.bilm_layout import Names, table_for
from elmokit.formats.bundle import SoftmaxFile
from elmokit.formats.crc32c import masked_crc32c
from elmokit.formats.layout import check_softmax, make_model
from elmokit.model import BiLM, Softmax

_CELL = ("kernel", "bias", "projection/kernel")
_CONVENTIONS = (
    Names("lm/", "RNN_{direction}/rnn/multi_rnn_cell/cell_{layer}/lstm_cell", *_CELL),
    Names("lm/", "RNN_{direction}/rnn/lstm_cell", *_CELL),  # a model with one layer
)
_OPTIMIZER = re.compile(r"/(Adagrad|Adam|Momentum)(_\d+)?$")  # state of the optimiser for a variable
_SOFTMAX, _SOFTMAX_BIAS, _EMBEDDING = "lm/softmax/W", "lm/softmax/b", "lm/embedding"

_MAGIC = bytes.fromhex("57fb808b247547db")  # the last bytes of every such table
_FOOTER = 48
# bilm-tf has some hundred variables with a short record each.
_MAX_INDEX = 1024 * 1024
_MAX_RECORDS = 10_000
_MAX_REPEATED = 8  # bytes of names for each byte of a block: a name repeats a part of the one before
_FLOATS = {1: "<f4", 2: "<f8", 19: "<f2"}  # TensorFlow's codes of types
_DAMAGE = (IndexError, KeyError, TypeError, ValueError, struct.error)  # raised while parsing

Fields = dict[int, list[Any]]


@dataclass(frozen=True)
class _Variable:
    """Type, shape and place of a variable."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    in_slices: bool


def is_checkpoint(path: Path) -> bool:
    """Return whether a file is the index of a checkpoint."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - len(_MAGIC)))
            return size >= _FOOTER and file.read() == _MAGIC
    except OSError:
        return False


def latest_checkpoint(folder: Path, indices: list[Path]) -> list[Path]:
    """Return the checkpoint that the folder's `checkpoint` file names; all of them if it names none."""
    record = folder / "checkpoint"
    if len(indices) > 1 and record.is_file():
        text = record.read_text(encoding="utf-8", errors="replace")[:100_000]
        named = re.search(r'^model_checkpoint_path: "(?:.*[/\\])?([^"/\\]+)"', text, re.MULTILINE)
        return [path for path in indices if named and path.stem == named[1]] or indices
    return indices


class TfCheckpoint:
    """The index of a checkpoint; variables are read when asked for.

    Raises:
        ModelFileError: it is damaged, or of a kind that bilm-tf does not write.
    """

    def __init__(self, index: Path) -> None:
        self.path = index
        size = index.stat().st_size
        if size > _MAX_INDEX:
            raise ModelFileError(f"{index}: {size:,} bytes are too many for the index of a biLM's checkpoint")
        try:
            records = dict(islice(_read_table(index.read_bytes()), _MAX_RECORDS + 1))
            if len(records) > _MAX_RECORDS:
                raise ValueError(f"it has more than {_MAX_RECORDS:,} records")
            header = _fields(records.pop(b"", b""))
            self._num_shards = _first(header, 1)
            if _first(header, 2):
                raise ValueError("its numbers are big-endian")
            self._variables = {name.decode(): _variable(value) for name, value in records.items()}
        except _DAMAGE as error:
            raise ModelFileError(
                f"{index}: cannot be read as the index of a TensorFlow checkpoint ({error}); get it again"
            ) from error

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each variable."""
        return {name: variable.shape for name, variable in self._variables.items()}

    def read(self, name: str) -> Tensor:
        """Read a variable as float32; its size and checksum are verified."""
        variable = self._variables[name]
        data = self.check(name)
        array = np.fromfile(
            data, _FLOATS[variable.dtype], int(np.prod(variable.shape)), offset=variable.offset
        )
        if masked_crc32c(array.view(np.uint8)) != variable.checksum:
            raise ModelFileError(
                f"{data}: the checksum of {name} is wrong: the file is damaged; get it again"
            )
        return torch.from_numpy(array.astype(np.float32).reshape(variable.shape))

    def check(self, name: str) -> Path:
        """Verify type and size of a variable without reading it; return its file."""
        variable = self._variables[name]
        ending = f".data-{variable.shard:05d}-of-{self._num_shards:05d}"
        data = self.path.with_name(self.path.name.removesuffix(".index") + ending)
        if not data.is_file():
            raise ModelFileError(f"{data}: is missing; it belongs beside {self.path.name}")
        if variable.in_slices or variable.dtype not in _FLOATS:
            raise ModelFileError(f"{self.path}: {name} is stored in slices, or not as floating point numbers")
        wanted = int(np.prod(variable.shape, dtype=object)) * np.dtype(_FLOATS[variable.dtype]).itemsize
        end, there = variable.offset + variable.size, data.stat().st_size
        if variable.size != wanted or end > there:
            raise ModelFileError(
                f"{data}: {name} {list(variable.shape)} takes {wanted:,} bytes, the index gives it "
                f"{variable.size:,} up to {end:,}, the file has {there:,}; it is truncated, or belongs to "
                "another index: get it again"
            )
        return data


def read_checkpoint(index: Path, options: dict[str, Any]) -> tuple[BiLM, SoftmaxFile | None]:
    """Read a model with the sizes of the options, and find its softmax.

    Raises:
        ModelFileError: the checkpoint is damaged, or does not fit the options.
        ConfigError: the options are not valid.
    """
    checkpoint = TfCheckpoint(index)
    shapes = {name: shape for name, shape in checkpoint.shapes().items() if not _OPTIMIZER.search(name)}
    config, table = table_for(index, options, shapes, _CONVENTIONS)
    paths = [checkpoint.check(entry.name) for entry in table]
    model = make_model(config, table, lambda entry: checkpoint.read(entry.name), paths)
    return model, _softmax(checkpoint, shapes, config.projection_dim)


def _softmax(checkpoint: TfCheckpoint, shapes: dict[str, tuple[int, ...]], dim: int) -> SoftmaxFile | None:
    weight = _SOFTMAX if _SOFTMAX in shapes else _EMBEDDING  # word vectors may be shared with the softmax
    if _SOFTMAX_BIAS not in shapes or weight not in shapes:
        return None
    words = check_softmax(checkpoint.path, shapes, weight, _SOFTMAX_BIAS, dim)
    for name in (weight, _SOFTMAX_BIAS):
        checkpoint.check(name)
    return SoftmaxFile(words, partial(_read_softmax, checkpoint, weight))


def _read_softmax(checkpoint: TfCheckpoint, weight: str) -> Softmax:
    return Softmax(checkpoint.read(weight), checkpoint.read(_SOFTMAX_BIAS))


def _read_table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a table."""
    if len(data) < _FOOTER or not data.endswith(_MAGIC):
        raise ValueError("its end is missing")
    footer = data[-_FOOTER:]
    at = 0
    handles = []
    for _ in range(4):  # place and size of a block that is always empty, and of the list of blocks
        number, at = _varint(footer, at)
        handles.append(number)
    end = 0
    for _, handle in _read_block(data, handles[2], handles[3]):
        offset, at = _varint(handle, 0)
        size, _ = _varint(handle, at)
        if offset < end:
            raise ValueError("its blocks overlap")
        end = offset + size
        yield from _read_block(data, offset, size)


def _read_block(data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    block, trailer = data[offset : offset + size], data[offset + size : offset + size + 5]
    if len(block) != size or len(trailer) != 5:
        raise ValueError("a block reaches beyond its end")
    if struct.unpack("<I", trailer[1:])[0] != masked_crc32c(block + trailer[:1]):
        raise ValueError("a checksum is wrong: it is damaged")
    if trailer[0]:
        raise ValueError("it is compressed, which TensorFlow's checkpoints are not")
    num_restarts = struct.unpack("<I", block[-4:])[0]
    end = size - 4 * (num_restarts + 1)
    at, key, total = 0, b"", 0
    while at < end:
        shared, at = _varint(block, at)
        unshared, at = _varint(block, at)
        length, at = _varint(block, at)
        if at + unshared + length > end:
            raise ValueError("an entry reaches beyond its block")
        key = key[:shared] + block[at : at + unshared]
        total += len(key)
        if total > _MAX_REPEATED * size:
            raise ValueError("its names repeat each other without end")
        at += unshared
        yield key, block[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits per byte; return it and the place after it."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _fields(data: bytes) -> Fields:
    """Parse a protocol buffer into the values of each field; nested messages stay bytes."""
    fields: Fields = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        value: Any
        if kind == 0:
            value, at = _varint(data, at)
        else:
            length, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value = data[at : at + length]
            at += length
            if len(value) != length:
                raise ValueError("a field reaches beyond its message")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _first(fields: Fields, number: int) -> int:
    return int(fields.get(number, [0])[0])


def _variable(data: bytes) -> _Variable:
    fields = _fields(data)
    shape = _fields(fields.get(2, [b""])[0])
    return _Variable(
        dtype=_first(fields, 1),
        shape=tuple(_first(_fields(dim), 1) for dim in shape.get(2, [])),
        shard=_first(fields, 3),
        offset=_first(fields, 4),
        size=_first(fields, 5),
        checksum=struct.unpack("<I", fields.get(6, [b"\0" * 4])[0])[0],
        in_slices=7 in fields,
    )
