"""Random histories of a Streams application in the ``page`` profile, whose instances may change their protocol.

In every history, no task runs twice, and epochs never decrease. An undisturbed group settles: each task runs once.
``python -m tests.groups.streams.histories 500`` runs six histories for each seed.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import count
from random import Random
from typing import Final
from uuid import UUID

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.group import Group
from kafka_msgs.groups.streams.group import StreamsGroup
from tests.groups.streams.broker import changelog, page, subtopology, topology
from tests.groups.streams.clients import ClassicClient, Client, StreamsClient

__all__ = ["CASTS", "History"]

_ROUNDS: Final = 60
_NAMES: Final = "ABCDE"
_PLAIN: Final = topology(subtopology("0", "in"))
_STATEFUL: Final = topology(subtopology("0", "in", state_changelog_topics=(changelog("c"),)))
_LONGEST_SILENCE: Final = 60
"""The number of rounds until all sessions and rebalances of crashed members have timed out."""
_BOUND: Final = 30
"""The maximum number of rounds until an undisturbed group has settled. Each member acts once per round."""


class History:
    """A group and its instances, with constant checks of the invariants."""

    def __init__(self, seed: int, *, stateful: bool, kinds: tuple[type[Client], ...]) -> None:
        self.random = Random(f"{seed} {stateful} {len(kinds)}")
        self.kinds = kinds
        self.topology = _STATEFUL if stateful else _PLAIN
        config = {"group_streams_num_standby_replicas": seed % 2, "group_initial_rebalance_delay_ms": 0}
        self.tasks = 7
        numbers = count(1)
        self.broker = page(
            topics={"in": self.tasks, "c": self.tasks}, config=config, new_id=lambda: str(UUID(int=next(numbers)))
        )
        self.clients: dict[str, Client] = {}
        self.epoch = 0
        self.kind = ""
        self.changes: set[tuple[str, str]] = set()
        """The conversions between protocols of a group with members."""

    def play(self) -> int:
        """Disturb the group, then let it settle. Return the number of rounds that it took to settle."""
        self._disturb()
        self._quieten()
        for rounds in range(_BOUND):
            if self._at_rest():
                return rounds
            self._round()
        raise AssertionError(f"the group has not settled after {_BOUND} rounds")

    def _disturb(self) -> None:
        for _ in range(_ROUNDS):
            self._event()
            self._watch()
            self._round()

    def _event(self) -> None:
        draw = self.random.random()
        name = self.random.choice(_NAMES)
        if draw < 0.2:
            self._start(name)
        elif draw < 0.3 and name in self.clients:
            self.clients.pop(name).leave()
        elif draw < 0.33:
            self.clients.pop(name, None)
        elif draw < 0.38:
            self.broker.reload()
            for client in self.clients.values():
                client.forget_requests()
        elif draw < 0.42:
            self.broker.log.fail_next = GroupError(error=ErrorCode.NOT_ENOUGH_REPLICAS)
        elif draw < 0.44 and self.topology is _PLAIN and self.tasks < 10:
            self.tasks += 1
            self.broker.topics(**{"in": self.tasks})

    def _start(self, name: str) -> None:
        """Start or restart an instance, possibly with the other protocol."""
        if name in self.clients:
            self.clients.pop(name).leave()
            self._watch()
        self.clients[name] = self.random.choice(self.kinds)(self.broker, name, self.topology)

    def _round(self) -> None:
        for client in self.random.sample(list(self.clients.values()), len(self.clients)):
            client.act()
            self._watch()
        self.broker.advance(self.random.choice((0, 500, 2000)))
        self._watch()

    def _watch(self) -> None:
        running = Counter(task for client in self.clients.values() for task in client.active)
        assert not running or max(running.values()) == 1, running
        group = self.broker.coordinator.shards[0].state.groups.get("g")
        if isinstance(group, StreamsGroup):
            self._watch_streams(group)
        epoch = 0
        if group is not None and not group.is_empty:
            epoch = group.epoch if isinstance(group, StreamsGroup) else _recorded(group)
            assert epoch >= self.epoch, f"the epoch fell from {self.epoch} to {epoch}"
            if self.epoch and group.kind != self.kind:
                self.changes.add((self.kind, group.kind))
            self.kind = group.kind
        self.epoch = epoch

    def _watch_streams(self, group: StreamsGroup) -> None:
        held = Counter(task for member in group.members.values() for task in member.holding.active)
        assert not held or max(held.values()) == 1, held
        assert len(group.classic_members) < len(group.members) or not group.members
        assert group.assignment_epoch <= group.epoch

    def _quieten(self) -> None:
        """Wait until crashed members are removed, then restart an instance to trigger a new assignment."""
        self.broker.log.fail_next = None
        for _ in range(_LONGEST_SILENCE):
            self._round()
        self._start(self.random.choice(_NAMES))

    def _at_rest(self) -> bool:
        group = self.broker.coordinator.shards[0].state.groups["g"]
        running = sorted(task for client in self.clients.values() for task in client.active)
        return group.state_name() == "Stable" and running == list(range(self.tasks))


def _recorded(group: Group) -> int:
    """Return the generation in a classic group's record. Later generations are lost when the coordinator moves."""
    assert isinstance(group, ClassicGroup)
    return 0 if group.record is None else group.record.generation


CASTS: Final = {"streams": (StreamsClient,), "classic": (ClassicClient,), "both": (ClassicClient, StreamsClient)}
"""The protocols of the instances of a history."""


def main(seeds: int) -> None:
    """Run histories; print the maximum number of rounds that a group took to settle."""
    slowest = 0
    for seed in range(seeds):
        for kinds in CASTS.values():
            for stateful in (False, True):
                history = History(seed, stateful=stateful, kinds=kinds)
                slowest = max(slowest, history.play())
    print(f"{seeds * 2 * len(CASTS)} histories, settled after at most {slowest} rounds")


if __name__ == "__main__":
    main(int(sys.argv[1]))
