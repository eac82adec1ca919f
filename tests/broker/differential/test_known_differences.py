"""The rules for differences that depend on more than one value of a response."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.differential.comparison import compared

FIXED = 1_700_000_000_001


def an_answer(offset: int, timestamp: int | str = "<now>", other: int = 7) -> dict[str, Any]:
    latest = {"partitionIndex": 0, "timestamp": timestamp, "offset": offset}
    end = {"partitionIndex": 1, "timestamp": -1, "offset": other}
    return {"answer": {"topics": [{"name": "<p>-b", "partitions": [latest, end]}]}}


def differing_paths(kafka: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    parts = [{"partitionIndex": 0, "timestamp": -3}, {"partitionIndex": 1, "timestamp": -1}]
    command = {"api": "ListOffsets", "body": {"topics": [{"name": "<p>-b", "partitions": parts}]}}
    found = compared(0, command, kafka, ours)
    return [] if found is None else [each.path for each in found.places]


def test_markers_of_one_millisecond_may_be_found_at_different_offsets() -> None:
    assert differing_paths(an_answer(3), an_answer(4)) == []


@pytest.mark.parametrize(
    ("kafka", "ours", "partition"),
    [
        (an_answer(3, FIXED), an_answer(4, FIXED), 0),
        (an_answer(3), an_answer(-1), 0),
        (an_answer(3, other=7), an_answer(3, other=8), 1),
    ],
    ids=["times that the script has chosen", "not found", "another partition of the request"],
)
def test_all_other_offsets_are_compared(kafka: dict[str, Any], ours: dict[str, Any], partition: int) -> None:
    assert differing_paths(kafka, ours) == [f"answer.topics[0].partitions[{partition}].offset"]
