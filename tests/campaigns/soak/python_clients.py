"""The Python clients of the campaign: ``python -m tests.campaigns.soak.python_clients NAME SERVERS TOPIC``."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from kafka_msgs.client import AsyncConsumer, AsyncProducer, Consumer, Producer
from kafka_msgs.errors import ClientError
from tests.campaigns.soak.protocol import TICK
from tests.campaigns.soak.worker import PATIENCE, SETTLE, Worker

__all__ = ["NAMES"]

_OURS: Final[dict[str, Any]] = {"request_timeout": SETTLE}
_GROUP: Final[dict[str, Any]] = {
    "auto_offset_reset": "earliest",
    "session_timeout": 10.0,
    "heartbeat_frequency": 10,
    "fetch_max_wait": 0.1,
}
_COMMIT_EVERY: Final = 1.0


def _fields(records: Any) -> Any:
    return ((each.partition, each.offset, each.value) for each in records)


def _write(worker: Worker) -> None:
    with Producer(worker.servers, delivery_timeout=PATIENCE, **_OURS) as producer:
        while not worker.draining.wait(TICK):
            for partition, sequence, key, value in worker.due():
                report = worker.delivered(partition, sequence)
                producer.send(worker.topic, value, key=key, partition=partition, on_delivery=report)
        producer.flush(PATIENCE + SETTLE)


def _read(worker: Worker) -> None:
    with Consumer(worker.servers, group_id=f"soak-{worker.topic}", auto_commit=True,
                  auto_commit_interval=_COMMIT_EVERY, **_OURS, **_GROUP) as consumer:  # fmt: skip
        consumer.subscribe(worker.topic)
        while not worker.ending.is_set():
            worker.received(_fields(consumer.poll(0.5)))


def _write_threadless(worker: Worker) -> None:
    """Send and flush: records of the next tick wait until the flush is complete."""
    with Producer(worker.servers, delivery_timeout=PATIENCE, threadless=True, **_OURS) as producer:
        while not worker.draining.wait(TICK):
            for partition, sequence, key, value in worker.due():
                report = worker.delivered(partition, sequence)
                producer.send(worker.topic, value, key=key, partition=partition, on_delivery=report)
            producer.flush(PATIENCE + SETTLE)


def _read_threadless(worker: Worker) -> None:
    with Consumer(worker.servers, group_id=f"soak-{worker.topic}", assignors="cooperative-sticky", threadless=True,
                  **_OURS, **_GROUP) as consumer:  # fmt: skip
        consumer.subscribe(worker.topic)
        committed = time.monotonic()
        while not worker.ending.is_set():
            worker.received(_fields(consumer.poll(0.2)))
            if time.monotonic() > committed + _COMMIT_EVERY:
                offsets = {each: consumer.position(each) for each in consumer.assignment}
                try:
                    consumer.commit(offsets, timeout=SETTLE)
                    worker.committed((name.partition, offset) for name, offset in offsets.items())
                except ClientError:
                    pass  # the next commit covers it
                committed = time.monotonic()


def _transact(worker: Worker) -> None:
    with Producer(worker.servers, transactional_id=worker.topic, transaction_timeout=30.0, delivery_timeout=30.0,
                  **_OURS) as producer:  # fmt: skip
        producer.init_transactions(PATIENCE)
        while not worker.draining.wait(TICK):
            _one_transaction(worker, producer)


def _one_transaction(worker: Worker, producer: Producer) -> None:
    records = worker.due()
    aborted = False
    try:
        producer.begin_transaction()
        sent = [producer.send(worker.topic, value, key=key, partition=at) for at, _, key, value in records]
        try:
            producer.commit_transaction(PATIENCE)
        except ClientError:
            if not producer.core.transactions.can_abort:
                raise
            producer.abort_transaction(PATIENCE)
            aborted = True
            raise
    except Exception as error:
        for partition, sequence, _, _ in records:
            worker.failed(partition, sequence, error, aborted=aborted)
        if not aborted:
            raise
        return
    for (partition, sequence, _, _), delivery in zip(records, sent, strict=True):
        worker.acknowledged(partition, sequence, delivery.result().offset)


def _read_committed(worker: Worker) -> None:
    with Consumer(worker.servers, group_id=f"soak-{worker.topic}", group_protocol="consumer", auto_commit=True,
                  auto_commit_interval=_COMMIT_EVERY, isolation_level="read_committed", **_OURS,
                  **_GROUP) as consumer:  # fmt: skip
        consumer.subscribe(worker.topic)
        while not worker.ending.is_set():
            worker.received(_fields(consumer.poll(0.5)))


async def _write_async(worker: Worker) -> None:
    async with AsyncProducer(worker.servers, delivery_timeout=PATIENCE, **_OURS) as producer:
        while not worker.draining.is_set():
            for partition, sequence, key, value in worker.due():
                report = worker.delivered(partition, sequence)
                await producer.send(worker.topic, value, key=key, partition=partition, on_delivery=report)
            await asyncio.sleep(TICK)
        await producer.flush(PATIENCE + SETTLE)


async def _read_async(worker: Worker) -> None:
    async with AsyncConsumer(worker.servers, group_id=f"soak-{worker.topic}", group_protocol="consumer", **_OURS,
                             **_GROUP) as consumer:  # fmt: skip
        consumer.subscribe(worker.topic)
        committed = time.monotonic()
        while not worker.ending.is_set():
            worker.received(_fields(await consumer.poll(0.5)))
            if time.monotonic() > committed + _COMMIT_EVERY:
                offsets = {each: await consumer.position(each) for each in consumer.assignment}
                try:
                    await consumer.commit(offsets, timeout=SETTLE)
                    worker.committed((name.partition, offset) for name, offset in offsets.items())
                except ClientError:
                    pass  # the next commit covers it
                committed = time.monotonic()


def _rdkafka(worker: Worker, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": worker.servers,
        "socket.timeout.ms": 5000,
        "reconnect.backoff.max.ms": 1000,
        "log_level": 0,
        "error_cb": lambda _: None,
        **more,
    }


def _write_rdkafka(worker: Worker) -> None:
    import confluent_kafka

    settings = {"enable.idempotence": True, "message.timeout.ms": int(PATIENCE * 1000), "linger.ms": 5}
    producer = confluent_kafka.Producer(_rdkafka(worker, **settings, **{"request.timeout.ms": 5000}))

    def note(sequence: int) -> Callable[[Any, Any], None]:
        def report(error: Any, message: Any) -> None:
            if error is None:
                worker.acknowledged(message.partition(), sequence, message.offset())
            else:
                worker.failed(message.partition(), sequence, error)

        return report

    while not worker.draining.is_set():
        for partition, sequence, key, value in worker.due():
            producer.produce(worker.topic, value, key=key, partition=partition, on_delivery=note(sequence))
        end = time.monotonic() + TICK
        while (left := end - time.monotonic()) > 0:
            producer.poll(left)
    producer.flush(PATIENCE + SETTLE)


def _read_rdkafka(worker: Worker) -> None:
    import confluent_kafka

    def note(error: Any, partitions: Any) -> None:
        if error is None:
            worker.committed((each.partition, each.offset) for each in partitions if each.error is None)

    settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "session.timeout.ms": 10_000}
    more = {
        "heartbeat.interval.ms": 1000,
        "fetch.wait.max.ms": 100,
        "on_commit": note,
        "group.id": f"soak-{worker.topic}",
    }
    consumer = confluent_kafka.Consumer(_rdkafka(worker, **settings, **more))
    try:
        consumer.subscribe([worker.topic])
        committed = time.monotonic()
        while not worker.ending.is_set():
            messages = [each for each in consumer.consume(500, 0.1) if each.error() is None]
            worker.received((each.partition(), each.offset(), each.value()) for each in messages)
            if messages and time.monotonic() > committed + _COMMIT_EVERY:
                consumer.commit(asynchronous=True)
                committed = time.monotonic()
    finally:
        consumer.close()


async def _write_aiokafka(worker: Worker) -> None:
    import aiokafka

    # aiokafka fails records after its request timeout.
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=worker.servers, enable_idempotence=True, linger_ms=5, request_timeout_ms=30_000
    )
    await asyncio.wait_for(producer.start(), PATIENCE)
    waiting = set()

    async def note(partition: int, sequence: int, delivery: Any) -> None:
        try:
            worker.acknowledged(partition, sequence, (await delivery).offset)
        except Exception as error:
            worker.failed(partition, sequence, error)

    try:
        while not worker.draining.is_set():
            for partition, sequence, key, value in worker.due():
                delivery = await producer.send(worker.topic, value, key=key, partition=partition)
                waiting.add(task := asyncio.create_task(note(partition, sequence, delivery)))
                task.add_done_callback(waiting.discard)
            await asyncio.sleep(TICK)
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE)
    finally:
        await asyncio.wait_for(producer.stop(), PATIENCE)


async def _read_aiokafka(worker: Worker) -> None:
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(
        worker.topic, bootstrap_servers=worker.servers, group_id=f"soak-{worker.topic}", auto_offset_reset="earliest",
        enable_auto_commit=False, session_timeout_ms=10_000, heartbeat_interval_ms=1000, fetch_max_wait_ms=100,
        request_timeout_ms=int(SETTLE * 1000),
    )  # fmt: skip
    await consumer.start()
    try:
        committed = time.monotonic()
        while not worker.ending.is_set():
            found = await consumer.getmany(timeout_ms=500)
            worker.received(_fields(record for records in found.values() for record in records))
            if time.monotonic() > committed + _COMMIT_EVERY:
                offsets = {each: await consumer.position(each) for each in consumer.assignment()}
                try:
                    await asyncio.wait_for(consumer.commit(offsets), SETTLE)
                    worker.committed((name.partition, offset) for name, offset in offsets.items())
                except (aiokafka.errors.KafkaError, TimeoutError):
                    pass  # the next commit covers it
                committed = time.monotonic()
    finally:
        await asyncio.wait_for(consumer.stop(), 2 * SETTLE)


Work = Callable[[Worker], None]


def _in_loop(work: Callable[[Worker], Coroutine[Any, Any, None]]) -> Work:
    return lambda worker: asyncio.run(work(worker))


_CLIENTS: Final[dict[str, tuple[Work, Work]]] = {
    "ours": (_write, _read),
    "ours-threadless": (_write_threadless, _read_threadless),
    "ours-async": (_in_loop(_write_async), _in_loop(_read_async)),
    "ours-transactional": (_transact, _read_committed),
    "librdkafka": (_write_rdkafka, _read_rdkafka),
    "aiokafka": (_in_loop(_write_aiokafka), _in_loop(_read_aiokafka)),
}
NAMES: Final = tuple(_CLIENTS)

if __name__ == "__main__":
    logging.disable()  # clients log every lost connection
    name, servers, topic = sys.argv[1:]
    Worker(servers, topic).run(*_CLIENTS[name])
