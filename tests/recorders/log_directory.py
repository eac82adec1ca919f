"""Record the log directory of a real broker: ``python -m tests.recorders.log_directory``.

Fills ``logs/``: the files of two partitions and of the metadata log after the broker stopped, with the output of
Kafka's own ``DumpLogSegments`` for the files of each directory in its ``dump.txt``.

``codecs-0`` has two segments: every compression, idempotent producers, headers, tombstones, and transactions, one of
them aborted. ``prices-0`` was compacted and uses the broker's time. ``__transaction_state-0`` contains the
coordinator's records from that time, ``__cluster_metadata-0`` the controller's, with a KRaft snapshot.

Requires Java, Maven and a package index; takes about a minute.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.recorders.broker import Broker, run_kafka_class
from tests.recorders.client_traffic import python_with_clients
from tests.support.recordings import LOG_PARTITIONS, LOGS

__all__ = ["dump_of", "main", "take_directory"]

_CLIENTS: Final = {"confluent-kafka": "2.16.1"}
_SETTINGS: Final = {
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.idle.interval.ms": "5000",
}
_DUMPED: Final = (".checkpoint", ".index", ".log", ".snapshot", ".timeindex", ".txnindex")
_DECODERS: Final = {
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__consumer_offsets": "--offsets-decoder",
    "__remote_log_metadata": "--remote-log-metadata-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__transaction_state": "--transaction-log-decoder",
}
_CLEANING_SECONDS: Final = 12


def main() -> None:
    """Run the session and copy the files."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-clients-") as directory:
        python = python_with_clients(Path(directory), _CLIENTS)
        with Broker(settings=_SETTINGS) as broker:
            client = Path(__file__).parent / "clients" / "log_directory.py"
            subprocess.run([python, client, broker.bootstrap], check=True, timeout=120)
            time.sleep(_CLEANING_SECONDS)
            broker.stop()
            take_directory(broker, LOGS, LOG_PARTITIONS)


def take_directory(broker: Broker, target: Path, partitions: Iterable[str]) -> None:
    """Replace ``target`` by the partition directories of a stopped broker, each with Kafka's dump.

    Also copies the files that describe the complete log directory.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in broker.log_dir.iterdir():
        if path.is_file() and path.name != ".lock":
            shutil.copy(path, target)
    for name in partitions:
        # Segment files that await deletion have another suffix.
        shutil.copytree(broker.log_dir / name, target / name, ignore=shutil.ignore_patterns("*.deleted", "*.lock"))
        (target / name / "dump.txt").write_text(dump_of(broker, target / name))


def dump_of(broker: Broker, directory: Path) -> str:
    """Return the output of Kafka's tool for the files, without their directory."""
    files = ",".join(str(path) for path in sorted(directory.iterdir()) if path.suffix in _DUMPED)
    option = _DECODERS.get(directory.name.rpartition("-")[0], "--print-data-log")
    said = run_kafka_class("org.apache.kafka.tools.DumpLogSegments", ["--files", files, option])
    return said.replace(f"{directory}/", "")


if __name__ == "__main__":
    main()
