"""Interleavings of the caller and the I/O thread, on simulated time: nothing is lost or repeated.

A ``Plan`` determines where the threads switch. Each test runs the same call with every plan of a bounded set, or with
random plans, and checks the records and the positions after each one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, product
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_msgs.client import Consumer, Producer, TopicPartition
from kafka_msgs.client.consumer import ConsumerConfig
from kafka_msgs.client.consumer.consumer_state import ConsumerState
from kafka_msgs.client.consumer.core import ConsumerCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.errors import ClientClosedError, ProducerClosedError
from tests.support.interleavings import Plan, SteppedClient, SteppedLock, SteppedNetwork
from tests.support.produce_cluster import ProduceCluster
from tests.support.simulated_groups import GroupCluster

T0 = TopicPartition("t", 0)
ONE_PARTITION: Final = {"t": 1}
ONE = (7,)
FEW = (2, 20)
MANY = range(1, 120)
"""The lengths of the I/O thread's first run, in lines."""
SHALLOW = 5
DEEP = 12
"""The number of accesses to shared state, before each of which the threads switch or do not."""
RANDOM_PLANS = st.builds(
    Plan, st.lists(st.integers(1, 40) | st.integers(1, 400), min_size=3, max_size=12).map(tuple), st.booleans()
)


def plans(call: Callable[[Plan], SteppedNetwork], lengths: Any) -> Iterator[Plan]:
    """Yield plans that interrupt a call before each of its lines, or some of them. ``call`` runs it with a plan.

    Instead of lengths, a depth stands for all plans over that number of accesses to shared state.
    """
    if isinstance(lengths, int):
        yield from (Plan(steps, accesses=True) for steps in compositions(lengths))
        return
    lines = call(Plan(())).caller_steps
    assert lines > 0
    stride = {FEW: 2, ONE: 9}.get(lengths, 1)
    yield from (Plan(each) for each in product(range(1, lines + 1, stride), lengths))


def compositions(total: int) -> Iterator[tuple[int, ...]]:
    """Yield all sequences of positive numbers with a sum."""
    if total == 0:
        yield ()
    for first in range(1, total + 1):
        yield from ((first, *rest) for rest in compositions(total - first))


# Producers


@contextmanager
def stepped_producer(**options: Any) -> Iterator[tuple[ProduceCluster, SteppedNetwork, Producer]]:
    """A producer on a stepped network, with one partition."""
    network = SteppedNetwork()
    cluster = ProduceCluster(1, network=network)
    try:
        producer = Producer(SteppedClient(network, "b1:9092"), **options)
        producer.core.accumulator.lock = producer.core._lock = SteppedLock(network)  # type: ignore[assignment]
        yield cluster, network, producer
        producer.close()
    finally:
        network.close()


SENDS = ["s", "ss", "sf", "ssf", "fs", "sr", "srs"]
"""Programs of a producer: s sends a record, f flushes, r waits for the result of the last record."""


def run_sends(producer: Producer, program: str, numbers: Iterator[int]) -> list[bytes]:
    """Run a program, and return the values of its records."""
    sent: list[bytes] = []
    for step in program:
        if step == "s":
            sent.append(b"%06d" % next(numbers))
            delivery = producer.send("t", sent[-1])
        elif step == "r":
            assert delivery.result().partition == 0
        else:
            producer.flush()
    return sent


BATCHES = pytest.mark.parametrize(
    "options", [{"linger": 0.0}, {"linger": 0.0, "batch_size": 90}], ids=["large", "full"]
)


@contextmanager
def sends(program: str, **options: Any) -> Iterator[Callable[[Plan], SteppedNetwork]]:
    """Yield a function that runs a program with a plan, and checks that each record was written once, in order."""
    with stepped_producer(**options) as (cluster, network, producer):
        numbers = count()
        written = cluster.logs[0].values
        producer.send_and_wait("t", b"first")

        def call(plan: Plan) -> SteppedNetwork:
            before = len(written)
            with network.follow(plan):
                sent = run_sends(producer, program, numbers)
            producer.flush()
            assert written[before:] == sent, plan
            return network

        yield call


@BATCHES
@pytest.mark.parametrize(
    ("program", "lengths"),
    [
        *product(SENDS, [FEW, SHALLOW]),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in product(["ss", "sfs"], [MANY, DEEP])),
    ],
)
def test_sends_lose_and_repeat_nothing(program: str, lengths: Any, options: dict[str, Any]) -> None:
    """Batches close and leave at any line of ``send``, ``flush`` and ``result``."""
    with sends(program, **options) as call:
        for plan in plans(call, lengths):
            call(plan)


@BATCHES
@settings(max_examples=30, deadline=None)
@given(program=st.text("sfr", min_size=1, max_size=6).map("s".__add__), several=st.lists(RANDOM_PLANS, min_size=1))
def test_random_interleavings_of_sends(options: dict[str, Any], program: str, several: list[Plan]) -> None:
    with sends(program, **options) as call:
        for plan in several:
            call(plan)


def test_a_send_beside_a_close_is_delivered_or_refused() -> None:
    """``close`` comes from a callback of the I/O thread, at any line of ``send``."""
    lines, outcomes = 1, set()
    for line in count(1):
        for length in (1, 8, 40):
            with stepped_producer(linger=60.0) as (cluster, network, producer):
                producer.send("t", b"first")
                network.post(lambda: network.spawn(producer.core.close(network.time + 5)))
                sent, refused = [b"first"], None
                with network.follow(Plan((line, length))):
                    try:
                        delivery = producer.send("t", b"second")
                        sent.append(b"second")
                    except ProducerClosedError as error:
                        refused = error
                lines = network.caller_steps
                network.settle(10.0)
                outcomes.add("delivered" if refused is None and delivery.error is None else "refused")
                if refused is None and delivery.error is not None:
                    assert isinstance(delivery.error, ProducerClosedError)
                    sent.pop()
                assert cluster.logs[0].values == sent, (line, length)
        if line >= lines:
            break
    assert outcomes == {"delivered", "refused"}


# Consumers


@contextmanager
def stepped_consumer(
    topics: dict[str, int] = ONE_PARTITION, /, **options: Any
) -> Iterator[tuple[GroupCluster, SteppedNetwork, Consumer]]:
    """A consumer on a stepped network."""
    network = SteppedNetwork()
    cluster = GroupCluster(dict(topics), network=network)
    try:
        consumer = Consumer(SteppedClient(network, "b1:9092"), **{"auto_offset_reset": "earliest", **options})
        consumer.core.state.lock = SteppedLock(network)
        yield cluster, network, consumer
        consumer.close()
    finally:
        network.close()


class Reader:
    """Runs programs, and checks each result: p polls, n iterates, k seeks, c commits, w pauses and resumes."""

    def __init__(self, cluster: GroupCluster, consumer: Consumer) -> None:
        self.cluster = cluster
        self.consumer = consumer
        self.expected = self.start = 0
        """The offset of the next record, and of the first record of this round."""

    def run(self, program: str) -> None:
        """Run a program."""
        for step in program:
            getattr(self, step)()
            self.check()

    def p(self) -> None:
        """Poll once."""
        for record in self.consumer.poll(1.0, max_records=2):
            self.take(record)

    def n(self) -> None:
        """Iterate once, if there is a record."""
        if self.expected < self.cluster.ends[T0]:
            self.take(next(iter(self.consumer)))

    def k(self) -> None:
        """Seek to the first record of this round."""
        self.consumer.seek({T0: self.start})
        self.expected = self.start

    def c(self) -> None:
        """Commit."""
        self.consumer.commit()
        assert self.cluster.committed.get(("g", *T0), 0) == self.expected

    def w(self) -> None:
        """Pause and resume."""
        self.consumer.pause()
        self.consumer.resume()

    def take(self, record: Any) -> None:
        """Check that a record is the next one."""
        assert record.offset == self.expected
        self.expected += 1

    def check(self) -> None:
        """Check the order of the offsets of a partition."""
        partition = self.consumer.core.partitions[T0]
        assert partition.position == self.expected
        handled = partition.handled or 0
        assert isinstance(handled, int)
        assert handled <= partition.position <= partition.fetch_offset

    def drain(self) -> None:
        """Read the remaining records."""
        while self.expected < self.cluster.ends[T0]:
            self.p()
        self.start = self.expected


READS = ["pp", "nn", "np", "pn", "pkp", "kp", "nkn", "pc", "pwp", "ncn"]


@contextmanager
def reads(program: str, limit: int) -> Iterator[Callable[[Plan], SteppedNetwork]]:
    """Yield a function that runs a program with a plan, and checks that each record is returned once, in order."""
    with stepped_consumer(group_id="g", partition_max_bytes=limit) as (cluster, network, consumer):
        consumer.assign([T0])
        reader = Reader(cluster, consumer)
        cluster.produce("t", 0, [b"first"])
        reader.drain()

        def call(plan: Plan) -> SteppedNetwork:
            cluster.batches[T0].clear()
            for _ in range(3):
                cluster.produce("t", 0, [b"a", b"b"])
            network.settle(0.003 * (sum(plan.steps[:1]) % 5))
            with network.follow(plan):
                reader.run(program)
            reader.drain()
            reader.check()
            return network

        yield call


LARGE, SMALL = 1 << 20, 60
"""A limit of fetched bytes that holds all batches, and one that holds a single batch."""


@pytest.mark.parametrize(
    ("program", "lengths", "limit"),
    [
        *product(READS, [FEW, SHALLOW], [LARGE]),
        *product(["pp", "np"], [FEW], [SMALL]),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in product(["pp", "pkp"], [MANY, DEEP], [LARGE, SMALL])),
    ],
)
def test_reads_lose_and_repeat_nothing(program: str, lengths: Any, limit: int) -> None:
    """Records arrive, positions are looked up, and sessions change at any line of the caller."""
    with reads(program, limit) as call:
        for plan in plans(call, lengths):
            call(plan)


@pytest.mark.parametrize("limit", [LARGE, SMALL])
@settings(max_examples=30, deadline=None)
@given(program=st.text("pnkcw", min_size=1, max_size=6), several=st.lists(RANDOM_PLANS, min_size=1))
@example(program="kwnknc", several=[Plan((1, 1, 1))])
def test_random_interleavings_of_reads(limit: int, program: str, several: list[Plan]) -> None:
    with reads(program, limit) as call:
        for plan in several:
            call(plan)


@pytest.mark.parametrize(
    "lengths", [(2, 20, 60), *(pytest.param(each, marks=pytest.mark.slow) for each in (MANY, DEEP))]
)
def test_no_record_is_returned_after_its_partition_is_lost(lengths: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator has removed the member, which learns it from a heartbeat at any line of two polls."""
    owned = True

    drop = ConsumerState.drop

    def note_drop(state: ConsumerState, partitions: frozenset[TopicPartition] | None = None) -> None:
        nonlocal owned
        drop(state, partitions)
        owned = False

    def note_assignment(partitions: list[TopicPartition]) -> None:
        nonlocal owned
        owned = owned or bool(partitions)

    monkeypatch.setattr(ConsumerState, "drop", note_drop)
    with stepped_consumer(group_id="g", session_timeout=0.6) as (cluster, network, consumer):
        consumer.subscribe(["t"], on_assigned=note_assignment)
        cluster.produce("t", 0, [b"first"])
        while not consumer.poll(1.0):
            pass

        def call(plan: Plan) -> SteppedNetwork:
            consumer.commit()
            cluster.batches[T0].clear()
            cluster.produce("t", 0, [b"a", b"b"])
            cluster.produce("t", 0, [b"c", b"d"])
            network.settle(0.003 * (sum(plan.steps[:1]) % 5))
            cluster.group("g").remove(consumer.member_id)
            found: list[int] = []
            with network.follow(plan):
                for _ in range(2):
                    before = owned
                    records = consumer.poll(0.05, max_records=1)
                    assert before or owned or not records
                    found += [record.offset for record in records]
            while cluster.ends[T0] - 1 not in found:
                found += [record.offset for record in consumer.poll(1.0)]
            assert set(found) == set(range(cluster.ends[T0] - 4, cluster.ends[T0])), plan
            return network

        for plan in plans(call, lengths):
            call(plan)


COOPERATIVE: dict[str, Any] = {
    "group_id": "g",
    "assignors": "cooperative-sticky",
    "auto_commit": True,
    "auto_offset_reset": "earliest",
    "session_timeout": 0.6,
    "heartbeat_frequency": 20,
}


class OtherMember:
    """A second member of the group, which runs in the I/O thread as long as a block."""

    def __init__(self, cluster: GroupCluster, network: SteppedNetwork) -> None:
        self.found: list[tuple[int, int]] = []
        self._network = network
        self._core = ConsumerCore(cluster.core(), ConsumerConfig(**COOPERATIVE), background=True)
        self._core.subscribe(["t"])

    def __enter__(self) -> OtherMember:
        self._network.post(lambda: self._network.spawn(self._read()))
        return self

    def __exit__(self, *error: object) -> None:
        self._network.run(self._core.close(self._network.time + 5))
        self._core.client.close()

    def _read(self) -> Flow[None]:
        with suppress(ClientClosedError):
            while True:
                records = yield from self._core.poll(self._network.time + 0.02, 1)
                self.found += [(record.partition, record.offset) for record in records]


@pytest.mark.parametrize(
    "lengths", [ONE, *(pytest.param(each, marks=pytest.mark.slow) for each in ((2, 20, 60), DEEP))]
)
def test_a_cooperative_rebalance_gives_each_record_to_one_member(lengths: Any) -> None:
    """A second member takes over one of two partitions, at any line of two polls of the first member."""
    with stepped_consumer({"t": 2}, **COOPERATIVE) as (cluster, network, consumer):
        consumer.subscribe(["t"])
        while len(consumer.assignment) < 2:
            consumer.poll(0.1)

        def call(plan: Plan) -> SteppedNetwork:
            while len(consumer.assignment) < 2:
                consumer.poll(0.1)
            for partition in (0, 1):
                cluster.batches["t", partition].clear()
                for _ in range(2):
                    cluster.produce("t", partition, [b"a", b"b"])
            expected = {(part, cluster.ends["t", part] - back) for part in (0, 1) for back in (1, 2, 3, 4)}
            network.settle(0.003 * (sum(plan.steps[:1]) % 5))
            found: list[tuple[int, int]] = []
            with OtherMember(cluster, network) as other:
                with network.follow(plan):
                    for _ in range(2):
                        found += [(each.partition, each.offset) for each in consumer.poll(0.02, max_records=1)]
                while len(found) + len(other.found) < len(expected) or len(consumer.assignment) != 1:
                    found += [(each.partition, each.offset) for each in consumer.poll(0.02, max_records=1)]
                assert sorted(found + other.found) == sorted(expected), plan
            return network

        for plan in plans(call, lengths):
            call(plan)
