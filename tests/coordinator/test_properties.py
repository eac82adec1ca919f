"""Invariants under random histories: nothing has two owners, epochs never decrease, and undisturbed groups settle.

Simulated clients create random histories on our coordinator: clients crash and return, appends fail, time passes,
topics change, and the partition moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

import pytest

from kafka_msgs.groups.compat.quirks import Quirks
from tests.coordinator.clients import Client, ConsumerClient, EpochClient, StreamsClient
from tests.coordinator.clients.topologies import TOPOLOGIES
from tests.coordinator.invariants import Part, Watch
from tests.coordinator.oracle import Result
from tests.coordinator.player import Player
from tests.coordinator.script_state import Script, World, topic_id
from tests.coordinator.scripts.guided_clients import Cast, Stage

_HISTORIES: Final = 6
_ROUNDS: Final = 60
_QUIET_ROUNDS: Final = 210
"""Rounds of two seconds: longer than any session or rebalance timeout of a client."""

_MOST_HEARTBEATS: Final = 6
"""The maximum number of heartbeats per member, a second apart, until a change has reached all members."""

_NO_DELAY: Final = {
    "group.consumer.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
}


class SteadyStreamsClient(StreamsClient):
    """A client that never changes its topology, because such a member is refused until the group is empty."""

    def join_with_another_topology(self) -> None:
        """Join with the same topology."""
        self.join()


def _consumers(world: World) -> list[Client]:
    return [ConsumerClient(world, "g", name, instance=_own(world, name)) for name in "ABCD"]


def _streams(world: World) -> list[Client]:
    topology = world.random.choice((TOPOLOGIES[0], TOPOLOGIES[4]))
    return [SteadyStreamsClient(world, "g", name, topology, instance=_own(world, name)) for name in "ABCD"]


def _own(world: World, name: str) -> str | None:
    return world.random.choice((None, f"i-{name}"))


CASTS: Final = {
    "Consumer": Cast(_consumers, ({}, _NO_DELAY)),
    "Streams": Cast(_streams, ({}, _NO_DELAY, {"group.streams.num.standby.replicas": 1})),
}


class _Play:
    """A stage for our coordinator, with constant checks of the invariants."""

    def __init__(self, protocol: str, seed: int) -> None:
        self.stage = Stage(CASTS[protocol], Random(f"{protocol} {seed}"))
        self.clients = [client for client in self.stage.clients if isinstance(client, EpochClient)]
        self.player = Player(Quirks())
        self.watch = Watch()

    def run(self, script: Script) -> list[Result]:
        """Run a script to its end; return the last results."""
        results: list[Result] = []
        try:
            commands = next(script)
            while True:
                results = [self.player.do(command) for command in commands]
                for result in results:
                    assert "error" not in result, result["error"]
                    self.watch.see(result)
                commands = script.send(results)
        except StopIteration:
            return results

    def settle(self, rounds: int, pause_ms: int = 1000) -> Iterator[bool]:
        """Settle all members, round by round; yield after each round whether the group is at rest."""
        for _ in range(rounds):
            for client in self.clients:
                client.settle()
                self.run(self.stage.world.exchange())
            yield self.at_rest()
            self.stage.world.do("advance", ms=pause_ms)
            self.run(self.stage.world.exchange())

    def at_rest(self) -> bool:
        """Return whether the group is Stable, every client is settled, and each partition or task has one owner."""
        groups = self.player.coordinator.shards[0].state.groups
        is_stable = all(group.state_name() == "Stable" for group in groups.values())
        is_settled = all(client.settled for client in self.clients)
        return is_stable and is_settled and sorted(self.owned()) == sorted(self.wanted())

    def wanted(self) -> set[Part]:
        """Return all partitions or tasks of the group."""
        topics = self.stage.world.topics
        first = self.clients[0]
        if isinstance(first, StreamsClient):
            return {
                (subtopology["subtopologyId"], number)
                for subtopology in first.subtopologies
                for number in range(max(topics[name] for name in subtopology["sourceTopics"]))
            }
        consumers = [client for client in self.clients if isinstance(client, ConsumerClient)]
        names = {name for name in topics for client in consumers if client.wants(name)}
        return {(topic_id(name), number) for name in names for number in range(topics[name])}

    def owned(self) -> list[Part]:
        """Return the partitions or tasks that members own, by the records of the group."""
        return [part for parts in self.watch.owned.values() for part in parts]

    def quieten(self) -> None:
        """End all disturbances, and wait until crashed members are removed."""
        self.stage.world.recover()
        self.stage.world.create_missing_topics()
        for client in self.clients:
            client.join()
            self.run(self.stage.world.exchange())
        for _ in self.settle(_QUIET_ROUNDS, 2000):
            pass


@pytest.mark.parametrize("seed", range(_HISTORIES))
@pytest.mark.parametrize("protocol", CASTS)
def test_a_disturbed_group_keeps_its_invariants_and_settles(protocol: str, seed: int) -> None:
    play = _Play(protocol, seed)
    play.run(play.stage.play(_ROUNDS))

    play.quieten()
    assert play.at_rest()
    play.stage.world.topics["in"] += 1
    play.stage.world.do("topics", grow=[{"name": "in", "partitions": play.stage.world.topics["in"]}])
    play.clients[0].change()
    assert any(play.settle(_MOST_HEARTBEATS))
