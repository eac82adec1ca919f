"""What it means that two coordinators did the same: results equal in all they hold.

One list has no order of its own: ``partitionsByUserEndpoint``. Kafka puts its topics in the order of an immutable
collection, which differs from one Java process to the next.
"""

from __future__ import annotations

from typing import Any

from tests.coordinator.oracle import Result

__all__ = ["alike", "differences", "in_order"]


def in_order(result: Result) -> Result:
    """Return a result with the topics of ``partitionsByUserEndpoint`` sorted by name; the rest is the same object."""
    if not any("partitionsByUserEndpoint" in (answer.get("body") or ()) for answer in result.get("answers", ())):
        return result
    return result | {"answers": [_answer_in_order(answer) for answer in result["answers"]]}


def _answer_in_order(answer: dict[str, Any]) -> dict[str, Any]:
    endpoints = (answer.get("body") or {}).get("partitionsByUserEndpoint")
    if not endpoints:
        return answer
    ordered = [
        {name: _topics_in_order(value) if isinstance(value, list) else value for name, value in endpoint.items()}
        for endpoint in endpoints
    ]
    return answer | {"body": answer["body"] | {"partitionsByUserEndpoint": ordered}}


def _topics_in_order(topics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(topics, key=lambda topic: str(topic["topic"]))


def alike(kafka: Result, ours: Result) -> bool:
    """Whether two results say the same."""
    return kafka == ours or in_order(kafka) == in_order(ours)


def differences(kafka: Result, ours: Result) -> list[str]:
    """Return the places where two results differ, each as one line: the path, Kafka's value, our value."""
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
"""Stands for a field that one of the results does not have."""
