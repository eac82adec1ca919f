"""Facts of a cluster's log directories that decide about an upgrade: features, message formats, and ZooKeeper mode.

Reads the metadata log with its newest snapshot, ``meta.properties``, and the headers of all batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from attrs import Factory, define

from kafka_msgs.errors import KafkaMsgsError, LogFileError, RecordError
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.log.batch_runs import walk_runs
from kafka_msgs.log.file_scan import AnyBatch, FileScan
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.metadata_log_state import METADATA_TOPIC
from kafka_msgs.log.partition_discovery import partitions_in
from kafka_msgs.log.small_files import read_meta_properties
from kafka_msgs.messages.feature_level_record import FeatureLevelRecord
from kafka_msgs.messages.zk_migration_state_record import ZkMigrationStateRecord
from kafka_msgs.records import LegacyBatch, ReadOptions
from kafka_msgs.records.batch import BatchRun

__all__ = ["ClusterFiles", "OldFormat", "read_cluster_files"]

_ZOOKEEPER_META: Final = 0
_OPTIONS: Final = ReadOptions(check_crc=False)


@define
class OldFormat:
    """The batches of a topic in a message format (magic 0 or 1). Times are in milliseconds, None without timestamps."""

    topic: str
    magic: int
    batches: int = 0
    first_ms: int | None = None
    last_ms: int | None = None


@define
class ClusterFiles:
    """The facts. ``features`` maps finalized features to levels, ``problems`` lists unreadable files and records.

    ``zookeeper`` contains the directories of brokers in ZooKeeper mode. ``migration_state`` is the last state of the
    migration to KRaft in the metadata log (KIP-866), or None.
    """

    features: dict[str, int] = Factory(dict)
    formats: dict[tuple[str, int], OldFormat] = Factory(dict)
    zookeeper: list[str] = Factory(list)
    migration_state: int | None = None
    problems: list[str] = Factory(list)


def read_cluster_files(paths: Iterable[Path]) -> ClusterFiles:
    """Read log directories or partition directories. Raises ``JobPathError`` for a path without partitions."""
    paths = list(paths)
    found = ClusterFiles()
    for path in paths:
        _read_mode(path, found)
    for partition in partitions_in(paths):
        if partition.topic == METADATA_TOPIC:
            _read_metadata(partition, found)
        else:
            _read_formats(partition, found)
    return found


def _read_mode(path: Path, found: ClusterFiles) -> None:
    file = path / "meta.properties"
    if not file.is_file():
        return
    try:
        meta = read_meta_properties(file)
    except (LogFileError, OSError) as error:
        found.problems.append(str(error))
        return
    if meta.version == _ZOOKEEPER_META:
        found.zookeeper.append(str(path))


def _read_metadata(partition: Partition, found: ClusterFiles) -> None:
    snapshot = partition.snapshots[-1] if partition.snapshots else None
    for message in _decoded(snapshot.walk_batches() if snapshot else (), found):
        _apply(message, found)
    for message in _decoded(partition.walk_batches(snapshot.end_offset if snapshot else 0), found):
        _apply(message, found)


def _decoded(items: Iterable[AnyBatch | LogFileError], found: ClusterFiles) -> Iterator[Any]:
    for item in items:
        if isinstance(item, LogFileError):
            found.problems.append(str(item))
            continue
        try:
            records = list(decode_batches(METADATA_TOPIC, [item]))
        except KafkaMsgsError as error:
            found.problems.append(str(error))
            continue
        yield from (record.value for record in records if isinstance(record, TopicRecord))


def _apply(message: Any, found: ClusterFiles) -> None:
    if isinstance(message, FeatureLevelRecord):
        if message.feature_level:
            found.features[message.name] = message.feature_level
        else:
            found.features.pop(message.name, None)
    elif isinstance(message, ZkMigrationStateRecord):
        found.migration_state = message.zk_migration_state


def _read_formats(partition: Partition, found: ClusterFiles) -> None:
    for segment in partition.segments:
        try:
            for item in walk_runs(FileScan(segment.path, _OPTIONS, closed=segment.closed)):
                _count(partition.topic, item, found)
        except (LogFileError, RecordError, OSError) as error:
            found.problems.append(str(error))


def _count(topic: str, item: BatchRun | AnyBatch | LogFileError | RecordError, found: ClusterFiles) -> None:
    if isinstance(item, LogFileError | RecordError):
        found.problems.append(str(item))
    elif isinstance(item, LegacyBatch):
        use = found.formats.setdefault((topic, item.magic), OldFormat(topic, item.magic))
        use.batches += 1
        if item.max_timestamp is not None and item.max_timestamp >= 0:
            use.first_ms = min(item.max_timestamp, item.max_timestamp if use.first_ms is None else use.first_ms)
            use.last_ms = max(item.max_timestamp, use.last_ms or 0)
