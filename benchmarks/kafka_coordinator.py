"""Kafka's own group coordinator and assignors in Java: the baseline for the benchmarks of groups.

A separate Java process with full JIT optimization takes lines of JSON and responds to each with one line;
``CoordinatorOracle.java`` and ``AssignorOracle.java`` define the format. Needs Java and Maven.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any, Final

from rich.console import Console

__all__ = ["PROTOCOL", "ask", "is_there"]

PROTOCOL: Final = "Kafka 4.4.0 in Java, then ours; fastest of {rounds} rounds each; times of Kafka's divide ours"

_SECONDS: Final = 300
"""The time limit for the process."""
_OPTIONS: Final = ("-XX:TieredStopAtLevel=4", "-Xmx3g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")


def is_there(console: Console, what: str) -> bool:
    """Return whether Java and Maven are available; otherwise print the name of the skipped measurement."""
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        console.print(f"{what}: not measured, since there is no {' and no '.join(missing)} here")
    return not missing


def ask(lines: Iterable[dict[str, Any]], *arguments: str) -> list[dict[str, Any]]:
    """Return the responses to lines. ``arguments`` are passed to the program: ``assign`` for assignors."""
    from tests.coordinator.oracle.driver import PROJECT

    command = [*PROJECT.command(*_OPTIONS), *arguments]
    text = "\n".join(map(json.dumps, lines))
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_SECONDS, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
