"""Record a real broker's internal topics: ``python -m tests.recorders.internal_topics``.

Writes ``internal_topics.jsonl``: one JSON object per line, after a line that describes the recording. Each object
contains ``topic``, ``offset``, ``timestamp`` (milliseconds since the epoch), ``producer_id`` if it belongs to a
transaction, and either ``key`` and ``value`` in hexadecimal or null, or ``marker``: ``commit`` or ``abort`` of that
producer.

The story: a client pays for orders in three transactions: one commits, one aborts, and one stays open until the
coordinator aborts it. Two share groups read the orders, and one of them is deleted; a topic is created and deleted, and
a client gets a quota. The broker's periodic liveness records are thinned out.

Requires Java, Maven and a package index; takes about two minutes.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kafka_msgs import NoOpRecord
from kafka_msgs.internal_topics.records import TopicRecord
from tests.recorders.broker import Broker, Jars, run_kafka_class
from tests.recorders.broker_configs import limit_producers, share_from_earliest
from tests.recorders.client_traffic import python_with_clients, write_recording
from tests.recorders.log_file import read_partition
from tests.support.recorded_records import Line, record_of
from tests.support.recordings import INTERNAL_TOPICS

__all__ = ["main"]

_CLIENTS: Final = {"confluent-kafka": "2.16.1"}
_TOPICS: Final = ("__cluster_metadata", "__consumer_offsets", "__share_group_state", "__transaction_state")
_TOOLS: Final = "org.apache.kafka.tools."
_IDLE_KEPT: Final = 2


def main() -> None:
    """Run the session and write the recording."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-clients-") as directory:
        python = python_with_clients(Path(directory), _CLIENTS)
        with Broker() as broker:
            _session(broker, python)
            lines = [line for topic in _TOPICS for line in _recorded(broker, topic)]
    clients = {"kafka-tools": Jars.TOOLS.release, **_CLIENTS}
    write_recording(
        INTERNAL_TOPICS, "internal topics", lines, clients=clients, script="tests/recorders/internal_topics.py"
    )


def _session(broker: Broker, python: Path) -> None:
    _tool(broker, "TopicCommand", "--create", "--topic", "orders", "--partitions", "2")
    _tool(broker, "TopicCommand", "--create", "--topic", "drafts", "--config", "retention.ms=60000")
    _produce(broker, "green tea", "oolong")
    client = Path(__file__).parent / "clients" / "transactions.py"
    subprocess.run([python, client, broker.bootstrap], check=True, timeout=120)
    for group in ("packing", "returns"):
        share_from_earliest(broker.bootstrap, group)
        _share(broker, group)
    _produce(broker, "mint", "cocoa")
    _share(broker, "packing")
    _tool(broker, "consumer.group.ShareGroupCommand", "--delete", "--group", "returns")
    limit_producers(broker.bootstrap, client_id="shop", bytes_per_second=65536)
    _tool(broker, "TopicCommand", "--delete", "--topic", "drafts")


def _tool(broker: Broker, name: str, *arguments: str, stdin: str = "") -> None:
    run_kafka_class(_TOOLS + name, ["--bootstrap-server", broker.bootstrap, *arguments], stdin=stdin)


def _produce(broker: Broker, *items: str) -> None:
    _tool(broker, "ConsoleProducer", "--topic", "orders", stdin="".join(f"{item}\n" for item in items))


def _share(broker: Broker, group: str) -> None:
    _tool(broker, "consumer.ConsoleShareConsumer", "--topic", "orders", "--group", group, "--timeout-ms", "6000")


def _recorded(broker: Broker, topic: str) -> Iterator[Line]:
    idle = 0
    for line in read_partition(broker.log_dir / f"{topic}-0"):
        full = {"topic": topic, **line}
        idle += _is_idle(full)
        if not _is_idle(full) or idle <= _IDLE_KEPT:
            yield full


def _is_idle(line: Line) -> bool:
    record = record_of(line)
    return isinstance(record, TopicRecord) and isinstance(record.value, NoOpRecord)


if __name__ == "__main__":
    main()
