"""Replaces values that differ in each run: ids, times, directories, measurements and the widths of columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any, Final

__all__ = ["normalized"]

_RULES: Final = (
    ("*", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>"),
    ("*", r"(?<![\w/+-])(?=[\w-]*[A-Z])[\w-]{22}(?![\w-])", "<id>"),
    ("*", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([.,:]\d+)?(Z|[+-]\d\d:?\d\d)?", "<time>"),
    ("*", r"\b1[5-9]\d{11}\b", "<ms>"),
    ("*", r"(console-consumer|perf-consumer|console-share-consumer)-\d+", r"\1-<number>"),
    ("*", r"/tmp/[\w./-]+", "<path>"),
    ("*", r"<path>:\d+", "<path>"),
    ("kafka-*-perf-test", r"\b\d+(\.\d+)?\b|NaN", "<n>"),
    ("kafka-e2e-latency", r"\b\d+(\.\d+)?\b", "<n>"),
    ("kafka-verifiable-producer", r'"avg_throughput":[\d.E]+', '"avg_throughput":<n>'),
)
"""Patterns of tools with their replacements, in order."""


def normalized(tool: str, text: str) -> list[str]:
    """Return the lines of an output with symbols for generated values, sorted: many tools iterate over hash maps."""
    for tools, pattern, replacement in _RULES:
        if fnmatch(tool, tools):
            text = re.sub(pattern, replacement, text)
    return sorted(_lines(text))


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        squeezed = re.sub(r"\s+", " ", line).strip()
        if squeezed.startswith("\tat ") or not squeezed or line.startswith("\tat "):
            continue
        yield _ordered_json(squeezed) if squeezed.startswith("{") else squeezed


def _ordered_json(line: str) -> str:
    try:
        return json.dumps(_ordered(json.loads(line)))
    except ValueError:
        return line


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _ordered(each) for name, each in sorted(value.items())}
    return sorted(map(_ordered, value), key=str) if isinstance(value, list) else value
