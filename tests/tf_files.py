"""TensorFlow checkpoints written after the format's description, to hold the reader against.

Nothing here is shared with the package: the checksum is the textbook's, bit by bit.
"""

import struct
from pathlib import Path

import numpy as np

from tests.tiny import Arrays

MAGIC = 0xDB4775248B80FB57
_DTYPES = {"float32": 1, "float64": 2, "int64": 9, "float16": 19}
_RESTART = 3  # entries between two keys that are written whole


def bilm_names(arrays: Arrays) -> Arrays:
    """The variables of a checkpoint for the datasets of a weights file."""
    renamed = {}
    for name, array in arrays.items():
        for old, new in (
            ("RNN/MultiRNNCell/Cell", "rnn/multi_rnn_cell/cell_"),
            ("RNN/LSTMCell", "rnn/LSTMCell"),
            ("LSTMCell/W_0", "lstm_cell/kernel"),
            ("LSTMCell/B", "lstm_cell/bias"),
            ("LSTMCell/W_P_0", "lstm_cell/projection/kernel"),
        ):
            name = name.replace(old, new)
        renamed[f"lm/{name}"] = array
    return renamed


def with_training(variables: Arrays, words: int, dim: int) -> Arrays:
    """Add what training has besides: the softmax, the optimizer's accumulators, two counters."""
    random = np.random.default_rng(5)
    softmax = {
        "lm/softmax/W": random.normal(size=(words, dim)).astype(np.float32),
        "lm/softmax/b": random.normal(size=words).astype(np.float32),
    }
    trained = variables | softmax
    accumulators = {f"{name}/Adagrad": np.ones_like(array) for name, array in trained.items()}
    counters = {"global_step": np.array(7, np.int64), "train_perplexity": np.array(1.5, np.float32)}
    return trained | accumulators | counters


def write_checkpoint(prefix: Path, variables: Arrays, *, block_entries: int = 7, shards: int = 1) -> Path:
    """Write `prefix`.index and `prefix`.data-…; gives the index's path."""
    data = [bytearray() for _ in range(shards)]
    records = {b"": _field(1, shards) + _field(3, _field(1, 1))}  # number of shards, version
    for number, (name, array) in enumerate(sorted(variables.items())):
        shard = number % shards
        content = array.tobytes()
        records[name.encode()] = b"".join(
            [
                _field(1, _DTYPES[str(array.dtype)]),
                _field(2, b"".join(_field(2, _field(1, size)) for size in array.shape)),
                _field(3, shard),
                _field(4, len(data[shard])),
                _field(5, len(content)),
                _varint(6 << 3 | 5) + struct.pack("<I", masked(content)),
            ]
        )
        data[shard] += content
    for number, content in enumerate(data):
        path = prefix.with_name(f"{prefix.name}.data-{number:05d}-of-{shards:05d}")
        path.write_bytes(content)
    index = prefix.with_name(prefix.name + ".index")
    index.write_bytes(table(records, block_entries))
    return index


def table(records: dict[bytes, bytes], block_entries: int) -> bytes:
    """LevelDB's table."""
    out = bytearray()

    def add_block(entries: list[tuple[bytes, bytes]]) -> bytes:
        block = _block(entries)
        handle = _varint(len(out)) + _varint(len(block))
        out.extend(block + b"\0" + struct.pack("<I", masked(block + b"\0")))
        return handle

    items = sorted(records.items())
    groups = [items[start : start + block_entries] for start in range(0, len(items), block_entries)]
    finder = [(group[-1][0], add_block(group)) for group in groups]
    handles = add_block([]) + add_block(finder)
    return bytes(out) + handles.ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def _block(entries: list[tuple[bytes, bytes]]) -> bytes:
    out, restarts, before = bytearray(), [], b""
    for number, (key, value) in enumerate(entries):
        shared = 0
        if number % _RESTART:
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
        else:
            restarts.append(len(out))
        out += _varint(shared) + _varint(len(key) - shared) + _varint(len(value)) + key[shared:] + value
        before = key
    restarts = restarts or [0]
    return bytes(out) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer; a number of 0 is left out, as always."""
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _varint(len(value)) + value
    return _varint(number << 3) + _varint(value) if value else b""


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def masked(data: bytes) -> int:
    """The checksum that TensorFlow stores."""
    crc = plain_crc(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def plain_crc(data: bytes) -> int:
    """CRC-32C, a bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
