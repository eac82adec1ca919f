"""The same share group requests on a real cluster and on an embedded one, with equal responses and state.

Members send ShareFetch and ShareAcknowledge themselves. The script is built while it runs on the embedded cluster, so
that its steps refer to records that members have acquired, and to some other records. Then the real cluster gets
the same requests.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import pytest

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.messages import delete_share_group_state_request as erased
from kafka_msgs.messages import initialize_share_group_state_request as initialized
from kafka_msgs.messages import read_share_group_state_request as read
from kafka_msgs.messages import read_share_group_state_summary_request as summarized
from kafka_msgs.messages import write_share_group_state_request as written
from tests.broker.share.steps import (
    MEMBERS,
    WAIT_MS,
    Side,
    Step,
    altered,
    deleted,
    described,
    end,
    fetched,
    left,
    said,
    shown,
    side,
    stated,
)
from tests.support.kafka_cluster import ClusterAddresses, shared_settings
from tests.support.share_requests import ACCEPT, REJECT, RELEASE, RENEW, Said

STEPS: Final = 80
SEEDS: Final = 2
NAMES: Final = {
    "log.retention.ms", "group.share.max.session.timeout.ms", "group.share.max.record.lock.duration.ms"
}  # fmt: skip
KEPT: Final = {name: value for name, value in shared_settings().items() if name in NAMES}
"""Configs that retain the old records of the tests, and that allow long locks and sessions for slow machines."""
DELIVERIES: Final = 5
"""The maximum number of deliveries of a record: ``share.delivery.count.limit``."""

ACCEPTED: Final = (0, 0, (ACCEPT,))
NOWHERE: Final = UUID(int=7)
FIXED: Final[list[Step]] = [
    fetched("two", 1),
    said("two", 1, ACCEPTED),
    said("two", -1, ACCEPTED),
    said("two", 0, ACCEPTED),
    fetched("two", -1),
    fetched("two", 0, [ACCEPTED]),
    fetched("two", 0, group=None),
    said("two", 0, ACCEPTED, group=None),
    fetched("", 0),
    fetched("x" * 37, 0),
    fetched("two", 0, partitions=(0, 1, -1)),
    fetched("two", 2),
    fetched("two", 1, partitions=()),
    fetched("two", 2, version=1),
    fetched("two", 3, partitions=(), forgotten=(1, -1)),
    fetched("two", 4, partitions=()),
    fetched("two", 5, max_bytes=0),
    fetched("two", 6, max_records=0),
    fetched("two", 7, is_renew_ack=True),
    fetched("two", 7, is_renew_ack=True, max_wait_ms=0, min_bytes=0, max_bytes=0, max_records=0),
    fetched("two", 8, [ACCEPTED], partitions=(5,)),
    said("two", 9, ACCEPTED),
    said("two", 10, (0, 3, (ACCEPT,))),
    said("two", 11, (3, 0, (ACCEPT,))),
    said("two", 12, (0, 1, ())),
    said("two", 13, (0, 1, (ACCEPT, ACCEPT, ACCEPT))),
    said("two", 14, (0, 0, (RENEW,))),
    said("two", 15, (0, 0, (5,))),
    said("two", 16, (0, 0, (-1,))),
    said("two", 17, (1, 1, (ACCEPT,)), (0, 0, (ACCEPT,))),
    said("two", 18),
    said("two", 19, ACCEPTED, partition=7),
    said("two", 99, ACCEPTED),
    lambda made: made.produce(3),
    fetched("two", 20, partitions=(), max_wait_ms=WAIT_MS),
    said("two", 21, (1, 1, (RENEW,)), is_renew_ack=True),
    said("two", 22, (1, 3, (RELEASE, ACCEPT, REJECT))),
    described(),
    described(None),
    described(topic="nowhere"),
    altered(2),
    deleted(),
    lambda made: made.state(),
    said("two", -1, ACCEPTED),
    said("two", 23, ACCEPTED),
    lambda made: made.say("one", [ACCEPTED]),
    left("one"),
    left("two"),
    altered(2, partition=9),
    altered(2, topic="nowhere"),
    altered(2, group=""),
    altered(2),
    lambda made: made.state(),
    described(),
    deleted(topic="nowhere"),
    deleted(group="nowhere"),
    deleted(group=""),
    deleted(),
    deleted(),
    described(),
    lambda made: made.state(),
    stated(initialized, "Initialize", state_epoch=-1),
    stated(initialized, "Initialize", partition=-1),
    stated(initialized, "Initialize", partition=9),
    stated(initialized, "Initialize", topic_id=NOWHERE),
    stated(initialized, "Initialize", group=""),
    stated(initialized, "Initialize", state_epoch=5, start_offset=7),
    stated(initialized, "Initialize", state_epoch=4),
    stated(read, "Read", leader_epoch=-1),
    stated(read, "Read", partition=-1),
    stated(read, "Read", partition=9),
    stated(read, "Read", leader_epoch=6),
    stated(read, "Read", leader_epoch=5),
    stated(written, "Write", leader_epoch=-1),
    stated(written, "Write", state_epoch=-1),
    stated(written, "Write", leader_epoch=5),
    stated(written, "Write", leader_epoch=6, state_epoch=4),
    stated(written, "Write", partition=9),
    stated(
        written,
        "Write",
        leader_epoch=7,
        state_epoch=5,
        start_offset=9,
        delivery_complete_count=1,
        state_batches=(written.StateBatch(first_offset=8, last_offset=12, delivery_state=2, delivery_count=1),),
    ),
    stated(read, "Read", leader_epoch=7),
    stated(summarized, "ReadStateSummary"),
    stated(summarized, "ReadStateSummary", partition=-1),
    stated(summarized, "ReadStateSummary", topic_id=NOWHERE),
    stated(erased, "Delete", partition=-1),
    stated(erased, "Delete", topic_id=NOWHERE),
    stated(erased, "Delete"),
    stated(erased, "Delete"),
    stated(summarized, "ReadStateSummary"),
]


class Script:
    """Builds steps for members, based on the responses of one side.

    A fetch that returns records waits for them on the other side. Kafka responds before it releases the lock of the
    partition, and a fetch that finds the partition locked returns no records unless it waits.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.drained = False
        """Whether no record is available."""
        self.freed = False
        self.held: dict[str, list[tuple[int, int, int]]] = {member: [] for member in MEMBERS}

    def step(self) -> Step:
        """Return the next step."""
        member = self.random.choice(MEMBERS)
        kind = self.random.choices(("produce", "fetch", "say", "fetch and say", "wrong"), (3, 6, 4, 3, 1))[0]
        if kind == "produce":
            count = self.random.randint(1, 12)
            self.drained = False
            return lambda side: side.produce(count)
        if kind in ("fetch", "fetch and say"):
            self.freed = False
            # Kafka releases records concurrently with the fetch. If no other record is available, the fetch waits for
            # them.
            said = self._said(member, release=self.drained) if kind != "fetch" else []
            fields = {
                "max_records": self.random.choice((1, 2, 5, 20)),
                "batch_size": self.random.choice((1, 4, 100)),
                "share_acquire_mode": self.random.randint(0, 1),
                "max_wait_ms": WAIT_MS if self.freed else 0,
            }
            return self._noted(member, said, fields)
        if kind == "say":
            said = self._said(member)
            self.drained &= not self.freed
            return lambda side: side.say(member, said)
        wrong = self._wrong(member)
        return lambda side: side.say(member, [wrong])

    def _wrong(self, member: str) -> Said:
        """Return an invalid acknowledgement, for records of another member or of nobody, or with invalid values."""
        held = [piece for other in MEMBERS if other != member for piece in self.held[other]]
        if held and self.random.random() < 0.5:
            first, last, _ = self.random.choice(held)
            return first, last, [ACCEPT]
        first = self.random.randint(0, 60)
        return self.random.choice([(first, first - 1, [ACCEPT]), (first, first, [5]), (10_000, 10_001, [ACCEPT])])

    def _noted(self, member: str, said: Sequence[Said], fields: dict[str, int]) -> Step:
        def run(side: Side) -> Any:
            answer = side.fetch(member, said, **fields)
            got = [
                (each.first_offset, each.last_offset, each.delivery_count)
                for topic in answer.responses
                for part in topic.partitions
                for each in part.acquired_records
            ]
            self.held[member] += got
            self.drained = sum(last - first + 1 for first, last, _ in got) < fields["max_records"]
            if got:
                fields["max_wait_ms"] = WAIT_MS
            return answer

        return run

    def _said(self, member: str, *, release: bool = True) -> list[Said]:
        """Return acknowledgements of some acquired records: of whole ranges, of parts, and for each record.

        Sets ``freed`` to True if they make records available again.
        """
        said: list[Said] = []
        left: list[tuple[int, int, int]] = []
        self.freed = False
        for first, last, delivered in sorted(self.held[member]):
            how = self.random.choice(("keep", "all", "part", "each"))
            if how == "keep":
                left.append((first, last, delivered))
                continue
            end = last if how != "part" else self.random.randint(first, last)
            count = end - first + 1 if how == "each" else 1
            types = (ACCEPT, RELEASE, REJECT) if release else (ACCEPT, REJECT)
            said.append((first, end, [self.random.choice(types) for _ in range(count)]))
            self.freed |= delivered < DELIVERIES and RELEASE in said[-1][2]
            if end < last:
                left.append((end + 1, last, delivered))
        self.held[member] = left
        return said


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_scripts_get_the_answers_of_a_real_cluster(kafka_cluster: ClusterAddresses, seed: int) -> None:
    script, steps = Script(seed), list[Step]()
    with EmbeddedBroker(configs=KEPT) as broker, side(broker.bootstrap_servers) as ours:
        answers = []
        for _ in range(STEPS):
            steps.append(script.step())
            answers.append(shown(steps[-1](ours)))
        answers += end(ours)
        assert broker.problems == []
    with side(kafka_cluster.bootstrap_servers) as theirs:
        expected = [shown(step(theirs)) for step in steps]
        expected += end(theirs)
    assert [each for each in zip(range(STEPS + 2), expected, answers, strict=True) if each[1] != each[2]] == []


@pytest.mark.oracle
def test_requests_of_all_kinds_get_the_answers_of_a_real_cluster(kafka_cluster: ClusterAddresses) -> None:
    with EmbeddedBroker(configs=KEPT) as broker, side(broker.bootstrap_servers) as ours:
        answers = [shown(step(ours)) for step in FIXED]
        assert broker.problems == []
    with side(kafka_cluster.bootstrap_servers) as theirs:
        expected = [shown(step(theirs)) for step in FIXED]
    assert [each for each in zip(range(len(FIXED)), expected, answers, strict=True) if each[1] != each[2]] == []
