"""A stored response to a heartbeat that changes nothing is the response that the coordinator would compute."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kafka_msgs.groups.streams.description_plugin import InMemoryDescriptions
from kafka_msgs.messages.streams_group_heartbeat_request import Endpoint, KeyValue
from tests.groups.streams.broker import Broker, changelog, subtopology, topology

MEMBERS = ("A", "B", "C")
STEPS = 400
ENOUGH = 20
"""After so many heartbeats with a stored response, members request a shutdown, which ends the steady state."""


class Lockstep:
    """Two coordinators with the same requests. The second one forgets stored responses before each request."""

    def __init__(self) -> None:
        self.brokers = [Broker(plugin=InMemoryDescriptions(), random=lambda: 0.5) for _ in range(2)]
        self.repeated = 0

    def run(self, name: str, *arguments: Any, **fields: Any) -> Any:
        kept, computed = self.brokers
        groups = computed.coordinator.shards[0].state.groups
        if "g" in groups:
            computed.group().soft.steady.clear()
        stored = len(kept.group().soft.steady) if "g" in kept.coordinator.shards[0].state.groups else 0
        first, second = (getattr(each, name)(*arguments, **fields) for each in self.brokers)
        assert first == second
        assert kept.records == computed.records
        assert kept.coordinator.next_timer == computed.coordinator.next_timer
        self.repeated += stored > 0 and name == "heartbeat"
        return first

    def configure(self, dice: Random) -> None:
        own = {"streams.heartbeat.interval.ms": str(dice.randrange(5000, 15_000))}
        if not dice.randrange(5):
            own["streams.num.standby.replicas"] = "1"
        for broker in self.brokers:
            broker.coordinator.update_group_config("g", own)

    def beat(self, dice: Random, member: str) -> None:
        group = self.brokers[0].group()
        epoch = group.members[member].epoch if member in group.members else 0
        fields: dict[str, Any] = {"endpoint_information_epoch": group.soft.endpoint_epoch}
        match dice.randrange(40):
            case 0:
                fields["user_endpoint"] = Endpoint(host="h", port=dice.randrange(2))
            case 1:
                fields["client_id"] = dice.choice("xy")
            case 2:
                fields["client_tags"] = (KeyValue(key="zone", value=dice.choice("ab")),)
            case 3:
                fields["shutdown_application"] = self.repeated > ENOUGH
            case 4:
                epoch = dice.choice((-1, epoch - 1, epoch + 1))
            case 5:
                fields["endpoint_information_epoch"] = -1
            case 6:
                fields["version"] = 0
        if epoch == 0:
            fields["topology"] = topology(subtopology("0", "in", state_changelog_topics=(changelog("store"),)))
        self.run("heartbeat", member, epoch, **fields)


@pytest.mark.parametrize("seed", range(4))
def test_stored_responses_are_the_computed_ones(seed: int) -> None:
    dice = Random(seed)
    pair = Lockstep()
    pair.run("topics", store=2)
    partitions = 2
    for member in MEMBERS:
        fields = {"topology": topology(subtopology("0", "in", state_changelog_topics=(changelog("store"),)))}
        pair.run("heartbeat", member, **fields)
    for _ in range(STEPS):
        match dice.randrange(60):
            case 0:
                partitions += 1
                pair.run("topics", **{"in": partitions, "store": partitions})
            case 1 | 10 | 11 | 12:
                pair.configure(dice)
            case 2:
                pair.run("reload")
            case 3:
                pair.run("advance", dice.choice((1000, 20_000, 60_000)))
            case 4 | 5 | 6 | 7 | 8 | 9:
                pair.run("settle", *pair.brokers[0].group().members, rounds=6)
            case _:
                pair.beat(dice, dice.choice(MEMBERS))
    assert pair.repeated > ENOUGH
