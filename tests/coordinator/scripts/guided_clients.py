"""Steered scripts: simulated clients that react to responses, in a changing environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, Final

from attrs import frozen

from tests.coordinator.clients import (
    ClassicClient,
    Client,
    ConsumerClient,
    OffsetsClient,
    ShareClient,
    StreamsClient,
)
from tests.coordinator.clients.topologies import TOPOLOGIES
from tests.coordinator.script_state import PLUGIN, Script, World

__all__ = ["STEERED", "Cast", "Stage", "steered"]

_NAMES: Final = "ABCDE"


def _consumers(world: World) -> list[Client]:
    count = world.random.randint(2, 4)
    return [ConsumerClient(world, "g", name, instance=_instance(world, name)) for name in _NAMES[:count]]


def _classics(world: World) -> list[Client]:
    count = world.random.randint(2, 4)
    return [ClassicClient(world, "g", f"c{name}", instance=_instance(world, name)) for name in _NAMES[:count]]


def _shares(world: World) -> list[Client]:
    return [ShareClient(world, "g", name) for name in _NAMES[: world.random.randint(2, 4)]]


def _streams(world: World) -> list[Client]:
    topology = world.random.choice(TOPOLOGIES)
    count = world.random.randint(2, 4)
    return [StreamsClient(world, "g", name, topology, instance=_instance(world, name)) for name in _NAMES[:count]]


def _offsets(world: World) -> list[Client]:
    member = ClassicClient(world, "g", "ca")
    return [OffsetsClient(world, "g", "x"), OffsetsClient(world, "g", "y"), OffsetsClient(world, "h", "z"), member]


def _migrating(world: World) -> list[Client]:
    """Return clients of several protocols in one group. Clients with equal names share an instance id."""
    kinds: list[Callable[[], list[Client]]] = [
        lambda: [*_classics(world), *_consumers(world)],
        lambda: [*_classics(world)[:2], *_consumers(world)[:1]],
        lambda: [*_classics(world)[:1], *_streams(world)[:2]],
        lambda: [*_consumers(world)[:1], *_streams(world)[:1], *_shares(world)[:1]],
    ]
    return world.random.choices(kinds, (4, 4, 2, 1))[0]()


def _instance(world: World, name: str) -> str | None:
    """Return the instance id of a client: usually none, sometimes its own, rarely another client's."""
    return world.random.choices((None, f"i-{name}", "i-A"), (12, 7, 1))[0]


_GROUP: Final = {"groupIds": ["g"], "groups": ["g"], "groupsNames": ["g"]}
_LOOKS: Final[tuple[tuple[str, Mapping[str, Any], int], ...]] = (
    ("DescribeGroups", _GROUP, 3),
    ("ConsumerGroupDescribe", _GROUP, 4),
    ("StreamsGroupDescribe", {**_GROUP, "includeTopologyDescription": True}, 4),
    ("ListGroups", {}, 3),
    ("DeleteGroups", _GROUP, 2),
    ("OffsetDelete", {"groupId": "g", "topics": [{"name": "in", "partitions": [{"partitionIndex": 0}]}]}, 1),
)


@frozen
class Cast:
    """The clients of a script, and possible configs of the broker and of groups."""

    clients: Callable[[World], list[Client]]
    configs: tuple[Mapping[str, Any], ...] = ({},)
    group_configs: tuple[Mapping[str, str], ...] = ()


_AT_ONCE: Final = {"group.streams.initial.rebalance.delay.ms": 0, "group.streams.assignment.interval.ms": 0}

STEERED: Final[Mapping[str, Cast]] = {
    "offsets": Cast(_offsets, ({}, {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 30_000})),
    "classic": Cast(
        _classics,
        (
            {},
            {},
            {"group.initial.rebalance.delay.ms": 0},
            {"group.initial.rebalance.delay.ms": 0},
            {"group.max.size": 2},
        ),
    ),
    "consumer": Cast(
        _consumers,
        (
            {},
            {"group.consumer.assignment.interval.ms": 0},
            {"group.consumer.assignment.interval.ms": 0, "group.consumer.max.size": 3},
            {"group.consumer.assignment.interval.ms": 0, "group.consumer.regex.refresh.interval.ms": 10_000},
        ),
        ({"consumer.session.timeout.ms": "50000"}, {"consumer.heartbeat.interval.ms": "6000"}),
    ),
    "streams": Cast(
        _streams,
        (
            _AT_ONCE,
            _AT_ONCE | PLUGIN,
            {**_AT_ONCE, **PLUGIN, "group.streams.num.standby.replicas": 1},
            {},
            {**_AT_ONCE, "group.streams.num.standby.replicas": 1},
            {**_AT_ONCE, "group.streams.max.size": 3},
            {**_AT_ONCE, "group.streams.rack.aware.assignment.tags": "zone"},
        ),
        (
            {"streams.num.standby.replicas": "1"},
            {"streams.num.standby.replicas": "0"},
            {"streams.session.timeout.ms": "50000", "streams.heartbeat.interval.ms": "6000"},
            {"streams.acceptable.recovery.lag": "5", "streams.task.offset.interval.ms": "20000"},
        ),
    ),
    "share": Cast(
        _shares,
        (
            {},
            {"group.share.assignment.interval.ms": 0},
            {"group.share.assignment.interval.ms": 0, "group.share.initialize.retry.interval.ms": 1},
        ),
        ({"share.session.timeout.ms": "50000"}, {"share.heartbeat.interval.ms": "6000"}),
    ),
    "migrations": Cast(
        _migrating,
        (
            {"group.initial.rebalance.delay.ms": 0, "group.consumer.assignment.interval.ms": 0},
            {"group.initial.rebalance.delay.ms": 0, "group.consumer.migration.policy": "upgrade"},
            {"group.initial.rebalance.delay.ms": 0, "group.consumer.migration.policy": "downgrade"},
            {},
        ),
    ),
}
"""Steered scripts by protocol."""


class Stage:
    """A cast in one world."""

    def __init__(self, cast: Cast, random: Random) -> None:
        self.random = random
        topics = {"in": 2, "u": 2, "x3": 3, "y4": 4} | ({"g-cl": 2} if random.random() < 0.5 else {})
        self.world = World(random, random.choice(cast.configs), topics)
        self.world.group_configs = cast.group_configs
        self.clients = cast.clients(self.world)
        self._looks: dict[Callable[[], None], int] = {
            partial(self.world.ask, api, look): weight for api, look, weight in _LOOKS
        }

    def play(self, rounds: int) -> Script:
        """Yield the commands of clients and environment changes, in this many rounds of a few commands."""
        world, random = self.world, self.random
        for _ in range(rounds):
            for _ in range(random.choice((1, 2, 2, 4))):
                kind = random.random()
                if kind < 0.80:
                    random.choice(self.clients).step()
                else:
                    world.chosen(world.surroundings() if kind < 0.94 else self._looks)()
            yield from world.exchange()


def steered(protocol: str, random: Random, rounds: int) -> Script:
    """Yield a script of simulated clients of a protocol."""
    yield from Stage(STEERED[protocol], random).play(rounds)
