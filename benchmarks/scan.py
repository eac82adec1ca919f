"""The share of object creation in decoding in C: our plan walked over the same bytes with and without objects.

The walk that creates no objects is ``scan.c``, a small separate program, which is compiled when this benchmark runs.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks import message_cases
from benchmarks.report import Figure, Times, print_figures
from benchmarks.timing import PROTOCOL, Action, fastest
from kafka_msgs import MetadataResponse, codec_for
from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.plan import Plan, StructPlan, WireValue

SOURCE: Final = Path(__file__).with_name("scan.c")
HEADERS: Final = SOURCE.parents[1] / "kafka_msgs" / "_core"
_VERSION: Final = 12


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures; none without a compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        console.print("NOT RUN: a scan without objects needs a C compiler", style="red")
        return []
    codec = codec_for(MetadataResponse, _VERSION)
    with tempfile.TemporaryDirectory() as directory:
        scan = scanner(codec.plan, compiler, Path(directory))
        figures = []
        for name in message_cases.CONTENTS:
            data = codec.encode(message_cases.metadata(name))
            assert scan(data)
            assert not scan(data[:-1])
            cases: dict[str, Action] = {"decode": partial(codec.decode, data), "scan": partial(scan, data)}
            times = Times(fastest(cases, rounds))
            figures.append(Figure(f"decode, {name}: over a scan that makes no objects", times.ratio("decode", "scan")))
    print_figures(console, "Decoding, and the same without objects", PROTOCOL.format(rounds=rounds), figures)
    return figures


def scanner(plan: Plan, compiler: str, directory: Path) -> Callable[[bytes], bool]:
    """Compile ``scan.c`` and return a function that returns whether bytes are a message of the plan."""
    library = directory / "scan.so"
    command = [compiler, "-std=c11", "-O3", "-shared", "-fPIC", f"-I{HEADERS}", str(SOURCE), "-o", str(library)]
    subprocess.run(command, check=True, timeout=60)
    function: Any = ctypes.CDLL(str(library)).scan
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ssize_t]
    ops, starts = lowered(plan)
    raw_ops, raw_starts = (ctypes.c_int32 * len(ops))(*ops), (ctypes.c_int32 * len(starts))(*starts)
    return lambda data: bool(function(raw_ops, raw_starts, data, len(data)))


def lowered(plan: Plan) -> tuple[list[int], list[int]]:
    """Return the numbers of all ops, and the start index of each struct, the root first."""
    structs: list[StructPlan] = [plan.root]
    ops: list[int] = []
    starts: list[int] = []
    for struct in structs:  # grows during iteration
        starts.append(len(ops) // 5)
        for step in struct.steps:
            item = step.value.item if step.value.op is Op.ARRAY else step.value
            nested = _index(structs, item.inner) if item.op is Op.STRUCT else -1
            ops += [step.value.op, _flags(step.value), item.op, _flags(item), nested]
        ops += [-1, struct.flexible, 0, 0, 0]
    return ops, starts


def _index(structs: list[StructPlan], plan: StructPlan) -> int:
    if plan not in structs:
        structs.append(plan)
    return structs.index(plan)


def _flags(value: WireValue) -> int:
    return value.compact | value.nullable << 1
