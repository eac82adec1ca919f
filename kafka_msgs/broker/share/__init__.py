"""Share groups (KIP-932) beside their members: the records in flight, share sessions, and the share coordinator.

``SharePartition`` says which records of a partition a member gets, ``ShareSessionCache`` what its fetches are about,
and ``ShareCoordinator`` keeps the state of share partitions as records of ``__share_group_state``. There is no socket,
clock or thread here. Members and assignments are in ``kafka_msgs.groups.share``.
"""

from kafka_msgs.broker.share.aborted import archive_aborted
from kafka_msgs.broker.share.acknowledging import StateChange
from kafka_msgs.broker.share.acquiring import acquire
from kafka_msgs.broker.share.coordinator import UNSET, ShareCoordinator
from kafka_msgs.broker.share.keys import SharePartitionKey
from kafka_msgs.broker.share.partition import SharePartition
from kafka_msgs.broker.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    MemberKey,
    ShareSession,
    ShareSessionCache,
    TopicIdPartition,
    rotated,
)
from kafka_msgs.broker.share.states import (
    AcknowledgementBatch,
    AcquiredRecords,
    AcquireMode,
    PersisterStateBatch,
    RecordState,
)

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "UNSET",
    "AcknowledgementBatch",
    "AcquireMode",
    "AcquiredRecords",
    "MemberKey",
    "PersisterStateBatch",
    "RecordState",
    "ShareCoordinator",
    "SharePartition",
    "SharePartitionKey",
    "ShareSession",
    "ShareSessionCache",
    "StateChange",
    "TopicIdPartition",
    "acquire",
    "archive_aborted",
    "rotated",
]
