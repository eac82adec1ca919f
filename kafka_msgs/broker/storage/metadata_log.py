"""The metadata log of a cluster in the log directories of its nodes, one of which is the leader.

Each opening starts a new leader epoch. The records of one ``append`` form one batch, so they are stored completely or
not at all. Snapshots keep the log short (KIP-630). Kafka nodes can open the directories, and this module can open
directories of Kafka nodes. In Kafka this is ``KafkaRaftLog`` with ``QuorumState`` in ``org.apache.kafka.raft``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import evolve

from kafka_msgs.broker.storage.log_cleanup import delete_old_segments
from kafka_msgs.broker.storage.log_directory_store import LogDirectoryStore
from kafka_msgs.broker.storage.metadata_batches import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    format_snapshot,
    leader_change_batch,
    metadata_batch,
)
from kafka_msgs.broker.storage.partition_log import PartitionLog
from kafka_msgs.broker.storage.producer_state import AppendOrigin
from kafka_msgs.broker.storage.replica_set import ReplicaSet
from kafka_msgs.broker.storage.topic_config import TopicConfig
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.log.file_scan import AnyBatch
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.small_files import read_quorum_state
from kafka_msgs.log.writers.small_files import format_quorum_state, replace_file
from kafka_msgs.message import Message, MetadataRecord
from kafka_msgs.messages.abort_transaction_record import AbortTransactionRecord
from kafka_msgs.messages.begin_transaction_record import BeginTransactionRecord
from kafka_msgs.messages.end_transaction_record import EndTransactionRecord
from kafka_msgs.messages.quorum_state_data import QuorumStateData, Voter
from kafka_msgs.records import ControlType, RecordBatch

__all__ = ["MetadataLog"]

_QUORUM_STATE: Final = "quorum-state"
_BOOTSTRAP: Final = "bootstrap.checkpoint"
_QUORUM: Final = (ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS)
_CONFIG: Final = TopicConfig(retention_ms=-1, max_message_bytes=2**31 - 1)


class MetadataLog:
    """The metadata log in the directories ``stores``. ``now`` is in milliseconds since the epoch.

    The leader is the node of the first directory whose node is a voter. In a new log, the nodes of all directories are
    voters. ``is_new`` is True if no log existed. Raises ``OSError`` and ``LogFileError``.
    """

    def __init__(self, stores: Sequence[LogDirectoryStore], *, now: int) -> None:
        self._directories = [store.path for store in stores]
        self._files = ReplicaSet(METADATA_TOPIC, METADATA_TOPIC_ID, 0, stores).partition
        self._path = self._files.files.first
        self._log = PartitionLog(METADATA_TOPIC, METADATA_TOPIC_ID, 0, _CONFIG, self._files, now=now)
        self.is_new = not self._log.log_end_offset and not Partition(self._path).snapshots
        self._quorum: dict[ControlType, Message] = {}
        self._written_at = now
        self._snapshot_end = max((each.end_offset for each in Partition(self._path).snapshots), default=0)
        self._catch_up(now)
        nodes = [store.meta.node_id for store in stores if store.meta.node_id is not None]
        self.leader_epoch = self._lead(nodes)
        data = leader_change_batch(self.leader, self.voters, timestamp=now)
        self._log.append(data, leader_epoch=self.leader_epoch, now=now, origin=AppendOrigin.COORDINATOR)

    def _catch_up(self, now: int) -> None:
        """Start the log at the latest snapshot if it ends before it, as after copying a snapshot."""
        if self._log.log_end_offset < self._snapshot_end:
            self._log.start_empty_at(self._snapshot_end, now)

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._log.log_end_offset

    def _lead(self, nodes: Sequence[int]) -> int:
        """Begin the next epoch with one of the nodes as the leader, and return its id."""
        path = self._path / _QUORUM_STATE
        if path.exists():
            version, state = read_quorum_state(path)
        else:
            version, state = 0, QuorumStateData(leader_epoch=0, current_voters=tuple(Voter(voter_id=n) for n in nodes))
        self.voters: list[int] = [each.voter_id for each in state.current_voters or ()] or [nodes[0]]
        self.leader: int = next((each for each in nodes if each in self.voters), nodes[0])
        latest = self._log.epochs.latest
        epoch = max(state.leader_epoch, -1 if latest is None else latest) + 1
        state = evolve(state, leader_id=self.leader, leader_epoch=epoch, voted_id=-1)
        self._files.files.replace(_QUORUM_STATE, format_quorum_state(state, version))
        return epoch

    def write_bootstrap(self, records: Sequence[MetadataRecord], now: int) -> None:
        """Write the initial records of a new cluster to the file that Kafka nodes read. Raises ``OSError``."""
        for directory in self._directories:
            replace_file(directory / _BOOTSTRAP, format_snapshot(records, timestamp=now))

    def append(self, records: Sequence[MetadataRecord], now: int) -> None:
        """Append records as one batch. Raises ``RequestRefusedError`` if they cannot be stored."""
        if records:
            data = metadata_batch(records, timestamp=now)
            self._log.append(data, leader_epoch=self.leader_epoch, now=now, origin=AppendOrigin.COORDINATOR)
            self._written_at = now

    def records(self) -> Iterator[MetadataRecord]:
        """Yield the records of the latest snapshot and all later records, without aborted transactions (KIP-868).

        Raises the errors of ``decode_batches`` and ``read_log``.
        """
        pending: list[MetadataRecord] | None = None
        for record in self._stored():
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

    def _stored(self) -> Iterator[MetadataRecord]:
        partition, start = Partition(self._path), 0
        if partition.snapshots:
            latest = partition.snapshots[-1]
            start = latest.end_offset
            yield from self._decoded(latest.batches())
        yield from self._decoded(batch for batch in partition.batches(start) if batch.last_offset >= start)

    def _decoded(self, batches: Iterator[AnyBatch]) -> Iterator[MetadataRecord]:
        for batch in batches:
            if isinstance(batch, RecordBatch) and batch.is_control:
                self._take_quorum(batch)
            for record in decode_batches(METADATA_TOPIC, (batch,)):
                if isinstance(record, TopicRecord) and isinstance(record.value, MetadataRecord):
                    yield record.value

    def _take_quorum(self, batch: RecordBatch) -> None:
        for control in batch.control_records():
            if control.type in _QUORUM and isinstance(control.type, ControlType) and control.message is not None:
                self._quorum[control.type] = control.message

    @property
    def size(self) -> int:
        """The number of log bytes after the latest snapshot."""
        segments = self._log.segments.from_offset(self._snapshot_end)
        first = segments[0].batch_of(self._snapshot_end)
        return sum(segment.size for segment in segments) - (first.position if first else segments[0].size)

    def write_snapshot(self, records: Iterable[MetadataRecord], now: int) -> None:
        """Write the current state of the cluster, and remove obsolete files. Raises ``OSError``.

        The next opening reads the snapshot and all later records.
        """
        end = self.end_offset
        content = format_snapshot(
            records,
            timestamp=now,
            last_timestamp=self._written_at,
            leader_epoch=self.leader_epoch,
            quorum=self._quorum,
        )
        older = [each.path.name for each in Partition(self._path).snapshots]
        self._files.files.replace(f"{end:020}-{self.leader_epoch:010}.checkpoint", content)
        self._snapshot_end = end
        self._log.roll(now)
        self._log.increment_log_start_offset(end)
        delete_old_segments(self._log, now)
        for name in older:
            self._files.files.unlink(name)

    def close(self, *, clean: bool = True) -> None:
        """Close the log."""
        self._log.close(clean=clean)
