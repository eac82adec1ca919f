"""Record the logs of tiered storage and of a quorum with its voters: ``python -m tests.recorders.tiered_log``.

Fills ``tiered/`` in the manner of :mod:`tests.recorders.log_directory`: a broker keeps the closed segments of a topic
in remote storage, deletes expired segments there, deletes the remaining segments with the topic, and records all this
in ``__remote_log_metadata-0``. Its controller was formatted as the only voter of a dynamic quorum, so the log of
``__cluster_metadata-0`` contains the voters and the KRaft version, and ``quorum-state`` has its newer form. The
checkpoints of the complete log directory are next to the partitions.

Requires Java (with its compiler), Maven and a package index; takes about a minute.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.recorders.broker import Broker, BrokerError, Jars, classpath, run_kafka_class
from tests.recorders.log_directory import take_directory
from tests.support.recordings import TIERED_LOGS, TIERED_PARTITIONS

__all__ = ["main"]

_STORAGE: Final = Path(__file__).parent / "clients" / "HeldInMemory.java"
_TOOLS: Final = "org.apache.kafka.tools."
_SETTINGS: Final = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": _STORAGE.stem,
    "remote.log.metadata.manager.listener.name": "LOCAL",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "remote.log.manager.task.interval.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "500",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.idle.interval.ms": "5000",
}
_TOPIC: Final = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "300",
    "local.retention.ms": "1000",
    "retention.ms": "8000",
}
_SECONDS: Final = 40


def main() -> None:
    """Run the session and copy the files."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-storage-") as directory:
        command = ["javac", "-proc:none", "-cp", classpath(Jars.NODE), "-d", directory, str(_STORAGE)]
        subprocess.run(command, check=True, timeout=120)
        settings = _SETTINGS | {"remote.log.storage.manager.class.path": f"{directory}/"}
        with Broker(settings=settings, standalone=True) as broker:
            _session(broker)
            broker.stop()
            take_directory(broker, TIERED_LOGS, TIERED_PARTITIONS)


def _session(broker: Broker) -> None:
    for topic, config in (("invoices", _TOPIC), ("receipts", _TOPIC | {"retention.ms": "-1"})):
        options = [part for name, value in config.items() for part in ("--config", f"{name}={value}")]
        _tool(broker, "TopicCommand", "--create", "--topic", topic, *options)
        for number in range(4):
            _tool(broker, "ConsoleProducer", "--topic", topic, stdin=f"{topic} {number}\n" * 6)
    _wait(broker, finished=4)
    _tool(broker, "TopicCommand", "--delete", "--topic", "receipts")
    time.sleep(10)


def _tool(broker: Broker, name: str, *arguments: str, stdin: str = "") -> None:
    run_kafka_class(_TOOLS + name, ["--bootstrap-server", broker.bootstrap, *arguments], stdin=stdin)


def _wait(broker: Broker, *, finished: int) -> None:
    """Wait until the broker's log shows this many finished segments."""
    log = broker.log_dir / "__remote_log_metadata-0" / f"{0:020}.log"
    deadline = time.monotonic() + _SECONDS
    while not log.exists() or log.read_bytes().count(b"in memory") < finished:
        if time.monotonic() > deadline:
            raise BrokerError("the broker keeps no segments in remote storage")
        time.sleep(0.5)


if __name__ == "__main__":
    main()
