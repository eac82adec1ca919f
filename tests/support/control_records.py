"""A control record of each type, and batches of them."""

from __future__ import annotations

from kafka_msgs import (
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    Message,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from kafka_msgs.messages.leader_change_message import Voter
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlType

MESSAGES: dict[ControlType, Message] = {
    ControlType.ABORT: EndTxnMarker(coordinator_epoch=3),
    ControlType.COMMIT: EndTxnMarker(coordinator_epoch=4),
    ControlType.LEADER_CHANGE: LeaderChangeMessage(leader_id=1, voters=(Voter(voter_id=1),), granting_voters=()),
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord(last_contained_log_timestamp=5),
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord(),
    ControlType.KRAFT_VERSION: KRaftVersionRecord(kraft_version=1),
    ControlType.KRAFT_VOTERS: VotersRecord(voters=()),
}


def control_batch(kind: ControlType, message: Message, version: int = 0) -> bytes:
    builder = BatchBuilder(BatchHeader(control=True, base_offset=9, producer_id=1, producer_epoch=0))
    assert builder.append_control(kind, message, timestamp=1000, version=version)
    return builder.build()
