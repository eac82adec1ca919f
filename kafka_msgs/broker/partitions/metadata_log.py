"""The metadata log of a cluster in a log directory: a quorum of one node, which leads it.

Each opening is a new epoch of the leader. The records of one ``append`` are one batch, so they are there as a whole or
not at all. A node of Kafka opens the directory as its own, and the other way round. In Kafka this is ``KafkaRaftLog``
with ``QuorumState`` in ``org.apache.kafka.raft``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import evolve

from kafka_msgs.broker.partitions.config import TopicConfig
from kafka_msgs.broker.partitions.directory import LogDirectoryStore
from kafka_msgs.broker.partitions.log import PartitionLog
from kafka_msgs.broker.partitions.metadata_batches import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    format_snapshot,
    leader_change_batch,
    metadata_batch,
)
from kafka_msgs.broker.partitions.producers import Origin
from kafka_msgs.log.files import read_quorum_state
from kafka_msgs.log.partition import Partition
from kafka_msgs.log.scan import AnyBatch
from kafka_msgs.log.writing.files import format_quorum_state, replace_file
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.abort_transaction_record import AbortTransactionRecord
from kafka_msgs.messages.begin_transaction_record import BeginTransactionRecord
from kafka_msgs.messages.end_transaction_record import EndTransactionRecord
from kafka_msgs.messages.quorum_state_data import QuorumStateData, Voter
from kafka_msgs.topics.batches import decode_batches
from kafka_msgs.topics.records import TopicRecord

__all__ = ["MetadataLog"]

_QUORUM_STATE: Final = "quorum-state"
_BOOTSTRAP: Final = "bootstrap.checkpoint"
_CONFIG: Final = TopicConfig(retention_ms=-1, max_message_bytes=2**31 - 1)


class MetadataLog:
    """The metadata log in ``store``, led by the node ``node_id``. ``now`` is in milliseconds since the epoch.

    ``is_new`` says whether the directory had none. Raises ``OSError`` and ``LogFileError``.
    """

    def __init__(self, store: LogDirectoryStore, node_id: int, *, now: int) -> None:
        self._directory = store.path
        self._path = store.path / f"{METADATA_TOPIC}-0"
        place = store.open(METADATA_TOPIC, METADATA_TOPIC_ID, 0)
        self._log = PartitionLog(METADATA_TOPIC, METADATA_TOPIC_ID, 0, _CONFIG, place, now=now)
        self.is_new = not self._log.log_end_offset
        self.leader_epoch = self._lead(node_id)
        data = leader_change_batch(node_id, [node_id], timestamp=now)
        self._log.append(data, leader_epoch=self.leader_epoch, now=now, origin=Origin.COORDINATOR)

    def _lead(self, node_id: int) -> int:
        """Begin the next epoch, and return its number."""
        path = self._path / _QUORUM_STATE
        if path.exists():
            version, state = read_quorum_state(path)
        else:
            version, state = 0, QuorumStateData(leader_epoch=0, current_voters=(Voter(voter_id=node_id),))
        latest = self._log.epochs.latest
        epoch = max(state.leader_epoch, -1 if latest is None else latest) + 1
        state = evolve(state, leader_id=node_id, leader_epoch=epoch, voted_id=-1)
        replace_file(path, format_quorum_state(state, version))
        return epoch

    def write_bootstrap(self, records: Sequence[MetadataRecord], now: int) -> None:
        """Write what a new cluster begins with where a node of Kafka looks for it. Raises ``OSError``."""
        replace_file(self._directory / _BOOTSTRAP, format_snapshot(records, timestamp=now))

    def append(self, records: Sequence[MetadataRecord], now: int) -> None:
        """Append records as one batch. Raises ``RefusedError`` if they cannot be stored."""
        if records:
            data = metadata_batch(records, timestamp=now)
            self._log.append(data, leader_epoch=self.leader_epoch, now=now, origin=Origin.COORDINATOR)

    def records(self) -> Iterator[MetadataRecord]:
        """Yield the records of the latest snapshot and those after it. Aborted transactions are left out (KIP-868).

        Raises what ``decode_batches`` and ``read_log`` raise.
        """
        pending: list[MetadataRecord] | None = None
        for record in _stored(self._path):
            if isinstance(record, BeginTransactionRecord):
                pending = []
            elif isinstance(record, EndTransactionRecord):
                yield from pending or ()
                pending = None
            elif isinstance(record, AbortTransactionRecord):
                pending = None
            elif pending is not None:
                pending.append(record)
            else:
                yield record

    def close(self, *, clean: bool = True) -> None:
        """Close the log."""
        self._log.close(clean=clean)


def _stored(path: Path) -> Iterator[MetadataRecord]:
    partition, start = Partition(path), 0
    if partition.snapshots:
        latest = partition.snapshots[-1]
        start = latest.end_offset
        yield from _decoded(latest.batches())
    yield from _decoded(batch for batch in partition.batches(start) if batch.last_offset >= start)


def _decoded(batches: Iterator[AnyBatch]) -> Iterator[MetadataRecord]:
    for record in decode_batches(METADATA_TOPIC, batches):
        if isinstance(record, TopicRecord) and isinstance(record.value, MetadataRecord):
            yield record.value
