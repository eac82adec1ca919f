"""Shrinking of scripts with a difference. Two stubs replace the clusters and differ in one response; no broker runs."""

from __future__ import annotations

from typing import Any

from tests.broker.differential.campaign import Campaign
from tests.broker.differential.flows import command, to_leader
from tests.broker.differential.tally import Tally
from tests.broker.differential.tested_cluster import Command, Result


class StandIn:
    """A stub that responds to DeleteRecords with the number of Produce requests so far, optionally at most two."""

    def __init__(self, *, overlooks: bool) -> None:
        self._overlooks = overlooks
        self._produced = 0

    def begin(self, prefix: str, now: int) -> None:
        self._produced = 0

    def settle(self) -> None:
        pass

    def run(self, command: Command) -> Result:
        self._produced += command["api"] == "Produce"
        if command["api"] != "DeleteRecords":
            return {"answer": {}}
        found = min(self._produced, 2) if self._overlooks else self._produced
        return {"answer": {"topics": [{"name": "<p>-a", "partitions": [{"lowWatermark": found}]}]}}


def a_campaign() -> Campaign:
    kafka: Any = StandIn(overlooks=False)
    ours: Any = StandIn(overlooks=True)
    return Campaign(kafka, ours, "s", Tally())


def noise(count: int) -> list[Command]:
    return [command("Metadata", 12, ["node", 0], {"topics": []}) for _ in range(count)]


PRODUCE = command("Produce", 9, to_leader("<p>-a", 0), {"acks": -1, "timeoutMs": 1, "topicData": []})
LOOK = command("DeleteRecords", 2, to_leader("<p>-a", 0), {"topics": [], "timeoutMs": 1})
SCRIPT = [PRODUCE, *noise(9), LOOK, PRODUCE, *noise(7), PRODUCE, PRODUCE, *noise(5), LOOK, *noise(3)]


def test_a_script_keeps_only_what_the_difference_needs() -> None:
    campaign = a_campaign()
    (difference,) = campaign.differences(SCRIPT)

    short = campaign.shrunk(difference, SCRIPT)

    assert short == [PRODUCE, PRODUCE, PRODUCE, LOOK]
    assert [each.kind for each in campaign.differences(short)] == [difference.kind]
