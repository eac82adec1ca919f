"""Record a partition while its broker writes to it: ``python -m tests.recorders.active_log``.

Fills ``active/drafts-0`` before the broker stops: the last segment and its indexes end in preallocated space; the
previous segment does not. ``dump.txt`` is the output of Kafka's own ``DumpLogSegments`` for the partition after the
broker has stopped and released the preallocated space.

Requires Java, Maven and a package index; takes half a minute.
"""

from __future__ import annotations

import shutil
from typing import Final

from tests.recorders.broker import Broker, run_kafka_class
from tests.recorders.log_directory import dump_of
from tests.support.recordings import ACTIVE_LOGS

__all__ = ["main"]

_TOOLS: Final = "org.apache.kafka.tools."
_TOPIC: Final = {
    "preallocate": "true",
    "internal.segment.bytes": "1000",
    "segment.index.bytes": "240",
    "index.interval.bytes": "1",
}


def main() -> None:
    """Run the session and copy the files."""
    options = [part for name, value in _TOPIC.items() for part in ("--config", f"{name}={value}")]
    with Broker() as broker:
        where = ["--bootstrap-server", broker.bootstrap, "--topic", "drafts"]
        run_kafka_class(f"{_TOOLS}TopicCommand", [*where, "--create", *options])
        for number in range(8):
            run_kafka_class(f"{_TOOLS}ConsoleProducer", where, stdin=f"draft {number}\n" * 6)
        shutil.rmtree(ACTIVE_LOGS, ignore_errors=True)
        shutil.copytree(broker.log_dir / "drafts-0", ACTIVE_LOGS / "drafts-0")
        broker.stop()
        (ACTIVE_LOGS / "drafts-0" / "dump.txt").write_text(dump_of(broker, broker.log_dir / "drafts-0"))


if __name__ == "__main__":
    main()
