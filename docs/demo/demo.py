"""The demonstration: ``make demo`` shows three short sessions, ``make demo-all`` recorded Kafka traffic and Spark.

The sessions (``tour``) need the extras ``cli`` and ``broker``, and pytest. The sections after them need ``generator``
and ``pipeline``, and Java for the last one; no broker, no network. The traffic was recorded from Apache Kafka by
``tests/recorders/client_traffic.py``, and the log directory by ``tests/recorders/group_logs.py``. Every command and
every Python line on the screen is the one that was run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).parents[2]
COLUMNS = 104
NEXT = (
    "Next: README.md lists the places to start. `make demo-all` decodes recorded traffic of a real broker and runs two "
    "Spark jobs; it downloads PySpark and pandas (about 500 MB) and uses Java, if installed."
)


def run(console: Console) -> dict[str, Any]:
    """Show the sections of ``make demo-all`` on ``console``; return the variables of the Python code on the screen."""
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


def tour(console: Console) -> None:
    """Show the sessions of ``make demo`` on ``console``."""
    from docs.demo.tour import show

    show(console)
    console.print(NEXT)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # The sections and the recordings belong to the repository, not to the package.
    screen = Console(width=COLUMNS, highlight=False)
    if "--all" in sys.argv[1:]:
        run(screen)
    else:
        tour(screen)
