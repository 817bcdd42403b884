"""Change the content of files as damage or malice would, with knowledge of their formats.

A mutator is a function from a generator of random numbers and the content of a file to other content. Those
of a format keep its frame whole (checksums, lengths, compression), so that the change reaches the reader.
"""

import gzip
import io
import json
import lzma
import random
import struct
import zipfile
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from elmokit.formats.crc32c import masked_crc32c

Mutator = Callable[[random.Random, bytes], bytes]

_NUMBERS = (
    *(0, 1, 2, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0xFFFF, 0x10000, 1 << 20, 1 << 30, (1 << 31) - 1, 1 << 31),
    *((1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 3, 10**6, 2**31, 2**63, 10**30, 10**400, 0.5, -0.0, 1e308),
    *(
        "",
        "x",
        "\ud800",
        "\0",
        "a" * 1000,
        [],
        [[]],
        [1, 2],
        {},
        {"a": 1},
        [None] * 50,
        ["x"],
        [[1, 1]] * 300,
    ),
)
_WORDS = (
    *(
        b"\t",
        b" ",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b"\xe2\x80\xa8",
        b"-1",
        b"9" * 5000,
        b"[" * 3000,
        b"{" * 200,
    ),
    *(
        b'"',
        b"'",
        b",",
        b"|",
        b"#",
        b"1-2",
        b"1.1",
        b"nan",
        b"inf",
        b"1e400",
        b"\xc2\xb2",
        b"\xef\xbb\xbf",
        b"@",
    ),
    *(b"\\u0000", b"\xed\xa0\x80", b"B-PER", b"__label__", b"..", b"a" * 5000, b"a " * 2000),
)


def any_bytes(rng: random.Random, data: bytes) -> bytes:
    """Flip, overwrite, remove, repeat, move or cut some bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        place = rng.randrange(len(out) + 1)
        size = rng.choice((1, 1, 2, 4, 8, rng.randrange(1, 200)))
        match rng.randrange(8):
            case 0:
                out[place : place + 1] = bytes([rng.randrange(256)])
            case 1:
                out[place : place + 1] = bytes([(*out, 0)[place] ^ 1 << rng.randrange(8)])
            case 2 | 3:
                width = rng.choice((1, 2, 4, 8))
                number = rng.choice(_NUMBERS) & (1 << 8 * width) - 1
                out[place : place + width] = number.to_bytes(width, rng.choice(("little", "big")))
            case 4:
                del out[place : place + size]
            case 5:
                out[place:place] = out[place : place + size] * rng.choice((1, 1, 3, 50))
            case 6:
                there = rng.randrange(len(out) + 1)
                out[place : place + size] = out[there : there + size]
            case 7:
                del out[place:]
    return bytes(out)


def near(*marks: bytes) -> Mutator:
    """Return a mutator that changes numbers near these marks, where a format keeps its structure."""

    def mutate(rng: random.Random, data: bytes) -> bytes:
        places = [at for mark in marks for at in _places(data, mark)]
        if not places or rng.random() < 0.2:
            return any_bytes(rng, data)
        out = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            place = rng.choice(places) + rng.randrange(0, 80)
            width = rng.choice((1, 1, 2, 4, 8))
            number = rng.choice((*_NUMBERS, rng.randrange(256))) & (1 << 8 * width) - 1
            out[place : place + width] = number.to_bytes(width, "little")
        return bytes(out)

    return mutate


def _places(data: bytes, mark: bytes) -> list[int]:
    found, at = [], data.find(mark)
    while at >= 0:
        found.append(at)
        at = data.find(mark, at + 1)
    return found


def at_end(share: float) -> Mutator:
    """Return a mutator that changes only the end of a file, where some formats keep their structure."""

    def mutate(rng: random.Random, data: bytes) -> bytes:
        start = int(len(data) * (1 - share))
        return data[:start] + any_bytes(rng, data[start:])

    return mutate


def text(rng: random.Random, data: bytes) -> bytes:
    """Change lines and words of a text."""
    lines = data.split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(lines))
        line = lines[place]
        at = rng.randrange(len(line) + 1)
        match rng.randrange(9):
            case 0:
                lines[place] = line.replace(b"\t", b" ", 1)
            case 1 | 2:
                lines[place] = line[:at] + rng.choice(_WORDS) + line[at:]
            case 3:
                lines[place] = line[:at]
            case 4:
                lines[place:place] = [line] * rng.choice((1, 3, 200))
            case 5:
                del lines[place]
                lines = lines or [b""]
            case 6:
                lines.insert(place, rng.choice((b"", b" ", b"\t", rng.choice(_WORDS))))
            case 7:
                words = line.split(rng.choice((b"\t", b" ", b",")))
                words[rng.randrange(len(words))] = rng.choice(_WORDS)
                lines[place] = b"\t".join(words)
            case 8:
                return any_bytes(rng, b"\n".join(lines))
    return b"\n".join(lines)


def json_text(rng: random.Random, data: bytes) -> bytes:
    """Replace, remove or repeat a value of a JSON document; sometimes change its letters."""
    try:
        document = {"": json.loads(data)}
    except ValueError:
        return text(rng, data)
    if rng.random() < 0.2:
        return text(rng, data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        holders = list(_holders(document))
        holder, key = rng.choice(holders)
        match rng.randrange(6):
            case 0 | 1:
                holder[key] = deepcopy(rng.choice(_VALUES))
            case 2 if key != "":
                del holder[key]
            case 3:
                other, place = rng.choice(holders)
                holder[key] = json.loads(json.dumps(other[place]))
            case 4 if isinstance(holder, dict) and key != "":
                holder[rng.choice(("x", "", key + "s", key.upper()))] = holder.pop(key)
            case _ if isinstance(holder[key], int):
                holder[key] += rng.choice((-1, 1, 7, 10**6))
    return json.dumps(document.get("")).encode()


def _holders(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _holders(inner)


def json_lines(rng: random.Random, data: bytes) -> bytes:
    """Change one line of JSON, or the lines."""
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    if rng.random() < 0.3 or not lines[place]:
        return text(rng, data)
    lines[place] = json_text(rng, lines[place])
    return b"\n".join(lines)


def safetensors(rng: random.Random, data: bytes) -> bytes:
    """Change the header, and keep its length right."""
    size = struct.unpack("<Q", data[:8])[0]
    if rng.random() < 0.2:
        return any_bytes(rng, data)
    header = data[8 : 8 + size]
    if rng.random() < 0.3:
        old, new = (rng.choice(("F32", "F16", "I8", "I64", "BOOL", "U8", "BF16", "F64")) for _ in range(2))
        header = header.replace(f'"{old}"'.encode(), f'"{new}"'.encode(), rng.choice((1, -1)))
    else:
        header = json_text(rng, header)
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data[8 + size :]


def npy(rng: random.Random, data: bytes) -> bytes:
    """Change the header, and keep its length right."""
    size = struct.unpack("<H", data[8:10])[0]
    if rng.random() < 0.3:
        return any_bytes(rng, data)
    header = text(rng, data[10 : 10 + size].rstrip()) + b"\n"
    if rng.random() < 0.5:
        digits = [at for at, byte in enumerate(header) if 48 <= byte <= 57]
        at = rng.choice(digits or [0])
        header = header[:at] + str(rng.choice(_NUMBERS)).encode() + header[at + 1 :]
    return data[:8] + struct.pack("<H", len(header) & 0xFFFF) + header + data[10 + size :]


def table_of_checkpoint(rng: random.Random, data: bytes) -> bytes:
    """Change a block of a TensorFlow index and write its checksum anew."""
    out = bytearray(data)
    ends = [at for at in range(5, len(data) - 48) if _is_block_end(data, at)]
    if not ends or rng.random() < 0.1:
        return any_bytes(rng, data)
    for _ in range(rng.choice((1, 1, 2))):
        end = rng.choice(ends)
        start = max((before + 5 for before in ends if before < end), default=0)
        block = any_bytes(rng, bytes(out[start:end]))[: end - start].ljust(end - start, b"\0")
        out[start:end] = block
        out[end + 1 : end + 5] = struct.pack("<I", masked_crc32c(block + bytes(out[end : end + 1])))
    return bytes(out)


def _is_block_end(data: bytes, at: int) -> bool:
    """Return whether a byte 0 and a checksum follow; a block ends with the number of its restarts."""
    restarts = struct.unpack("<I", data[at - 4 : at])[0]
    if data[at] or not 0 < restarts < 100:
        return False
    checksum = struct.unpack("<I", data[at + 1 : at + 5])[0]
    starts = [0, *(before + 5 for before in _ENDS.get(data, []))]
    for start in starts:
        if masked_crc32c(data[start:at] + b"\0") == checksum:
            _ENDS.setdefault(data, []).append(at)
            return True
    return False


_ENDS: dict[bytes, list[int]] = {}


def archive(inside: Callable[[str], Mutator]) -> Mutator:
    """Return a mutator of zips: it changes a member, or the directory; `inside` finds a member's mutator."""
    directory = near(b"PK\1\2", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\3\4")

    def mutate(rng: random.Random, data: bytes) -> bytes:
        if not zipfile.is_zipfile(io.BytesIO(data)):  # torch wrote other files before 1.6
            return any_bytes(rng, data)
        if rng.random() < 0.5:
            return directory(rng, data)
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
            names = old.namelist()
            changed = rng.choice(names)
            for name in names:
                content = old.read(name)
                if name == changed:
                    content = inside(name)(rng, content)
                method = rng.choice((0, 0, 0, 8, 14)) if name == changed else old.getinfo(name).compress_type
                new.writestr(zipfile.ZipInfo(name), content, compress_type=method)
        return out.getvalue()

    return mutate


def packed(inner: Mutator) -> Mutator:
    """Return a mutator of compressed files, before or after compression; some unpack a thousandfold."""

    def mutate(rng: random.Random, data: bytes) -> bytes:
        if rng.random() < 0.4:
            return any_bytes(rng, data)
        is_gzip = data.startswith(b"\x1f\x8b")
        plain = inner(rng, gzip.decompress(data) if is_gzip else lzma.decompress(data))
        if rng.random() < 0.1:
            plain = plain + plain[-rng.randrange(1, 100) :] * rng.choice((1_000, 40_000))
        return gzip.compress(plain, mtime=0) if is_gzip else lzma.compress(plain)

    return mutate
