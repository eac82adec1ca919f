"""The client side of streams groups (KIP-1071) as values and functions, without sockets or clocks.

``StreamsMember`` is a group member: it creates the heartbeats and processes their responses. ``task_sums`` computes the
offset sums that the member reports, and ``StreamsConfig`` contains the protocol settings under Kafka's names.
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
