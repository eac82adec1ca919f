"""Asyncio calls that are cancelled at any await and then continued: every record is delivered exactly once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any
from unittest.mock import create_autospec

import pytest

from kafka_msgs.admin import AsyncAdmin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import AsyncClient, AsyncConsumer, AsyncProducer, TopicPartition

PLACE = TopicPartition("t", 0)
COUNT = 300


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """An embedded broker for all tests of this module."""
    with EmbeddedBroker() as broker:
        asyncio.run(_fill(broker.bootstrap_servers))
        yield broker.bootstrap_servers


async def _fill(servers: str) -> None:
    async with AsyncAdmin(servers) as admin, AsyncProducer(servers, batch_size=300) as producer:
        await admin.create_topics([NewTopic("t", 1)])
        for number in range(COUNT):
            await producer.send("t", b"%d" % number)


async def _cancel_after(turns: int, call: Any) -> Any:
    """Run a coroutine, and cancel it after some turns of the event loop. Return its value, or None."""
    task = asyncio.ensure_future(call)
    for _ in range(turns):
        if task.done():
            break
        await asyncio.sleep(0)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


@pytest.mark.parametrize("group", [None, "g"])
def test_polls_that_are_cancelled_lose_nothing(servers: str, group: str | None) -> None:
    async def main() -> list[bytes]:
        found: list[bytes] = []
        async with AsyncConsumer(servers, group_id=group, auto_offset_reset="earliest", max_records=7) as consumer:
            if group is None:
                consumer.assign([PLACE])
            else:
                consumer.subscribe(["t"])
            turns = 0
            while len(found) < COUNT:
                turns += 1
                records = await _cancel_after(turns % 23, consumer.poll(0.5))
                found += [bytes(record.value or b"") for record in records or ()]
                if turns % 50 == 0:
                    found += [bytes(record.value or b"") for record in await consumer.poll(1.0)]
                if group is not None and turns % 7 == 0 and consumer.assignment:
                    await _cancel_after(turns % 11, consumer.commit())
        return found

    assert asyncio.run(asyncio.wait_for(main(), 60)) == [b"%d" % number for number in range(COUNT)]


def test_iteration_and_wait_for_lose_nothing(servers: str) -> None:
    async def main() -> list[bytes]:
        found: list[bytes] = []
        async with AsyncConsumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([PLACE])
            while len(found) < COUNT:
                async for record in consumer:
                    found.append(bytes(record.value or b""))
                    if len(found) % 10 == 0:
                        break
                try:
                    records = await asyncio.wait_for(consumer.poll(0.01, max_records=3), 0.0001)
                except TimeoutError:
                    continue
                found += [bytes(record.value or b"") for record in records]
        return found

    assert asyncio.run(asyncio.wait_for(main(), 60)) == [b"%d" % number for number in range(COUNT)]


def test_sends_that_are_cancelled_are_sent_once_or_not_at_all(servers: str) -> None:
    async def main() -> None:
        async with AsyncAdmin(servers) as admin, AsyncProducer(servers) as producer:
            await admin.create_topics([NewTopic("sent", 1)])
            certain = []
            for number in range(60):
                delivery = await _cancel_after(number % 12, producer.send("sent", b"%d" % number))
                if delivery is not None:
                    certain.append(b"%d" % number)
                await _cancel_after(number % 5, producer.flush())
            await producer.send_and_wait("sent", b"end")
        async with AsyncConsumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("sent", 0)])
            found: list[bytes] = []
            while b"end" not in found:
                found += [bytes(record.value or b"") for record in await consumer.poll(1.0)]
        assert set(certain) <= set(found)
        assert len(found) == len(set(found))

    asyncio.run(asyncio.wait_for(main(), 60))


def test_methods_for_asyncio_are_coroutine_functions_that_can_be_specified() -> None:
    for cls in (AsyncClient, AsyncConsumer, AsyncProducer, AsyncAdmin):
        for name in ("close", {"AsyncConsumer": "poll", "AsyncProducer": "send"}.get(cls.__name__, "close")):
            assert inspect.iscoroutinefunction(getattr(cls, name))
    mock = create_autospec(AsyncConsumer, instance=True)
    mock.poll.return_value = []
    assert asyncio.run(mock.poll(1.0)) == []
    with pytest.raises(TypeError):
        mock.poll(1.0, records=3)
