"""The demonstration: real Kafka traffic, compiled for, decoded and explained. Run it with ``make demo``.

Needs the extras ``generator`` and ``pipeline``, and Java for the last section; no broker, no network. The traffic was
recorded from Apache Kafka by ``tests/recorders/client_traffic.py``, and the log directory by
``tests/recorders/group_logs.py``.
Every Python line on the screen is the line that was run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).parents[2]
COLUMNS = 100


def run(console: Console) -> dict[str, Any]:
    """Show all sections on ``console``; return the variables of the Python code on the screen."""
    from docs.demo import anatomy, compiling, groups_in_process, groups_on_spark, kip88, offsets_topic, traffic
    from docs.demo.presenter import Stage

    stage = Stage(
        console, {"definitions": ROOT / "message_defs" / "kafka", "recordings": ROOT / "tests" / "recordings"}
    )
    for section in (compiling, traffic, anatomy, offsets_topic, kip88, groups_in_process, groups_on_spark):
        section.show(stage)
    stage.say(
        "Next: `.venv/bin/kafka-msgs show OffsetFetchRequest` explains a message field by field, README.md has the "
        "first steps in your own program, and `make test` proves the library on your machine."
    )
    return stage.names


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # The sections and the recordings belong to the repository, not to the package.
    run(Console(width=COLUMNS, highlight=False))
