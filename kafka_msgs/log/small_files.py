"""The content of the small files in a log directory, as typed values.

These are producer snapshots (``.snapshot``), ``leader-epoch-checkpoint``, the offset checkpoints, ``quorum-state``,
``partition.metadata``, ``meta.properties`` and ``.kafka_cleanshutdown``. Each file is read completely, up to a maximum
size. Damage always raises a ``LogFileError``, because the rest of a damaged small file is unusable. ``segment`` and
``indexes`` read segments and their indexes. In Kafka these files belong to the classes ``ProducerStateManager``,
``LeaderEpochCheckpointFile`` (KIP-101), ``OffsetCheckpointFile``, ``FileQuorumStateStore`` (KIP-595),
``PartitionMetadataFile`` (KIP-516), ``MetaProperties`` and ``CleanShutdownFileHandler`` (KIP-966).
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn
from uuid import UUID

from attrs import frozen

from kafka_msgs.checksums import crc32c
from kafka_msgs.errors import DecodeError, JsonFormError, LogFileError, UnsupportedVersionError
from kafka_msgs.log.mapped_file import read_whole
from kafka_msgs.messages.producer_snapshot import ProducerSnapshot
from kafka_msgs.messages.quorum_state_data import QuorumStateData
from kafka_msgs.versioned import Versioned, decode_versioned

__all__ = [
    "CHECKPOINTS",
    "CLEAN_OFFSETS",
    "DATA_VERSION",
    "HIGH_WATERMARKS",
    "LEADER_EPOCHS",
    "LOG_STARTS",
    "PARTITION_METADATA",
    "RECOVERY_POINTS",
    "CleanShutdown",
    "LeaderEpoch",
    "MetaProperties",
    "PartitionMetadata",
    "read_clean_shutdown",
    "read_leader_epochs",
    "read_meta_properties",
    "read_offset_checkpoint",
    "read_partition_metadata",
    "read_producer_snapshot",
    "read_quorum_state",
]

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
"""The file with the recovery points, below which logs are flushed to disk."""
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
"""The file with the high watermarks."""
LOG_STARTS: Final = "log-start-offset-checkpoint"
"""The file with the log start offsets that differ from the start of a segment."""
CLEAN_OFFSETS: Final = "cleaner-offset-checkpoint"
"""The file with the offsets below which logs are compacted."""
CHECKPOINTS: Final = (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, CLEAN_OFFSETS)
"""The checkpoint files of a log directory: offsets by topic and partition."""
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
"""The leader epoch file of a partition."""
PARTITION_METADATA: Final = "partition.metadata"
"""The file with the topic id of a partition."""

_CRC_COVERS_FROM: Final = 6
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")
_ESCAPE: Final = re.compile(r"\\(.)")
DATA_VERSION: Final = "data_version"
"""The property of ``quorum-state`` that contains its version."""


class LeaderEpoch(NamedTuple):
    """A leader epoch and its start offset (KIP-101)."""

    epoch: int
    start_offset: int


@frozen
class PartitionMetadata:
    """The content of ``partition.metadata``: the topic id (KIP-516), and the version of the file."""

    version: int
    topic_id: UUID


@frozen(kw_only=True)
class MetaProperties:
    """The content of ``meta.properties``, which describes a log directory.

    ``version`` is the version of the file. It is 1 if the node runs in KRaft mode. Missing properties are None.
    ``properties`` contains all properties of the file, as text.
    """

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: UUID | None
    properties: Mapping[str, str]


class CleanShutdown(NamedTuple):
    """The content of ``.kafka_cleanshutdown``, which a node writes when it shuts down cleanly (KIP-966).

    ``broker_epoch`` is the epoch of the broker at that time, or -1 if unknown.
    """

    version: int
    broker_epoch: int


def read_producer_snapshot(path: Path) -> ProducerSnapshot:
    """Return the content of a ``.snapshot`` file: the producers of a partition. Its checksum is verified.

    Raises ``LogFileError`` and ``OSError``.
    """
    data = read_whole(path)
    try:
        snapshot = decode_versioned(ProducerSnapshot, data).message
    except UnsupportedVersionError as error:
        _fail(path, 0, len(data), str(error))
    except DecodeError as error:
        _fail(path, error.offset, len(data) - error.offset, str(error))
    found = crc32c(data[_CRC_COVERS_FROM:])
    if found != snapshot.crc:
        _fail(path, 2, len(data) - 2, f"the checksum is {snapshot.crc:08x}, the bytes have {found:08x}")
    return snapshot


def read_leader_epochs(path: Path) -> tuple[LeaderEpoch, ...]:
    """Return the entries of a ``leader-epoch-checkpoint`` in order. Raises ``LogFileError`` and ``OSError``."""
    return tuple(LeaderEpoch(*line.numbers(line.text.split(" "), 2)) for line in _checkpoint(path))


def read_offset_checkpoint(path: Path) -> dict[tuple[str, int], int]:
    """Return the offsets, by topic and partition, of a file such as ``recovery-point-offset-checkpoint``.

    Raises ``LogFileError`` and ``OSError``.
    """
    offsets = {}
    for line in _checkpoint(path):
        topic, *rest = line.text.split(" ")
        partition, offset = line.numbers(rest, 2)
        offsets[topic, partition] = offset
    return offsets


def read_partition_metadata(path: Path) -> PartitionMetadata:
    """Return the content of a ``partition.metadata`` file. Raises ``LogFileError`` and ``OSError``."""
    found = {}
    for line in _lines(path):
        name, colon, value = line.text.partition(": ")
        if not colon:
            line.fail("a name and a value were expected")
        found[name] = _Line(path, line.position, value)
    for name in ("version", "topic_id"):
        if name not in found:
            _fail(path, 0, path.stat().st_size, f"{name} is missing")
    return PartitionMetadata(found["version"].number(), found["topic_id"].uuid())


def read_meta_properties(path: Path) -> MetaProperties:
    """Return the content of a ``meta.properties`` file. Raises ``LogFileError`` and ``OSError``."""
    found = {}
    for line in _lines(path):
        if line.text.startswith(("#", "!")):
            continue
        name, equals, value = line.text.partition("=")
        if not equals:
            line.fail("a name and a value were expected")
        found[name.strip()] = _Line(path, line.position, _ESCAPE.sub(r"\1", value.strip()))
    cluster, directory = found.get("cluster.id"), found.get("directory.id")
    node, version = found.get("node.id", found.get("broker.id")), found.get("version")
    return MetaProperties(
        version=version.number() if version else 0,
        cluster_id=cluster.text if cluster else None,
        node_id=node.number() if node else None,
        directory_id=directory.uuid() if directory else None,
        properties={name: line.text for name, line in found.items()},
    )


def read_quorum_state(path: Path) -> Versioned[QuorumStateData]:
    """Return the content of a ``quorum-state`` file: the node's last known quorum, and the version of the file.

    A quorum whose voters are stored in the log uses version 1 (KIP-853). ``current_voters`` is then empty. Raises
    ``LogFileError`` and ``OSError``.
    """
    found = _json_object(path)
    version = _member(path, found, DATA_VERSION)
    data = {name: value for name, value in found.items() if name != DATA_VERSION}
    try:
        return Versioned(version, QuorumStateData.from_json(data, version))
    except (JsonFormError, UnsupportedVersionError) as error:
        _fail(path, 0, path.stat().st_size, str(error))


def read_clean_shutdown(path: Path) -> CleanShutdown:
    """Return the content of a ``.kafka_cleanshutdown`` file. Raises ``LogFileError`` and ``OSError``."""
    found = _json_object(path)
    return CleanShutdown(_member(path, found, "version"), _member(path, found, "brokerEpoch"))


def _json_object(path: Path) -> dict[str, Any]:
    data = read_whole(path)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        _fail(path, 0, len(data), f"not JSON: {error}")
    if not isinstance(found, dict):
        _fail(path, 0, len(data), "a JSON object was expected")
    return found


def _member(path: Path, found: dict[str, Any], name: str) -> int:
    """Return the JSON member with this name, which must be a number."""
    if type(found.get(name)) is not int:
        _fail(path, 0, path.stat().st_size, f"{name} is missing or is not a number")
    number: int = found[name]
    return number


@frozen
class _Line:
    """A line of a text file, or a value in it, and the byte position of the line."""

    path: Path
    position: int
    text: str

    def fail(self, reason: str) -> NoReturn:
        _fail(self.path, self.position, len(self.text), f"{self.text!r}: {reason}")

    def number(self) -> int:
        if _NUMBER.fullmatch(self.text) is None:
            self.fail("a number was expected")
        return int(self.text)

    def numbers(self, texts: list[str], count: int) -> tuple[int, ...]:
        if len(texts) != count or not all(map(_NUMBER.fullmatch, texts)):
            self.fail(f"{count} numbers were expected")
        return tuple(map(int, texts))

    def uuid(self) -> UUID:
        try:
            return UUID(bytes=urlsafe_b64decode(self.text + "=="))
        except (binascii.Error, ValueError):
            self.fail("an id of 22 characters was expected")


def _lines(path: Path) -> Iterator[_Line]:
    """Yield the nonempty lines."""
    position = 0
    for raw in BytesIO(read_whole(path)):
        text = raw.decode("utf-8", "backslashreplace").rstrip("\r\n")
        if text:
            yield _Line(path, position, text)
        position += len(raw)


def _checkpoint(path: Path) -> Iterator[_Line]:
    """Yield the entries of a checkpoint.

    Its first line is the version, 0, and its second line the number of entries, which is checked after the last one.
    """
    lines = _lines(path)
    version, count = next(lines, None), next(lines, None)
    if version is None or count is None:
        _fail(path, 0, path.stat().st_size, "a version and a number of entries were expected")
    if version.number() != 0:
        version.fail("the version is not known")
    expected, found = count.number(), 0
    for found, entry in enumerate(lines, 1):
        if found > expected:
            count.fail("there are more entries")
        yield entry
    if found != expected:
        count.fail(f"there are {found} entries")


def _fail(path: Path, position: int, skipped: int, reason: str) -> NoReturn:
    raise LogFileError(file=str(path), position=position, skipped=skipped, reason=reason) from None
