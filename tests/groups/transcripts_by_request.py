"""Recorded scripts by request name: the responses of Kafka and of this library's coordinator.

Each test runs on both sides, so both return the expected responses. This library runs without the quirks of the
release.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest

from kafka_msgs.groups.compat.quirks import Quirks
from tests.coordinator.oracle import Command, Result
from tests.coordinator.player import play
from tests.coordinator.script_state import topic_id
from tests.coordinator.transcripts import read

__all__ = ["SIDES", "Told", "partitions", "told"]

SIDES: Final = pytest.mark.parametrize("side", ["kafka", "ours"])


class Told:
    """The responses of one side. ``told["A joins"]`` is the response body of the request with that name."""

    def __init__(self, commands: list[Command], results: list[Result]) -> None:
        self._answers = {
            answer["to"]: answer["body"]
            for result in results
            for answer in result.get("answers", ())
            if "body" in answer
        }
        self._results = {
            command["as"]: result for command, result in zip(commands, results, strict=True) if "as" in command
        }
        self.expired = [key for result in results for key, _ in result.get("expired", ())]

    def __getitem__(self, name: str) -> Any:
        return self._answers[name]

    def error(self, name: str) -> int:
        """Return the error code of a response."""
        code: int = self[name]["errorCode"]
        return code

    def epoch(self, name: str) -> int:
        """Return the member epoch in a successful heartbeat response."""
        assert self.error(name) == 0
        epoch: int = self[name]["memberEpoch"]
        return epoch

    def group(self, name: str) -> Any:
        """Return the first group of a description."""
        return self[name]["groups"][0]

    def members(self, name: str) -> dict[str, Any]:
        """Return the members of the first group of a description, by id."""
        return {member["memberId"]: member for member in self.group(name)["members"]}

    def records(self, name: str) -> list[tuple[str, Any]]:
        """Return the types and values of the records that a request wrote."""
        return [(record["type"], record["value"]) for record in self._results[name].get("records", ())]


def partitions(body: Any) -> dict[str, list[int]]:
    """Return the partitions of an assignment by topic, such as ``{"t": [0, 1]}``; empty without an assignment."""
    found = (body.get("assignment") or {}).get("topicPartitions", ())
    by_id = {topic_id(name): name for name in ("t", "u", "in", "inner", "out")}
    return {by_id[each["topicId"]]: sorted(each["partitions"]) for each in found}


@cache
def told(name: str, side: str) -> Told:
    """Return the responses of a side to a recorded script."""
    commands, recorded = read(name)
    return Told(commands, recorded if side == "kafka" else play(commands, Quirks()))
