"""Share groups (KIP-932), except for membership: in-flight records, share sessions, and the share coordinator.

``SharePartition`` tracks which records of a partition a member acquires, ``ShareSessionCache`` tracks the partitions
that members fetch, and ``ShareCoordinator`` stores share partition state as records of ``__share_group_state``. The
package uses no sockets, clocks or threads. Membership and assignments are in ``kafka_msgs.groups.share``.
"""

from kafka_msgs.broker.share.acquisition import acquire, archive_aborted
from kafka_msgs.broker.share.coordinator import UNSET, ShareCoordinator, ShareCoordinatorConfig
from kafka_msgs.broker.share.in_flight import StateChange
from kafka_msgs.broker.share.record_state import (
    AcknowledgementBatch,
    AcquiredRecords,
    AcquireMode,
    PersisterStateBatch,
    RecordState,
    SharePartitionKey,
)
from kafka_msgs.broker.share.share_partition import SharePartition
from kafka_msgs.broker.share.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    MemberKey,
    ShareSession,
    ShareSessionCache,
    TopicIdPartition,
    rotated,
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
    "ShareCoordinatorConfig",
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
