"""Settings of the C library's memory, for a while."""

import ctypes
import sys

import pytest
import torch

from elmokit.kernels import flushed_denormals, keep_freed_memory, peak_memory

LIBC = None if sys.platform == "win32" else ctypes.CDLL(None)


class Mallinfo2(ctypes.Structure):
    """`struct mallinfo2` of glibc: ten numbers, the fourth of which counts mapped blocks."""

    _fields_ = [(f"number_{place}", ctypes.c_size_t) for place in range(10)]


def is_mapped(megabytes):
    """Tell whether a block of that size is mapped by itself, and so goes back to the system when freed."""
    LIBC.mallinfo2.restype = Mallinfo2
    before = LIBC.mallinfo2().number_3
    block = torch.empty(megabytes * 2**20, dtype=torch.uint8)
    assert block.is_contiguous()  # still here
    return LIBC.mallinfo2().number_3 > before


@pytest.mark.skipif(not hasattr(LIBC, "mallinfo2"), reason="needs glibc 2.33")
def test_large_blocks_are_kept_inside_and_given_back_afterwards():
    with keep_freed_memory():
        assert not is_mapped(100)
    assert is_mapped(100)
    with pytest.raises(KeyError), keep_freed_memory():
        raise KeyError
    assert is_mapped(100)


def test_tiny_numbers_become_zero_inside_and_stay_afterwards():
    tiny = torch.full((16,), 1e-30)
    with flushed_denormals():
        assert not (tiny * 1e-10).any()
    assert (tiny * 1e-10).all()


def test_peak_memory():
    before = peak_memory()
    torch.ones(int(before) // 4 + 2**26)  # as many numbers of four bytes: more than everything so far
    assert peak_memory() > before + 2**26
