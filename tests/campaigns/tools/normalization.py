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
    ("*", r"(?<![\w/+.-])(?=[\w-]*[A-Z])[\w-]{22}(?![\w-])", "<id>"),
    ("*", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([.,:]\d+)?(Z|[+-]\d\d:?\d\d)?", "<time>"),
    ("*", r"\b1[5-9]\d{11}\b", "<ms>"),
    ("*", r"(console-consumer|perf-consumer|console-share-consumer)-\d+", r"\1-<number>"),
    ("*", r"/tmp/[\w./-]+", "<path>"),
    ("*", r"<path>:\d+", "<path>"),
    ("*", r"[Cc]ontroller \d+", "controller <node>"),
    ("kafka-*-perf-test", r"\b\d+(\.\d+)?\b|NaN", "<n>"),
    ("kafka-e2e-latency", r"\b\d+(\.\d+)?\b", "<n>"),
    ("kafka-verifiable-producer", r'"avg_throughput": [\d.E]+', '"avg_throughput": <n>'),
    ("kafka-features", r"Epoch: \d+", "Epoch: <n>"),
    ("kafka-transactions", r"^(\d+ ledger) \d+ (\d+ \w+ \d+ <ms>) \d+", r"\1 <producer> \2 <n>"),
    ("kafka-transactions", r"^(ledger \d+) \d+", r"\1 <producer>"),
    ("kafka-transactions", r"^\d+( -?\d+ -?\d+ -?\d+ <ms>)", r"<producer>\1"),
)
"""Patterns of tools in one line with their replacements, in order."""

_SETS: Final = re.compile(r"(?<=only supports operations \[)[A-Z_, ]+(?=\])|(?<=' are )SCRAM.*|(?<=Configs: )\S+")
"""Lists that a tool prints in the order of a hash table."""


def normalized(tool: str, text: str) -> list[str]:
    """Return the lines of an output with symbols for generated values, sorted: many tools iterate over hash maps.

    Equal records of internal topics become one line, because their number depends on time.
    """
    rules = [(pattern, replacement) for tools, pattern, replacement in _RULES if fnmatch(tool, tools)]
    found = [_replaced(line, rules) for line in _lines(text)]
    repeated = {line for line in found if line.startswith('{"key": {')}
    return sorted([*(line for line in found if line not in repeated), *repeated])


def _replaced(line: str, rules: list[tuple[str, str]]) -> str:
    for pattern, replacement in rules:
        line = re.sub(pattern, replacement, line)
    return _SETS.sub(lambda match: ", ".join(sorted(re.split(", ?", match[0]))), line)


def _lines(text: str) -> Iterator[str]:
    """Yield the lines without stack traces, empty lines and repeated spaces. JSON values have sorted elements."""
    for line in re.sub(r'\}(?=\{"key"|Processed)', "}\n", text).splitlines():
        squeezed = re.sub(r"\s+", " ", line).strip()
        if squeezed and not line.startswith("\tat "):
            yield _ordered_json(squeezed) if squeezed.startswith("{") else squeezed


def _ordered_json(line: str) -> str:
    try:
        return json.dumps(_ordered(json.loads(line)))
    except ValueError:
        return line


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _ordered(each) for name, each in sorted(value.items())}
    return sorted(map(_ordered, value), key=_without_paths) if isinstance(value, list) else value


def _without_paths(value: Any) -> str:
    return re.sub(r"/tmp/[\w./-]+", "", str(value))
