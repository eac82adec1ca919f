"""gzip with ISA-L (extra ``gzip_speed``) compared with zlib: record batches read, and written at the fastest level."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any, Final
from unittest.mock import patch

from rich.console import Console

from benchmarks.report import Figure, Times, print_figures
from benchmarks.timing import PROTOCOL, Action, fastest
from kafka_msgs.records import CompressionType, compression

__all__ = ["run"]

WORDS: Final = [b'{"order": ', b'"customer": ', b'"billing", ', b"1234567, ", b"42, ", b'"paid"}\n', b"true, "]
SIZES: Final = {"1 KB": 150, "1 MB": 150_000}
"""The number of words in the content, by its approximate size."""


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    from isal import isal_zlib

    libraries = {"zlib": zlib, "isal": isal_zlib}
    figures = []
    for size, count in SIZES.items():
        text = b"".join(Random(1).choices(WORDS, k=count))
        written = {name: _with(library, _write, text) for name, library in libraries.items()}
        default = memoryview(compression.compress(CompressionType.GZIP, text))
        read = {name: partial(_with, library, _read, default, len(text)) for name, library in libraries.items()}
        write = {name: partial(_with, library, _write, text) for name, library in libraries.items()}
        figures += [
            Figure(f"read {size}: zlib takes", _ratio(read, rounds)),
            Figure(f"write {size} at level 1: zlib takes", _ratio(write, rounds)),
            Figure(f"write {size} at level 1: size over that of zlib", len(written["isal"]) / len(written["zlib"])),
        ]
    print_figures(console, "gzip by ISA-L", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _with(library: Any, work: Any, *arguments: Any) -> Any:
    with patch.object(compression, "_fast_zlib", lambda: library):
        return work(*arguments)


def _read(data: memoryview, size: int) -> bytes:
    return compression.decompress(CompressionType.GZIP, data, size)


def _write(text: bytes) -> bytes:
    return compression.compress(CompressionType.GZIP, text, 1)


def _ratio(cases: Mapping[str, Action], rounds: int) -> float:
    return Times(fastest(cases, rounds)).ratio("zlib", "isal")
