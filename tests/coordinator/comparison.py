"""Comparison of two coordinators' results, which must be equal in every value.

Some lists of responses are unordered: clients read them as sets, and Kafka writes them in the order of hash tables, or
even of immutable collections, whose order differs between Java processes. The order of records, and of the members that
the leader of a classic group receives, counts.
"""

from __future__ import annotations

import json
from typing import Any, Final

from tests.coordinator.oracle import Result

__all__ = ["alike", "differences", "in_order"]

_UNORDERED: Final = frozenset(
    {
        "activePartitions",
        "activeTasks",
        "clientTags",
        "partitionsByUserEndpoint",
        "standbyPartitions",
        "standbyTasks",
        "subscribedTopicNames",
        "topicPartitions",
        "warmupTasks",
    }
)


def in_order(result: Result) -> Result:
    """Return a result with the unordered lists of its responses sorted."""
    return result | {"answers": _in_order(result["answers"])} if "answers" in result else result


def _in_order(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_order(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: sorted(found, key=json.dumps) if name in _UNORDERED and isinstance(found, list) else found
        for name, found in ((name, _in_order(each)) for name, each in value.items())
    }


def alike(kafka: Result, ours: Result) -> bool:
    """Return whether two results are equal, except for the order of unordered lists."""
    return kafka == ours or in_order(kafka) == in_order(ours)


def differences(kafka: Result, ours: Result) -> list[str]:
    """Return the differences between two results, one line each: the path, Kafka's value, our value."""
    return list(_walk("", in_order(kafka), in_order(ours)))


def _walk(path: str, kafka: Any, ours: Any) -> list[str]:
    if kafka == ours and type(kafka) is type(ours):
        return []
    if isinstance(kafka, dict) and isinstance(ours, dict):
        names = [*kafka, *(name for name in ours if name not in kafka)]
        return [
            line for name in names for line in _walk(f"{path}.{name}", kafka.get(name, ABSENT), ours.get(name, ABSENT))
        ]
    if isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        return [line for at, pair in enumerate(zip(kafka, ours, strict=True)) for line in _walk(f"{path}[{at}]", *pair)]
    return [f"{path.lstrip('.')}: Kafka {kafka!r}, ours {ours!r}"]


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()
"""Stands for a field that is missing in one of the results."""
