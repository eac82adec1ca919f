"""Asyncio calls that are cancelled at every turn of their flows: the client stays usable and leaves no task behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from kafka_msgs.admin import AsyncAdmin, ConfigResource, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import AsyncClient, AsyncConsumer, AsyncProducer, TopicPartition
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.errors import ProducerClosedError
from tests.support.cancellations import cancelled_everywhere

Call = Callable[[AsyncAdmin], Coroutine[Any, Any, Any]]
T0 = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """An embedded broker with a topic of ten records, for all tests of this module."""

    async def fill() -> None:
        async with AsyncAdmin(broker.bootstrap_servers) as admin, AsyncProducer(broker.bootstrap_servers) as producer:
            await admin.create_topics([NewTopic("t", 1)])
            for number in range(10):
                await producer.send("t", b"%d" % number)

    with EmbeddedBroker(configs={"group.initial.rebalance.delay.ms": "0"}) as broker:
        asyncio.run(fill())
        yield broker.bootstrap_servers


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine, for at most two minutes."""
    return asyncio.run(asyncio.wait_for(main, 120))


async def create(servers: str, topic: str) -> None:
    """Create a topic with one partition."""
    async with AsyncAdmin(servers) as admin:
        (await admin.create_topics([NewTopic(topic, 1)])).all()


async def values(servers: str, topic: str, isolation: Any = "read_uncommitted") -> list[bytes]:
    """Return the values of a topic."""
    async with AsyncConsumer(servers, auto_offset_reset="earliest", isolation_level=isolation) as consumer:
        end = (await consumer.end_offsets([(topic, 0)]))[TopicPartition(topic, 0)]
        consumer.assign([(topic, 0)])
        found: list[bytes] = []
        while await consumer.position((topic, 0)) < end:
            found += [bytes(each.value or b"") for each in await consumer.poll(1.0)]
        return found


async def settled(client: AsyncClient) -> None:
    """Wait until no task of a client is running."""
    while client.network.task_count or client.network._foreground:
        await asyncio.sleep(0.01)


def test_a_cancelled_flush_continues_in_the_background(servers: str) -> None:
    async def main() -> None:
        await create(servers, "flushed")
        sent: list[bytes] = []
        async with AsyncClient(servers) as client, AsyncProducer(client, linger=60.0) as producer:

            async def call(turn: int) -> None:
                sent.append(b"%d" % turn)
                await producer.send("flushed", sent[-1])
                await producer.flush()

            async for turn in cancelled_everywhere(client, call):
                if turn % 3 == 0:
                    await producer.flush(5.0)
            assert len(sent) > 3
        found = await values(servers, "flushed")
        assert found == [each for each in sent if each in found]
        assert sent[-1] in found

    run(main())


@pytest.mark.parametrize("memory", [1 << 20, 1000], ids=["new topic", "full buffer"])
def test_a_cancelled_send_sends_its_record_once_or_not_at_all(servers: str, memory: int) -> None:
    async def main() -> None:
        topic = f"sent-{memory}"
        await create(servers, topic)
        certain: list[bytes] = []
        async with AsyncClient(servers) as client:
            options: dict[str, Any] = {"linger": 0.0, "buffer_memory": memory, "max_request_size": 900}
            producers: list[AsyncProducer] = []

            async def call(turn: int) -> None:
                producer = AsyncProducer(client, **options)
                producers.append(producer)
                for number in range(3):
                    await producer.send(topic, value := b"%d.%d " % (turn, number) + b"x" * 300)
                    certain.append(value)

            async for _ in cancelled_everywhere(client, call):
                if producers:
                    await producers.pop().close()
            await settled(client)
        found = await values(servers, topic)
        assert set(certain) <= set(found)
        assert len(found) == len(set(found))
        assert found == sorted(found, key=lambda each: tuple(map(int, each.split(b" ")[0].split(b"."))))

    run(main())


def test_a_cancelled_close_of_a_producer_delivers_or_reports_each_record(servers: str) -> None:
    async def main() -> None:
        await create(servers, "closed")
        async with AsyncClient(servers) as client:
            deliveries: dict[bytes, Any] = {}
            producers: list[AsyncProducer] = []

            async def ready() -> None:
                producers.append(AsyncProducer(client, linger=60.0))
                value = b"%d" % len(producers)
                deliveries[value] = await producers[-1].send("closed", value)

            async def call(turn: int) -> None:
                await producers[-1].close()

            await ready()
            async for _ in cancelled_everywhere(client, call):
                await settled(client)
                await ready()
            await producers[-1].close()
            found = await values(servers, "closed")
            assert found == sorted(set(found), key=int)
            for value, delivery in deliveries.items():
                assert delivery.done
                if value not in found:
                    assert isinstance(delivery.error, ProducerClosedError)
                if delivery.error is None:
                    assert value in found

    run(main())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_cancelled_close_of_a_consumer_leaves_no_task(servers: str, protocol: Any) -> None:
    async def main() -> None:
        async with AsyncClient(servers) as client:
            consumers: list[AsyncConsumer] = []

            async def call(turn: int) -> None:
                await consumers[-1].close()

            async def ready() -> None:
                name = f"closed-{protocol}-{len(consumers)}"
                consumer = AsyncConsumer(client, group_id=name, group_protocol=protocol, auto_offset_reset="earliest")
                consumers.append(consumer)
                consumer.subscribe(["t"])
                while not await consumer.poll(1.0):
                    pass

            await ready()
            async for _ in cancelled_everywhere(client, call):
                await settled(client)
                assert not consumers[-1].core.tasks
                await ready()
            await consumers[-1].close()
            assert len(consumers) > 2

    run(main())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_after_a_cancelled_unsubscribe_a_consumer_can_subscribe_again(servers: str, protocol: Any) -> None:
    async def main() -> None:
        name = f"left-{protocol}"
        async with (
            AsyncClient(servers) as client,
            AsyncConsumer(client, group_id=name, group_protocol=protocol, auto_offset_reset="earliest") as consumer,
        ):

            async def read() -> None:
                consumer.subscribe(["t"])
                while not await consumer.poll(1.0):
                    pass

            await read()
            async for _ in cancelled_everywhere(client, lambda turn: consumer.unsubscribe()):
                assert not consumer.assignment
                await read()

    run(main())


@pytest.mark.parametrize("group", ["assigned", "subscribed"])
def test_a_cancelled_commit_commits_its_offset_or_leaves_the_one_before(servers: str, group: str) -> None:
    async def main() -> None:
        async with (
            AsyncClient(servers) as client,
            AsyncConsumer(client, group_id=group, auto_offset_reset="earliest") as consumer,
        ):
            if group == "assigned":
                consumer.assign([T0])
            else:
                consumer.subscribe(["t"])
            while not await consumer.poll(1.0, max_records=1):
                pass
            last = 0

            async def call(turn: int) -> None:
                await consumer.commit({T0: turn + 1})

            async for turn in cancelled_everywhere(client, call):
                found = await consumer.committed([T0])
                offset = found[T0].offset if found else 0
                assert offset in (last, turn + 1)
                last = offset
            assert last == turn + 1
            assert await consumer.poll(1.0, max_records=1)
            await consumer.commit()
            assert (await consumer.committed([T0]))[T0].offset == 2

    run(main())


QUERIES: dict[str, Callable[[AsyncConsumer], Coroutine[Any, Any, Any]]] = {
    "committed": lambda consumer: consumer.committed([T0]),
    "position": lambda consumer: consumer.position(T0),
    "end_offsets": lambda consumer: consumer.end_offsets([T0]),
    "partitions_for_topic": lambda consumer: consumer.partitions_for_topic("t"),
    "topics": lambda consumer: consumer.topics(),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_cancelled_query_of_a_consumer_can_be_repeated(servers: str, name: str) -> None:
    async def main() -> None:
        async with AsyncConsumer(servers, group_id="queries", auto_offset_reset="earliest") as consumer:
            expected = None
            consumer.assign([T0])
            async for _ in cancelled_everywhere(consumer.client, lambda turn: QUERIES[name](consumer)):
                found = await QUERIES[name](consumer)
                assert expected in (None, found)
                expected = found

    run(main())


OPERATIONS: dict[str, Call] = {
    "describe_cluster": lambda admin: admin.describe_cluster(),
    "list_topics": lambda admin: admin.list_topics(),
    "describe_topics": lambda admin: admin.describe_topics(["t"]),
    "list_offsets": lambda admin: admin.list_offsets({T0: -1}),
    "list_groups": lambda admin: admin.list_groups(),
    "list_group_offsets": lambda admin: admin.list_group_offsets("queries"),
    "describe_configs": lambda admin: admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "t")]),
    "create_topics": lambda admin: admin.create_topics([NewTopic("created", 1)]),
    "delete_topics": lambda admin: admin.delete_topics(["created"]),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_cancelled_admin_call_can_be_followed_by_another(servers: str, name: str) -> None:
    async def main() -> None:
        async with AsyncAdmin(servers) as admin:
            async for _ in cancelled_everywhere(admin.client, lambda turn: OPERATIONS[name](admin)):
                assert "t" in await admin.list_topics()
                assert not admin.client.network._foreground
            await settled(admin.client)

    run(main())


def test_cancelled_ends_of_transactions_can_be_repeated(servers: str) -> None:
    async def main() -> None:
        await create(servers, "committed")
        async with AsyncClient(servers) as client, AsyncProducer(client, transactional_id="t") as producer:
            async for _ in cancelled_everywhere(client, lambda turn: producer.init_transactions()):
                pass
            kept: list[bytes] = []

            async def commit(turn: int) -> None:
                await producer.begin_transaction()
                kept.append(b"%d" % turn)
                await producer.send("committed", kept[-1])
                await producer.send_offsets_to_transaction({T0: turn}, "transactions")
                await producer.commit_transaction()

            async for _ in cancelled_everywhere(client, commit):
                state = producer.core.transactions.state.name
                if state == "ENDING":
                    await producer.commit_transaction()
                elif state == "OPEN":
                    async for _ in cancelled_everywhere(client, lambda turn: producer.abort_transaction()):
                        if producer.core.transactions.state.name == "READY":
                            break
                    kept.pop()
        found = await values(servers, "committed", "read_committed")
        assert found == kept
        assert len(kept) > 3

    run(main())
