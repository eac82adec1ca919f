"""Random fault scripts. A seed gives a script, which is data: it can be printed, stored, shortened and repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from attrs import field, frozen

from kafka_msgs.broker.faults.cluster_changes import (
    Change,
    FillDisk,
    Heal,
    JumpClock,
    KillBroker,
    MoveController,
    MoveGroupCoordinator,
    MoveLeader,
    MoveTransactionCoordinator,
    StartBroker,
    StopBroker,
)
from kafka_msgs.broker.faults.injector import At, Fault
from kafka_msgs.broker.faults.request_effects import Effect
from kafka_msgs.validators import int_range

__all__ = ["Chaos"]


@frozen(kw_only=True)
class Chaos:
    """The possible faults in a script and their frequency. Times are in milliseconds.

    ``brokers`` are the broker ids; at least ``least_running`` of them run at any time. ``topics`` maps topics to their
    number of partitions, whose leaders move. The coordinators of ``groups`` and ``transactional_ids`` move as well.
    Each of the ``request_effects`` affects one to three requests of one of ``apis``. A fault happens every ``every_ms``
    on average, until ``duration_ms``. A stopped broker or a full disk recovers after ``down_ms`` on average. The clock
    jumps by at most ``jump_ms``, forward or back; 0 means never.
    """

    brokers: Sequence[int] = ()
    topics: Mapping[str, int] = field(factory=dict)
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    effects: Sequence[Effect] = ()
    apis: Sequence[int | None] = (None,)
    full_disk: bool = False
    jump_ms: int = field(default=0, validator=int_range(0))
    duration_ms: int = field(default=10_000, validator=int_range(1))
    every_ms: int = field(default=250, validator=int_range(1))
    down_ms: int = field(default=1000, validator=int_range(1))
    least_running: int = field(default=1, validator=int_range(0))

    def script(self, seed: int) -> tuple[At, ...]:
        """Return the script for a seed, always the same one. It ends with ``Heal`` at ``duration_ms``."""
        return tuple(_Writer(self, Random(seed)).lines())


class _Writer:
    """The generator of one script."""

    def __init__(self, chaos: Chaos, dice: Random) -> None:
        self._chaos = chaos
        self._dice = dice
        self._now = 0
        self._down: dict[int, int] = {}
        self._full_until = 0
        self._kinds: list[Callable[[], Iterator[At]]] = [
            kind
            for kind, wanted in (
                (self._leader, chaos.topics and chaos.brokers),
                (self._group, chaos.groups and chaos.brokers),
                (self._transaction, chaos.transactional_ids and chaos.brokers),
                (self._controller, chaos.brokers),
                (self._outage, len(chaos.brokers) > chaos.least_running),
                (self._fault, chaos.effects),
                (self._full_disk, chaos.full_disk),
                (self._jump, chaos.jump_ms),
            )
            if wanted
        ]

    def lines(self) -> list[At]:
        """Return the script, sorted by time."""
        end = self._chaos.duration_ms
        lines = [At(end, Heal())]
        while self._kinds and (now := self._now + self._pause(self._chaos.every_ms)) < end:
            self._now = now
            lines += self._dice.choice(self._kinds)()
        return sorted((line for line in lines if line.ms <= end), key=lambda line: line.ms)

    def _pause(self, average: int) -> int:
        return self._dice.randint(1, 2 * average)

    def _at(self, what: Change | Fault) -> At:
        return At(self._now, what)

    def _running(self) -> list[int]:
        return [each for each in self._chaos.brokers if self._down.get(each, 0) <= self._now]

    def _leader(self) -> Iterator[At]:
        topic = self._dice.choice(sorted(self._chaos.topics))
        partition = self._dice.randrange(self._chaos.topics[topic])
        yield self._at(MoveLeader(topic, partition, self._dice.choice(self._running())))

    def _group(self) -> Iterator[At]:
        yield self._at(MoveGroupCoordinator(self._dice.choice(self._chaos.groups), self._dice.choice(self._running())))

    def _transaction(self) -> Iterator[At]:
        name = self._dice.choice(self._chaos.transactional_ids)
        yield self._at(MoveTransactionCoordinator(name, self._dice.choice(self._running())))

    def _controller(self) -> Iterator[At]:
        yield self._at(MoveController(self._dice.choice(self._running())))

    def _outage(self) -> Iterator[At]:
        running = self._running()
        if len(running) > self._chaos.least_running:
            broker = self._dice.choice(running)
            yield self._at(self._dice.choice((KillBroker, StopBroker))(broker))
            self._down[broker] = back = self._now + self._pause(self._chaos.down_ms)
            yield At(back, StartBroker(broker))

    def _fault(self) -> Iterator[At]:
        effect, api = self._dice.choice(self._chaos.effects), self._dice.choice(self._chaos.apis)
        yield self._at(Fault(effect, api=api, times=self._dice.randint(1, 3)))

    def _full_disk(self) -> Iterator[At]:
        if self._full_until <= self._now:
            yield self._at(FillDisk())
            self._full_until = self._now + self._pause(self._chaos.down_ms)
            yield At(self._full_until, FillDisk(False))

    def _jump(self) -> Iterator[At]:
        yield self._at(JumpClock(self._dice.randint(-self._chaos.jump_ms, self._chaos.jump_ms)))
