"""Comparison of two coordinators' results, which must be equal in every value.

One list is unordered: ``partitionsByUserEndpoint``. Kafka orders its topics like an immutable collection, whose order
differs between Java processes.
"""

from __future__ import annotations

from typing import Any

from tests.coordinator.oracle import Result

__all__ = ["alike", "differences", "in_order"]


def in_order(result: Result) -> Result:
    """Return a result with the topics of ``partitionsByUserEndpoint`` sorted by name, sharing all other parts."""
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
