"""Memory-mapped files. Only a small part stays in memory while the file is read.

This module checks which files can be read, and searches for nonzero bytes. Searches skip the holes of sparse files if
the operating system reports holes. ``file_scan`` interprets the bytes.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import stat
import sys
import weakref
from pathlib import Path
from typing import Final, TypeAlias

from kafka_msgs.errors import LogFileError

__all__ = [
    "MAX_SMALL_FILE",
    "WINDOW",
    "Mapped",
    "end_of_hole",
    "first_not_zero",
    "last_not_zero",
    "map_file",
    "read_whole",
    "release",
]

Mapped: TypeAlias = mmap.mmap | bytes
"""The bytes of a file. An empty file cannot be mapped, so it is ``bytes``."""

WINDOW: Final = 2**25
"""The number of bytes that a walk or a search reads before it releases their pages, which limits memory use."""

MAX_SMALL_FILE: Final = 2**26
"""The maximum size in bytes of a file that is read completely. Kafka's own small files are far smaller."""

_ZEROS: Final = bytes(2**20)
_NOT_ZERO: Final = re.compile(rb"[^\0]")
_KINDS: Final = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a directory"),
)


class _File(mmap.mmap):
    """A mapped file. ``descriptor`` stays open during the lifetime of this object, and reports holes."""

    descriptor: int


def map_file(path: Path) -> Mapped:
    """Return the bytes of a file, mapped into memory.

    Raises ``OSError``, and ``LogFileError`` for a path that is not a regular file. Reading a FIFO could block forever.
    """
    descriptor = _opened(path)
    try:
        data = _File(descriptor, 0, access=mmap.ACCESS_READ) if os.fstat(descriptor).st_size else b""
    except BaseException:
        os.close(descriptor)
        raise
    if isinstance(data, bytes):
        os.close(descriptor)
        return data
    data.descriptor = descriptor
    weakref.finalize(data, os.close, descriptor)
    return data


def read_whole(path: Path, max_bytes: int = MAX_SMALL_FILE) -> bytes:
    """Return the content of a small file.

    Raises the errors of ``map_file``, and ``LogFileError`` for a file of more than ``max_bytes``, before reading it.
    """
    with os.fdopen(_opened(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > max_bytes else file.read(max_bytes + 1)
    if max(size, len(data)) > max_bytes:
        reason = f"the file has {max(size, len(data)):,} bytes, at most {max_bytes:,} were expected"
        raise LogFileError(file=str(path), position=0, skipped=size, reason=reason)
    return data


def _opened(path: Path) -> int:
    # With O_NONBLOCK, opening a FIFO without a writer does not block. FIFOs are never read.
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode):
        return file
    os.close(file)
    kind = next((name for of, name in _KINDS if of(mode)), "something else")
    raise LogFileError(file=str(path), position=0, skipped=0, reason=f"this is {kind}, not a regular file")


def release(data: Mapped, start: int, end: int) -> int:
    """Release the pages between two positions; return the start of the first page that was not released."""
    first, last = (at // mmap.PAGESIZE * mmap.PAGESIZE for at in (start, end))
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") and last > first:
        data.madvise(mmap.MADV_DONTNEED, first, last - first)
    return max(first, last)


def end_of_hole(data: Mapped, at: int) -> int:
    """Return the end of the hole that contains the byte at ``at``, or ``at`` without a hole.

    A hole is a part of a sparse file that takes no disk space. Its bytes are zero. Systems without ``SEEK_DATA``, and
    some file systems, do not report holes. The result is then ``at``.
    """
    if sys.platform == "win32" or not hasattr(os, "SEEK_DATA") or not isinstance(data, _File):
        return at
    try:
        return max(os.lseek(data.descriptor, at, os.SEEK_DATA), at)
    except OSError as error:
        return max(len(data), at) if error.errno == errno.ENXIO else at


def first_not_zero(data: Mapped, start: int, end: int) -> int:
    """Return the position of the first nonzero byte from ``start`` on, or ``end`` if all bytes are zero."""
    at = released = min(end_of_hole(data, start), end)
    while at + len(_ZEROS) <= end and data[at : at + len(_ZEROS)] == _ZEROS:
        at = min(end_of_hole(data, at + len(_ZEROS)), end)
        if at - released >= WINDOW:
            released = release(data, released, at)
    found = _NOT_ZERO.search(data, at, end)
    return found.start() if found else end


def last_not_zero(data: Mapped) -> int:
    """Return the position after the last nonzero byte, or 0 if all bytes are zero."""
    end = released = len(data)
    while end and not data[max(end - len(_ZEROS), 0) : end].strip(b"\0"):
        end = max(end - len(_ZEROS), 0)
        if released - end >= WINDOW:
            release(data, end, released)
            released = end
    block = data[max(end - len(_ZEROS), 0) : end]
    return end - len(block) + len(block.rstrip(b"\0"))
