"""Import time: the library, one message, and the first use of a message, each in fresh processes.

Bytecode is cached in a directory of this run. Rounds of the libraries alternate; the fastest counts. Hypothesis, which
a library may load if it is installed, is hidden, as most programs in production do not have it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, TypedDict

from rich.console import Console

from benchmarks.report import Figure, print_figures, rows_table

__all__ = ["environment", "run"]

PROTOCOL: Final = (
    "fresh processes, alternating, fastest of {rounds} rounds; bytecode cached; wall time within the process"
)
ROOT: Final = Path(__file__).parents[1]

_PROLOGUE: Final = """
import json, sys, time
sys.modules["hypothesis"] = None
steps = {}
def step(name, code):
    start = time.perf_counter()
    exec(code, globals())
    steps[name] = 1000 * (time.perf_counter() - start)
"""
_EPILOGUE: Final = """
print(json.dumps({"steps": steps, "modules": list(sys.modules)}))
"""
SCRIPTS: Final = {
    "kafka-msgs": {
        "attrs": "import attrs",
        "library": "import kafka_msgs",
        "message": "from kafka_msgs import OffsetFetchRequest",
        "first encode": "data = OffsetFetchRequest().encode(8)",
        "first decode": "OffsetFetchRequest.decode(data, 8)",
    },
    "kafka-msgs, client": {
        "attrs": "import attrs",
        "library": "import kafka_msgs.client; from kafka_msgs.client import Client",
    },
    "kafka-msgs, all messages": {
        "attrs": "import attrs",
        "library": "import kafka_msgs.message",
        "messages": "from importlib import import_module; from kafka_msgs.messages import MODULES\n"
        "for module in MODULES.values(): import_module(f'kafka_msgs.messages.{module}')",
    },
    "kio": {
        "library": "import io; from kio.serial import entity_reader, entity_writer",
        "message": "from kio.schema.offset_fetch.v8.request import OffsetFetchRequest",
        "first encode": "buffer = io.BytesIO()\n"
        "entity_writer(OffsetFetchRequest)(buffer, OffsetFetchRequest(groups=(), require_stable=False))",
        "first decode": "entity_reader(OffsetFetchRequest)(buffer.getvalue(), 0)",
    },
    "kafka-python": {
        "library": "import kafka.protocol",
        "message": "from kafka.protocol.consumer import OffsetFetchRequest",
        "first encode": "data = OffsetFetchRequest(groups=[]).encode(version=8)",
        "first decode": "OffsetFetchRequest.decode(data, version=8)",
    },
}
"""For each library, the steps of sending and receiving a first message, timed in sequence in one process."""


class _Report(TypedDict):
    """The output of a process: the milliseconds of each step, and the loaded modules."""

    steps: dict[str, float]
    modules: list[str]


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    with tempfile.TemporaryDirectory() as bytecode:
        reports = {name: _run_script(steps, bytecode) for name, steps in SCRIPTS.items()}
        best = {name: report["steps"] for name, report in reports.items()}
        for _ in range(rounds):
            for name, steps in SCRIPTS.items():
                measured = _run_script(steps, bytecode)["steps"]
                best[name] = {each: min(best[name][each], measured[each]) for each in steps}
    _print_steps(console, best)
    figures = _figures(best["kafka-msgs"], reports["kafka-msgs"]["modules"])
    client = best["kafka-msgs, client"]["library"]
    figures.append(Figure("import kafka_msgs.client, without attrs' own import", client, "ms", target=35, at_most=True))
    loaded = best["kafka-msgs, all messages"]["messages"]
    figures.append(Figure("import the modules of all messages", loaded, "ms", target=150, at_most=True))
    print_figures(console, "Importing kafka-msgs", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _run_script(steps: dict[str, str], bytecode: str) -> _Report:
    calls = "".join(f"step({name!r}, {code!r})\n" for name, code in steps.items())
    done = subprocess.run(
        [sys.executable, "-c", _PROLOGUE + calls + _EPILOGUE],
        env=environment(bytecode),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    report: _Report = json.loads(done.stdout)
    return report


def environment(bytecode: str) -> dict[str, str]:
    """Return the environment of a process that caches its bytecode in a directory of the run."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONPATH": str(ROOT)}


def _print_steps(console: Console, best: dict[str, dict[str, float]]) -> None:
    table = rows_table("Import and first use, step by step", "library", "step", "milliseconds")
    for name, steps in best.items():
        for step, milliseconds in steps.items():
            table.add_row(name, step, f"{milliseconds:.2f}")
        table.add_row(name, "all", f"{sum(steps.values()):.2f}", end_section=True)
    console.print(table)


def _figures(steps: dict[str, float], modules: list[str]) -> list[Figure]:
    ours = [name for name in modules if name.startswith("kafka_msgs.")]
    messages = [name for name in ours if name.startswith("kafka_msgs.messages.") and name[20:] != "_index"]
    return [
        Figure("import kafka_msgs, without attrs' own import", steps["library"], "ms", target=30, at_most=True),
        Figure("import one message more", steps["message"], "ms", target=5, at_most=True),
        Figure("message modules loaded for one message", len(messages), "", target=1, at_most=True),
        Figure("first encode of a message", steps["first encode"], "ms"),
        Figure("first decode of a message", steps["first decode"], "ms"),
    ]
