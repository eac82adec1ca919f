"""Kafka's server-side assignors as pure functions: they assign partitions or tasks to members.

``spec`` defines their input and output types. Each assignor of the release returns exactly the result of Kafka's own
assignor, even if that result depends on the order of Kafka's hash tables and heaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_msgs.groups.assignors.highly_available import assign_highly_available
from kafka_msgs.groups.assignors.mock import assign_mock
from kafka_msgs.groups.assignors.range import assign_range
from kafka_msgs.groups.assignors.simple import assign_simple
from kafka_msgs.groups.assignors.spec import GroupAssignor, TaskAssignor
from kafka_msgs.groups.assignors.sticky import assign_sticky
from kafka_msgs.groups.assignors.uniform import assign_uniform

__all__ = ["CONSUMER_ASSIGNORS", "SHARE_ASSIGNORS", "TASK_ASSIGNORS"]

CONSUMER_ASSIGNORS: Final[Mapping[str, GroupAssignor]] = {"uniform": assign_uniform, "range": assign_range}
"""The assignors of consumer groups by name. The first is the default of the release."""

SHARE_ASSIGNORS: Final[Mapping[str, GroupAssignor]] = {"simple": assign_simple}
"""The assignors of share groups by name."""

TASK_ASSIGNORS: Final[Mapping[str, TaskAssignor]] = {
    "sticky": assign_sticky,
    "highly_available": assign_highly_available,
    "mock": assign_mock,
}
"""The assignors of streams groups by name.

The release does not include ``highly_available``. A broker offers ``mock`` only if its configuration names the class.
"""
