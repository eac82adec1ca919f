"""The bytes of the small files in a log directory, and their atomic replacement.

``kafka_msgs.log.small_files`` reads the files and names Kafka's classes. The bytes are identical to Kafka's.
"""

from __future__ import annotations

import json
import os
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

from attrs import evolve

from kafka_msgs.checksums import crc32c
from kafka_msgs.log.small_files import DATA_VERSION, CleanShutdown, LeaderEpoch
from kafka_msgs.messages.producer_snapshot import ProducerSnapshot
from kafka_msgs.messages.quorum_state_data import QuorumStateData
from kafka_msgs.versioned import encode_versioned

__all__ = [
    "format_clean_shutdown",
    "format_leader_epochs",
    "format_meta_properties",
    "format_offset_checkpoint",
    "format_partition_metadata",
    "format_producer_snapshot",
    "format_quorum_state",
    "replace_file",
    "uuid_text",
]

_CRC_COVERS_FROM: Final = 6
_SPECIAL: Final = re.compile(r"[\\:=#! ]")
_CHECKPOINT_VERSION: Final = 0


def format_producer_snapshot(snapshot: ProducerSnapshot) -> bytes:
    """Return the content of a ``.snapshot`` file. The checksum of ``snapshot`` is computed here."""
    version = ProducerSnapshot.INFO.versions.highest
    crc = crc32c(encode_versioned(snapshot, version)[_CRC_COVERS_FROM:])
    return encode_versioned(evolve(snapshot, crc=crc), version)


def format_leader_epochs(epochs: Iterable[LeaderEpoch]) -> bytes:
    """Return the content of a ``leader-epoch-checkpoint``."""
    return _checkpoint(f"{epoch} {start}" for epoch, start in epochs)


def format_offset_checkpoint(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """Return the content of a file such as ``recovery-point-offset-checkpoint``: offsets by topic and partition."""
    return _checkpoint(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def _checkpoint(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in (_CHECKPOINT_VERSION, len(entries), *entries)).encode()


def format_partition_metadata(topic_id: UUID) -> bytes:
    """Return the content of a ``partition.metadata`` file."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def format_meta_properties(properties: Mapping[str, str], written_at: int) -> bytes:
    """Return the content of a ``meta.properties`` file, for example ``properties`` of ``MetaProperties``.

    ``written_at`` is the time in milliseconds since the epoch for the date comment.
    """
    date = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(written_at // 1000))
    lines = (f"{name}={_SPECIAL.sub(_escaped, value)}" for name, value in properties.items())
    return "".join(f"{line}\n" for line in ("#", f"#{date}", *lines)).encode()


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]


def format_clean_shutdown(content: CleanShutdown) -> bytes:
    """Return the content of a ``.kafka_cleanshutdown`` file."""
    return _json({"version": content.version, "brokerEpoch": content.broker_epoch})


def format_quorum_state(state: QuorumStateData, version: int) -> bytes:
    """Return the content of a ``quorum-state`` file."""
    return _json(state.to_json(version) | {DATA_VERSION: version})


def _json(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def uuid_text(value: UUID) -> str:
    """Return an id in Kafka's text format: 22 characters of base64."""
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file under a temporary name, and rename it when it is complete. Raises ``OSError``.

    After a crash of the process, the old or the new file exists. With ``durable`` this also holds after a machine
    crash.
    """
    new = path.with_name(path.name + ".tmp")
    with new.open("wb") as file:
        file.write(content)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    new.replace(path)
