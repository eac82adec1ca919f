"""Remote storage tiers, copied from other tiers or written from scratch, with the metadata a broker would write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from kafka_msgs.internal_topics.records import TopicRecord, encode_record
from kafka_msgs.internal_topics.remote_log import TopicIdPartition
from kafka_msgs.log.remote_naming import INDEX_SUFFIXES, REMOTE_NAMINGS, RemoteNaming
from kafka_msgs.log.writers.segment_writer import SegmentWriter
from kafka_msgs.message import Message
from kafka_msgs.messages import remote_log_segment_metadata_record as segments
from kafka_msgs.messages import remote_log_segment_metadata_update_record as updates
from kafka_msgs.records import BatchBuilder, BatchHeader

__all__ = ["METADATA", "as_aiven", "finished", "renamed", "write_metadata"]

METADATA: Final = "__remote_log_metadata"
_MANIFEST_NAMES: Final = ("offset", "timestamp", "transaction", "producerSnapshot", "leaderEpoch")


def renamed(tier: Path, target: Path, layout: RemoteNaming) -> Path:
    """Copy a tier with Kafka's names to one with different names; return the copy."""
    for path in tier.rglob("*.log"):
        name = REMOTE_NAMINGS["kafka"].name_of(str(path.relative_to(tier)))
        assert name is not None
        for ending in (".log", *INDEX_SUFFIXES):
            if path.with_suffix(ending).exists():
                copy = target / layout.path(name, ending)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path.with_suffix(ending), copy)
    return target


def as_aiven(tier: Path, target: Path, **manifest: Any) -> Path:
    """Copy a tier with Kafka's names to one in the format of Aiven's plugin; ``manifest`` adds to each manifest."""
    renamed(tier, target, REMOTE_NAMINGS["aiven"])
    for path in target.rglob("*.log"):
        found, places = b"", {}
        for name, ending in zip(_MANIFEST_NAMES, INDEX_SUFFIXES, strict=True):
            side = path.with_suffix(ending)
            places[name] = {"position": len(found), "size": side.stat().st_size} if side.exists() else None
            found += side.read_bytes() if side.exists() else b""
            side.unlink(missing_ok=True)
        path.with_suffix(".indexes").write_bytes(found)
        chunks = {"type": "fixed", "originalChunkSize": 4096, "originalFileSize": path.stat().st_size}
        whole = {"version": "1", "chunkIndex": chunks, "segmentIndexes": places, "compression": False} | manifest
        path.with_suffix(".rsm-manifest").write_text(json.dumps(whole))
    return target


def finished(
    place: TopicIdPartition, segment_id: UUID, offsets: tuple[int, int], epochs: Mapping[int, int], size: int
) -> Iterable[Message]:
    """Return the two records of a segment whose copy has finished; ``offsets`` are its first and last offsets."""
    of_copy = segments.TopicIdPartitionEntry(name=place.topic, id=place.topic_id, partition=place.partition)
    of_update = updates.TopicIdPartitionEntry(name=place.topic, id=place.topic_id, partition=place.partition)
    entries = (segments.SegmentLeaderEpochEntry(leader_epoch=epoch, offset=at) for epoch, at in epochs.items())
    yield segments.RemoteLogSegmentMetadataRecord(
        remote_log_segment_id=segments.RemoteLogSegmentIdEntry(topic_id_partition=of_copy, id=segment_id),
        start_offset=offsets[0],
        end_offset=offsets[1],
        segment_leader_epochs=tuple(entries),
        segment_size_in_bytes=size,
    )
    yield updates.RemoteLogSegmentMetadataUpdateRecord(
        remote_log_segment_id=updates.RemoteLogSegmentIdEntry(topic_id_partition=of_update, id=segment_id),
        remote_log_segment_state=1,
    )


def write_metadata(directory: Path, messages: Iterable[Message]) -> None:
    """Write a log directory whose metadata topic has these records."""
    with SegmentWriter(directory / f"{METADATA}-0", 0) as writer:
        for offset, message in enumerate(messages):
            builder = BatchBuilder(BatchHeader(base_offset=offset))
            record = encode_record(TopicRecord(topic=METADATA, value=message, version=0))
            assert builder.append(None, record.value, timestamp=1_700_000_000_000)
            writer.append(builder.build())
