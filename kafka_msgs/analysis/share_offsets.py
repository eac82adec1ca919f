"""The start offsets of share groups in a partition of ``__share_group_state``, as a reducer.

A start offset is the first record that the members of a group still need. The lag excludes completed records
(KIP-1226). Coordinators of older releases did not count these, and the lag is then unknown.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import chain
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field

from kafka_msgs.analysis.arrow_tables import columns, replaced
from kafka_msgs.analysis.offset_tables import OFFSETS, EndOffsets, lag_columns
from kafka_msgs.analysis.record_classification import PROBLEMS, unknown_type
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.internal_topics.records import (
    InternalRecord,
    TopicRecord,
    UnknownRecord,
    decode_record,
    encode_record,
)
from kafka_msgs.internal_topics.replay import TopicState, replay
from kafka_msgs.messages.share_snapshot_key import ShareSnapshotKey
from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue
from kafka_msgs.messages.share_update_key import ShareUpdateKey

__all__ = ["SHARE_STATE_TOPIC", "STATE_RECORDS", "LatestRecords", "ShareOffsets"]

SHARE_STATE_TOPIC: Final = "__share_group_state"
STATE_RECORDS: Final = columns("offset key value")
"""The records of a state, from which ``from_checkpoint`` rebuilds it."""


@define
class LatestRecords:
    """The state of a range: for each key its last record, or its last snapshot and the updates after it."""

    _records: dict[Hashable, list[tuple[int, InternalRecord]]] = field(factory=dict)

    def add(self, record: InternalRecord, offset: int = 0) -> None:
        """Add the next record of the range. ``offset`` is its offset in the log."""
        self._append(_place(record), [(offset, record)])

    def merge(self, later: LatestRecords) -> LatestRecords:
        """Return the state of this range and of the range after it. Both operands become unusable."""
        for place, records in later._records.items():
            self._append(place, records)
        return self

    def checkpoint(self) -> list[tuple[int, InternalRecord]]:
        """Return the offsets and records, from which ``add`` rebuilds the state."""
        return list(self._iter())

    def state(self) -> TopicState:
        """Return the state after the last record. Raises the errors of ``replay``."""
        return replay(record for _, record in self._iter())

    def _iter(self) -> Iterator[tuple[int, InternalRecord]]:
        return chain.from_iterable(self._records.values())

    def _append(self, place: Hashable, records: list[tuple[int, InternalRecord]]) -> None:
        kept = self._records.pop(place, [])
        if not _is_update(records[0][1]):
            kept.clear()
        kept += records
        self._records[place] = kept


def _place(record: InternalRecord) -> Hashable:
    """Return the key that a record affects."""
    key = record.key
    if isinstance(key, ShareSnapshotKey | ShareUpdateKey):
        return key.group_id, key.topic_id, key.partition
    return key


def _is_update(record: InternalRecord) -> bool:
    return isinstance(record, TopicRecord) and isinstance(record.key, ShareUpdateKey) and record.value is not None


@define
class ShareOffsets:
    """The state of a range: the records that determine the state of each share partition."""

    _latest: LatestRecords = field(factory=LatestRecords)

    @classmethod
    def from_checkpoint(cls, records: pa.Table) -> ShareOffsets:
        """Return the state in a checkpoint."""
        state = cls()
        for offset, key, value in zip(*(records[name].to_pylist() for name in STATE_RECORDS.names), strict=True):
            state._latest.add(decode_record(SHARE_STATE_TOPIC, key, value), offset)
        return state

    def add(self, records: pa.RecordBatch, file: str, segment: int) -> pa.Table:
        """Add the next records of the range; return the problems among them, with the columns of ``PROBLEMS``."""
        of_client = records.filter(pc.invert(records.column("is_control")))
        rows = zip(*(of_client.column(name).to_pylist() for name in ("offset", "key", "value")), strict=True)
        problems = [
            {"logOffset": offset, "file": file, "problem": problem}
            for offset, key, value in rows
            if (problem := self._add(offset, key, value)) is not None
        ]
        return pa.Table.from_pylist(problems, schema=PROBLEMS)

    def _add(self, offset: int, key: bytes | None, value: bytes | None) -> str | None:
        try:
            record = decode_record(SHARE_STATE_TOPIC, key, value)
        except KafkaMsgsError as error:
            return str(error)
        if isinstance(record, UnknownRecord):
            return unknown_type(record.record_type)
        self._latest.add(record, offset)
        return None

    def merge(self, later: ShareOffsets) -> ShareOffsets:
        """Return the state of this range and of the range after it. Both operands become unusable."""
        return ShareOffsets(self._latest.merge(later._latest))

    def checkpoint(self) -> pa.Table:
        """Return the state, with the columns of ``STATE_RECORDS``."""
        kept = self._latest.checkpoint()
        records = [{"offset": offset, **encode_record(record)._asdict()} for offset, record in kept]
        return pa.Table.from_pylist(records, schema=STATE_RECORDS)

    def offsets(self, number: int, topic_names: Mapping[UUID, str], ends: EndOffsets) -> pa.Table:
        """Return the start offsets in the partition with this number, with lags for known ends.

        ``topic_names`` maps topic ids to names. Partitions of unnamed topics are omitted, and so are partitions whose
        start offset is still undecided.
        """
        states = self._latest.state().select(ShareSnapshotKey, ShareSnapshotValue)
        rows = list(_rows(states, number, topic_names))
        found = pa.Table.from_pylist(rows, schema=OFFSETS)
        end_offsets = ends.ends(found["topic"].combine_chunks(), found["topicPartition"].combine_chunks())
        done = pa.array([row["done"] for row in rows], pa.int64())
        distance = pc.subtract(pc.subtract(end_offsets, found["committedOffset"].combine_chunks()), done)
        return replaced(found, endOffset=end_offsets, **lag_columns(distance))


def _rows(
    states: Mapping[ShareSnapshotKey, ShareSnapshotValue], number: int, topic_names: Mapping[UUID, str]
) -> Iterator[dict[str, Any]]:
    for key, state in states.items():
        if key.topic_id in topic_names and state.start_offset >= 0:
            yield {
                "group": key.group_id,
                "topic": topic_names[key.topic_id],
                "topicPartition": key.partition,
                "committedOffset": state.start_offset,
                "leaderEpoch": state.leader_epoch if state.leader_epoch >= 0 else None,
                "topicId": str(key.topic_id),
                "transactional": False,
                "stale": False,
                "logPartition": number,
                "done": state.delivery_complete_count if state.delivery_complete_count >= 0 else None,
            }
