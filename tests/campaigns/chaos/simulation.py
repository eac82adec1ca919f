"""A run of simulated clients in simulated time, reproducible by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, Final, TypeVar, cast

from attrs import define

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.faults import At, Chaos
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, sleep_until, wait_for
from kafka_msgs.errors import ClientError
from kafka_msgs.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.testing import new_topic, topic_records
from tests.campaigns.chaos.checker import judge, undecided, unread
from tests.campaigns.chaos.history import Ledger
from tests.campaigns.chaos.ownership_checker import Owners
from tests.campaigns.chaos.settings import APIS, BROKERS, CONFIGS, EFFECTS, GROUPS, PARTITIONS, TOPICS
from tests.campaigns.chaos.workers import Actor, Copier, Reader, TransactionalWriter, Writer
from tests.support.broker_network import BrokerNetwork

__all__ = ["Report", "chaos_of", "script_of", "shortened", "simulate"]

T = TypeVar("T")

_GROUPS: Final = ("classic", "modern", "copiers", "modern-copiers")
"""The groups of the simulation, with two members each."""
_TRANSACTIONAL_IDS: Final = ("writer", "copiers-0", "copiers-1", "modern-copiers-0", "modern-copiers-1")

_SETTLING: Final = 120.0
"""The maximum number of seconds until the clients come to rest after the last fault."""


@define
class Report:
    """The result of a run: broken promises, and statistics. ``requests`` counts answered requests."""

    broken: list[str]
    records: int
    requests: int | None
    lives: int
    seconds: float


def shortened(seed: int, seconds: float) -> tuple[At, ...]:
    """Return a minimal part of a seed's script that still breaks promises."""
    script = script_of(seed, seconds)
    size = len(script) // 2
    while size:
        for start in range(len(script) - size, -1, -size):
            shorter = script[:start] + script[start + size :]
            if simulate(seed, seconds, shorter).broken:
                script = shorter
        size //= 2
    return script


@define
class _Shown:
    """A cluster with the interface of an ``EmbeddedBroker``."""

    cluster: Cluster

    def run(self, work: Callable[[Cluster], T]) -> T:
        return work(self.cluster)

    @property
    def problems(self) -> list[Exception]:
        return self.cluster.errors


def script_of(seed: int, seconds: float) -> tuple[At, ...]:
    """Return the fault script of a run."""
    return chaos_of(seconds, _TRANSACTIONAL_IDS).script(seed)


def chaos_of(seconds: float, transactional_ids: Sequence[str]) -> Chaos:
    """Return the possible faults of a run with producers of these transactional ids."""
    return Chaos(
        brokers=range(BROKERS),
        topics=dict.fromkeys(TOPICS, PARTITIONS),
        groups=tuple(GROUPS),
        transactional_ids=transactional_ids,
        effects=EFFECTS,
        apis=APIS,
        full_disk=True,
        jump_ms=2000,
        duration_ms=int(seconds * 1000),
        every_ms=200,
        down_ms=1500,
        least_running=1,
    )


def simulate(seed: int, seconds: float = 30.0, script: tuple[At, ...] | None = None, **settings: Any) -> Report:
    """Run clients under a script, by default the script of the seed, in simulated time, and return the verdict."""
    return _Simulation(seed, settings).run(seconds, script_of(seed, seconds) if script is None else script)


class _Simulation:
    def __init__(self, seed: int, settings: dict[str, Any]) -> None:
        self.network = network = BrokerNetwork(seed, brokers=BROKERS, configs=CONFIGS, **settings)
        self.cluster = network.cluster
        self.ledger = Ledger()
        self.shown = cast("EmbeddedBroker", _Shown(self.cluster))
        for topic in TOPICS:
            new_topic(self.shown, topic, partitions=PARTITIONS, replicas=BROKERS, min_insync_replicas="1")
        self.owners = Owners(self.cluster, self.ledger.broken)
        self.actors = list(self._actors())

    def _actors(self) -> Iterator[Actor]:
        def common(name: str) -> tuple[BrokerNetwork, Ledger, str, float]:
            return self.network, self.ledger, name, self.network.dice.random()

        yield Writer(*common("simple"), topic="plain", partitions=PARTITIONS, once=False)
        yield Writer(*common("idempotent"), topic="plain", partitions=PARTITIONS, once=True)
        yield TransactionalWriter(*common("writer"), topic="committed", partitions=PARTITIONS)
        for name, number in product(_GROUPS, range(2)):
            kind = Reader if GROUPS[name].writes is None else Copier
            yield kind(*common(f"{name}-{number}"), group=name)

    # The run

    def run(self, seconds: float, script: tuple[At, ...]) -> Report:
        self.network.run(self._run(seconds, script))
        self._judge()
        return Report(
            broken=self.ledger.broken,
            records=sum(len(topic_records(self.shown, topic)) for topic in TOPICS),
            requests=self.owners.answers,
            lives=sum(actor.lives for actor in self.actors),
            seconds=self.network.now(),
        )

    def _run(self, seconds: float, script: tuple[At, ...]) -> Flow[None]:
        tasks = [self.network.spawn(actor.run()) for actor in self.actors]
        self.cluster.faults.play(script)
        self.cluster.settle()
        end = self.network.now() + seconds
        while self.network.now() < end:
            yield from sleep_until(min(end, self.network.now() + self.network.dice.uniform(0.5, 5)))
            self.network.dice.choice(self.actors).crash()
        for actor in self.actors:
            actor.ending = isinstance(actor, Writer | TransactionalWriter)
        yield from self._settle()
        for actor in self.actors:
            actor.ending = True
        for task in tasks:
            yield from wait_for(task, None)

    def _settle(self) -> Flow[None]:
        """Wait until all records are read and committed, and all groups are stable."""
        limit = self.network.now() + _SETTLING
        behind: list[str] = ["not looked yet"]
        while behind and self.network.now() < limit:
            yield from sleep_until(self.network.now() + 2)
            behind = yield from self._behind()
        self.ledger.broken += [f"after {_SETTLING:.0f} s: {each}" for each in behind]

    def _behind(self) -> Flow[list[str]]:
        """Describe everything that still has to happen before all clients are at rest."""
        found = [f"{actor.name} still works" for actor in self.actors if actor.ending and not actor.over]
        found += unread(self.shown, _GROUPS) + undecided(self.shown)
        client = self.network.core(timeout=10.0)
        try:
            for group in _GROUPS:
                state = yield from self._state(client, group)
                if state != "Stable":
                    found.append(f"{group} is {state}")
        except ClientError as error:
            found.append(repr(error))
        finally:
            client.close()
        return found

    def _state(self, client: ClientCore, group: str) -> Flow[str]:
        deadline = client.deadline(None)
        if GROUPS[group].protocol == "classic":
            classic = yield from client.call(DescribeGroupsRequest(groups=(group,)), deadline=deadline)
            return classic.groups[0].group_state
        modern = yield from client.call(ConsumerGroupDescribeRequest(group_ids=(group,)), deadline=deadline)
        return modern.groups[0].group_state

    # The verdict

    def _judge(self) -> None:
        judge(self.shown, self.ledger, _GROUPS)
        self._judge_leaks()

    def _judge_leaks(self) -> None:
        """Check that no resources of the clients are left."""
        self.network.run(sleep_until(self.network.now() + 30))
        left = {
            "connections": len(self.network.connections) + len(self.network.wires),
            "sessions": sum(len(broker.sessions) for broker in self.cluster.brokers.values()),
            "watches": len(self.cluster.log_manager.watches),
            "pieces of logic": self.network.task_count,
        }
        self.ledger.broken += [f"{count} {what} are left" for what, count in left.items() if count]
