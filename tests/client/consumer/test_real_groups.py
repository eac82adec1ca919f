"""Our consumer shares groups with other clients on real brokers: one commit per record, one owner per partition."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from typing import Any, Final, TypeAlias

import pytest

from kafka_msgs.admin import Admin, AsyncAdmin, ConfigChange, ConfigResource, ConfigResourceType
from kafka_msgs.client import AsyncConsumer, Consumer, TopicPartition
from kafka_msgs.errors import BrokerError
from tests.recorders.broker import Jars, java_command
from tests.support.cluster_topics import new_name, new_topic
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.shared_cluster import BreakableCluster

PARTITIONS: Final = 6
PATIENCE: Final = 120.0

Place: TypeAlias = tuple[int, int]
"""A partition and an offset."""


def produce(cluster: ClusterAddresses, topic: str, first: int, count: int) -> None:
    """Write records with numbers as values, using another client."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5})
    for number in range(first, first + count):
        producer.produce(topic, b"%d" % number, key=b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


async def whole(work: Coroutine[Any, Any, None]) -> None:
    """Complete an awaitable even if the task is cancelled meanwhile, so that every commit is recorded."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


class Readers:
    """Members of one group, each in a separate task. ``done`` counts the consumed and committed records."""

    def __init__(self, cluster: ClusterAddresses, topic: str, group: str | None = None) -> None:
        self.cluster = cluster
        self.topic = topic
        self.group = group or f"group-{topic}"
        self.done: Counter[Place] = Counter()
        self.by: dict[str, int] = Counter()
        self.assigned: dict[str, frozenset[TopicPartition]] = {}

    def note(self, name: str, places: Collection[Place]) -> None:
        """Record committed records."""
        self.done.update(places)
        self.by[name] += len(places)

    async def _commit(self, name: str, commit: Awaitable[Any], places: Collection[Place]) -> None:
        """Commit, and record the committed records."""
        await commit
        self.note(name, places)

    async def ours(self, name: str, **settings: Any) -> None:
        """Read with our consumer until cancelled."""
        servers, group = self.cluster.bootstrap_servers, self.group
        async with AsyncConsumer(servers, group_id=group, auto_offset_reset="earliest", **settings) as consumer:
            consumer.subscribe(self.topic)
            read: set[Place] = set()
            try:
                while True:
                    read |= {(each.partition, each.offset) for each in await consumer.poll(0.2, max_records=50)}
                    self.assigned[name] = consumer.assignment
                    read = {place for place in read if (self.topic, place[0]) in consumer.assignment}
                    if read:
                        with contextlib.suppress(BrokerError):
                            await whole(self._commit(name, consumer.commit(), read))
                            read = set()
            finally:
                self.assigned.pop(name, None)

    async def ours_crashing(self, name: str, after: int, **settings: Any) -> None:
        """Read with our consumer, and stop without leaving the group after some records, committed only in part."""
        consumer = AsyncConsumer(
            self.cluster.bootstrap_servers, group_id=self.group, auto_offset_reset="earliest", session_timeout=3.0,
            **settings,
        )  # fmt: skip
        consumer.subscribe(self.topic)
        try:
            while self.by[name] < after:
                records = await consumer.poll(0.2, max_records=20)
                if records:
                    with contextlib.suppress(BrokerError):
                        await consumer.commit()
                        self.note(name, [(record.partition, record.offset) for record in records])
            await consumer.poll(0.2)
        finally:
            await consumer.client.close()  # sockets and tasks end; the group does not get a LeaveGroup

    async def aiokafka(self, name: str, **settings: Any) -> None:
        """Read with aiokafka until cancelled."""
        aiokafka = pytest.importorskip("aiokafka")
        errors = pytest.importorskip("aiokafka.errors")
        consumer = aiokafka.AIOKafkaConsumer(
            self.topic, bootstrap_servers=self.cluster.bootstrap_servers, group_id=self.group,
            auto_offset_reset="earliest", enable_auto_commit=False, **settings,
        )  # fmt: skip
        await consumer.start()
        try:
            while True:
                found = await consumer.getmany(timeout_ms=200, max_records=50)
                ends = {place: records[-1].offset + 1 for place, records in found.items()}
                if ends:
                    with contextlib.suppress(errors.CommitFailedError, errors.KafkaError):
                        if set(ends) <= consumer.assignment():
                            places = [(each.partition, each.offset) for rs in found.values() for each in rs]
                            await whole(self._commit(name, consumer.commit(ends), places))
        finally:
            await consumer.stop()

    async def librdkafka(self, name: str, **settings: Any) -> None:
        """Read with librdkafka until cancelled."""
        confluent_kafka = pytest.importorskip("confluent_kafka")
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers, "group.id": self.group,
                "auto.offset.reset": "earliest", "enable.auto.commit": False, **settings,
            }
        )  # fmt: skip
        consumer.subscribe([self.topic])
        read: set[Place] = set()
        try:
            while True:
                records = await asyncio.to_thread(consumer.consume, 50, 0.2)
                read |= {(record.partition(), record.offset()) for record in records if record.error() is None}
                assigned = {each.partition for each in consumer.assignment()}
                read = {place for place in read if place[0] in assigned}
                if read:
                    with contextlib.suppress(confluent_kafka.KafkaException):
                        await whole(self._commit(name, asyncio.to_thread(consumer.commit, asynchronous=False), read))
                        read = set()
        finally:
            await asyncio.to_thread(consumer.close)

    async def java(self, name: str, **settings: str) -> None:
        """Read with Kafka's console consumer until cancelled. It commits before it revokes partitions."""
        options = ["print.partition=true", "print.offset=true", "print.value=true"]
        properties = {"group.id": self.group, "auto.offset.reset": "earliest", **settings}
        arguments = [
            "--bootstrap-server", self.cluster.bootstrap_servers, "--topic", self.topic,
            *(part for each in options for part in ("--formatter-property", each)),
            *(part for key, value in properties.items() for part in ("--command-property", f"{key}={value}")),
        ]  # fmt: skip
        command = java_command(
            "org.apache.kafka.tools.consumer.ConsoleConsumer", arguments, heap_mb=128, jars=Jars.TOOLS
        )
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                self._note_line(name, line)
        except asyncio.CancelledError:
            process.terminate()  # it commits and leaves
            async for line in process.stdout:
                self._note_line(name, line)
            raise
        finally:
            if process.returncode is None:
                await process.wait()

    def _note_line(self, name: str, line: bytes) -> None:
        partition, offset, _ = line.decode().split("\t")
        self.note(name, [(int(partition.split(":")[1]), int(offset.split(":")[1]))])

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(PATIENCE):
            while not reached():
                await asyncio.sleep(0.05)

    def is_divided(self) -> bool:
        """Return whether at least two members share all partitions, each partition assigned once."""
        names = [name.partition for each in self.assigned.values() for name in each]
        return len(self.assigned) > 1 and all(self.assigned.values()) and sorted(names) == list(range(PARTITIONS))

    def expect_once(self, count: int) -> None:
        """Check that exactly one member committed each record."""
        wanted = {(number % PARTITIONS, number // PARTITIONS) for number in range(count)}
        assert set(self.done) == wanted, "records are missing"
        assert [place for place, times in self.done.items() if times > 1] == []


@contextlib.asynccontextmanager
async def running(*members: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run members concurrently until the end of the block. If one member fails, the block ends immediately."""
    block = asyncio.current_task()
    assert block is not None
    tasks = [asyncio.create_task(member) for member in members]
    for each in tasks:
        each.add_done_callback(lambda done: done.cancelled() or done.exception() is None or block.cancel())
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert result is None or isinstance(result, asyncio.CancelledError), result


CLASSIC: Final = {"assignors": "range"}
MODERN: Final[dict[str, Any]] = {"group_protocol": "consumer"}


async def _join_share_and_leave(
    cluster: ClusterAddresses, ours: dict[str, Any], others: list[Callable[[Readers], Awaitable[None]]]
) -> None:
    """Members of several clients join in turn, read, and leave while a producer keeps writing."""
    readers = Readers(cluster, new_topic(cluster, PARTITIONS))
    written = 0

    async def write_until(reached: Callable[[], bool]) -> None:
        nonlocal written
        while not reached():
            await asyncio.to_thread(produce, cluster, readers.topic, written, 60)
            written += 60
            assert written < 30_000, f"only {sorted(readers.by)} read anything"
            await asyncio.sleep(0.2)

    async with running(readers.ours("first", **ours)):
        await write_until(lambda: readers.by["first"] > 0)
        async with running(*(other(readers) for other in others)):  # type: ignore[arg-type]
            await write_until(lambda: len(readers.by) == 1 + len(others))
            async with running(readers.ours("second", **ours)):
                await write_until(lambda: readers.by["second"] > 0)
        await write_until(lambda: len(readers.assigned["first"]) == PARTITIONS)
        await readers.until(lambda: sum(readers.done.values()) >= written)
    readers.expect_once(written)


def test_a_classic_group_with_java_librdkafka_and_aiokafka(kafka_cluster: ClusterAddresses) -> None:
    def aiokafka(readers: Readers) -> Awaitable[None]:
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor

        return readers.aiokafka("aiokafka", partition_assignment_strategy=(RangePartitionAssignor,))

    others: list[Callable[[Readers], Awaitable[None]]] = [
        aiokafka,
        lambda readers: readers.librdkafka("librdkafka", **{"partition.assignment.strategy": "range"}),
        lambda readers: readers.java("java"),
    ]
    pytest.importorskip("aiokafka")
    asyncio.run(_join_share_and_leave(kafka_cluster, CLASSIC, others))


def test_a_cooperative_group_with_java_and_librdkafka(kafka_cluster: ClusterAddresses) -> None:
    sticky = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    others: list[Callable[[Readers], Awaitable[None]]] = [
        lambda readers: readers.librdkafka("librdkafka", **{"partition.assignment.strategy": "cooperative-sticky"}),
        lambda readers: readers.java("java", **{"partition.assignment.strategy": sticky}),
    ]
    asyncio.run(_join_share_and_leave(kafka_cluster, {"assignors": "cooperative-sticky"}, others))


def test_a_group_of_kip_848_with_java_and_librdkafka(kafka_cluster: ClusterAddresses) -> None:
    others: list[Callable[[Readers], Awaitable[None]]] = [
        lambda readers: readers.librdkafka("librdkafka", **{"group.protocol": "consumer"}),
        lambda readers: readers.java("java", **{"group.protocol": "consumer"}),
    ]
    asyncio.run(_join_share_and_leave(kafka_cluster, MODERN, others))


@pytest.mark.parametrize("settings", [CLASSIC, {"assignors": "cooperative-sticky"}, MODERN], ids=str)
def test_after_a_crash_the_others_read_what_was_not_committed(
    kafka_cluster: ClusterAddresses, settings: dict[str, Any]
) -> None:
    async def main() -> None:
        readers = Readers(kafka_cluster, new_topic(kafka_cluster, PARTITIONS))
        written = 0
        session = ConfigChange("consumer.session.timeout.ms", "3000")
        async with AsyncAdmin(kafka_cluster.bootstrap_servers) as admin:
            (await admin.alter_configs({ConfigResource(ConfigResourceType.GROUP, readers.group): [session]})).all()
        crashing = readers.ours_crashing("crashing", 40, **settings)
        async with running(readers.ours("steady", **settings), crashing) as (_, crash):
            while not crash.done():
                await asyncio.to_thread(produce, kafka_cluster, readers.topic, written, 60)
                written += 60
                assert written < 30_000, f"only {sorted(readers.by)} read anything"
                await asyncio.sleep(0.2)
            await readers.until(lambda: sum(readers.done.values()) >= written)
            await readers.until(lambda: len(readers.assigned["steady"]) == PARTITIONS)
        readers.expect_once(written)

    asyncio.run(main())


def test_reading_goes_on_when_the_coordinator_is_killed(breakable_kafka_cluster: BreakableCluster) -> None:
    """A classic and a modern group share a coordinator, which also leads partitions of their topic."""
    cluster = breakable_kafka_cluster
    topic = new_topic(cluster, PARTITIONS, replicas=3)
    with Admin(cluster.bootstrap_servers) as admin:
        names = [new_name("killed") for _ in range(9)]
        places = admin.find_coordinators(names).all()
    gone, _ = Counter(places.values()).most_common(1)[0]
    groups = [Readers(cluster, topic, name) for name in names if places[name] == gone][:2]
    classic, modern = groups

    async def main() -> None:
        await asyncio.to_thread(produce, cluster, topic, 0, 600)
        members = [
            *(classic.ours(name, assignors="cooperative-sticky") for name in ("a", "b")),
            *(modern.ours(name, **MODERN) for name in ("a", "b")),
        ]
        async with running(*members):
            for group in groups:
                await group.until(group.is_divided)
            await asyncio.to_thread(cluster.kill, gone)
            await asyncio.to_thread(produce, cluster, topic, 600, 600)
            for group in groups:
                await group.until(lambda group=group: sum(group.done.values()) >= 1200)  # type: ignore[misc]
                await group.until(group.is_divided)

    asyncio.run(main())
    for group in groups:
        group.expect_once(1200)


def test_the_blocking_form_shares_a_group_and_kafkas_tools_see_it(kafka_cluster: ClusterAddresses) -> None:
    topic = new_topic(kafka_cluster, PARTITIONS)
    produce(kafka_cluster, topic, 0, 600)
    servers, group = kafka_cluster.bootstrap_servers, f"group-{topic}"
    seen: Counter[Place] = Counter()
    with (
        Consumer(servers, group_id=group, auto_offset_reset="earliest", client_rack="r1") as one,
        Consumer({"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}) as other,
    ):
        for consumer in (one, other):
            consumer.subscribe([topic])
        for _ in range(2_000):
            for consumer in (one, other):
                records = consumer.poll(0.02, max_records=20)
                with contextlib.suppress(BrokerError):
                    consumer.commit()
                    seen.update((record.partition, record.offset) for record in records)
            if sum(seen.values()) >= 600 and one.assignment and other.assignment:
                break
        assert one.assignment.isdisjoint(other.assignment)
        assert len(one.assignment | other.assignment) == PARTITIONS
        assert set(seen.values()) == {1}
        assert len(seen) == 600
        described = kafka_cluster.consumer_groups("--describe", "--group", group)
        for consumer in (one, other):
            rows = [line.split() for line in described.splitlines() if consumer.member_id in line]
            assert {(row[1], int(row[2])) for row in rows} == {tuple(each) for each in consumer.assignment}
    rows = [line.split() for line in kafka_cluster.consumer_groups("--describe", "--group", group).splitlines()]
    assert {(row[2], row[6]) for row in rows if topic in row} == {(str(number), "-") for number in range(PARTITIONS)}
    assert {row[3] for row in rows if topic in row} == {"100"}, "the group has left, and its offsets are committed"
