"""The client's side of streams groups (KIP-1071) as values and functions, without sockets and clock.

``StreamsMember`` is a member of a group: it makes the heartbeats and takes their answers. ``task_sums`` makes the sums
of offsets that it reports, and ``StreamsConfig`` has the settings of the protocol under Kafka's names.
"""

from __future__ import annotations

from kafka_msgs.client.streams.config import DEPRECATED, StreamsConfig
from kafka_msgs.client.streams.member import StreamsMember, TasksByRole
from kafka_msgs.client.streams.task_offsets import Changelog, LocalTask, Task, TaskOffsetSums, TaskPhase, task_sums

__all__ = [
    "DEPRECATED",
    "Changelog",
    "LocalTask",
    "StreamsConfig",
    "StreamsMember",
    "Task",
    "TaskOffsetSums",
    "TaskPhase",
    "TasksByRole",
    "task_sums",
]
