"""Real clients over sockets, each in its own thread: of this library, librdkafka and aiokafka.

Like the actors of a simulation, a client has many lives, one after the other until the run ends. An error that the
client reports may end a life; any other error is a broken promise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

import aiokafka
import aiokafka.errors
import confluent_kafka

from kafka_msgs.client import AsyncProducer, Consumer, Producer
from kafka_msgs.errors import ClientError, InternalError, KafkaMsgsError
from tests.campaigns.chaos.consume_transform_produce import COPIERS
from tests.campaigns.chaos.history import Outcome, Promises
from tests.campaigns.chaos.run import RDKAFKA, WAIT, Run, Silence
from tests.campaigns.chaos.settings import PARTITIONS

__all__ = ["CLIENTS", "TRANSACTIONAL_IDS", "live"]

_BATCH: Final = 20


Life = Callable[[Run, str], None]


def live(run: Run, kind: str) -> None:
    """Run clients of a kind, life after life, until the run ends."""
    work, ends = CLIENTS[kind]
    end = run.writers_end if ends == "writer" else run.readers_end
    number = 0
    while not end.is_set():
        number += 1
        run.lives.append(f"{kind}.{number}")
        try:
            work(run, f"{kind}.{number}")
        except Exception as error:
            if not _is_expected(error):
                run.ledger.broken.append(f"{kind}: {error!r}")
                return
        end.wait(0.1)


def _is_expected(error: Exception) -> bool:
    ours = isinstance(error, KafkaMsgsError) and not isinstance(error, InternalError)
    theirs = confluent_kafka.KafkaException, aiokafka.errors.KafkaError, TimeoutError, ConnectionError
    return ours or isinstance(error, theirs)


def _write(run: Run, name: str) -> None:
    sender, dice = run.ledger.sender(name, "plain", Promises.ONCE), Random(name)
    with Producer(run.servers, client_id=name, delivery_timeout=WAIT, request_timeout=3.0, timeout=WAIT) as producer:
        while not run.writers_end.wait(0.05):
            sent = []
            for _ in range(_BATCH):
                value, partition = sender.next_value(), dice.randrange(PARTITIONS)
                sent.append((value, partition, producer.send("plain", value, partition=partition)))
            producer.flush(2 * WAIT)
            for value, partition, delivery in sent:
                if delivery.done and delivery.error is None:
                    sender.acked[value] = partition, delivery.result().offset


def _transact(run: Run, name: str) -> None:
    asyncio.run(_transact_on_asyncio(run, name))


async def _transact_on_asyncio(run: Run, name: str) -> None:
    sender, dice = run.ledger.sender(name, "committed", Promises.ONCE), Random(name)
    async with AsyncProducer(
        run.servers,
        client_id=name,
        transactional_id="ours",
        transaction_timeout=10.0,
        delivery_timeout=WAIT,
        request_timeout=3.0,
    ) as producer:
        await producer.init_transactions(WAIT)
        while not run.writers_end.is_set():
            transaction = sender.begin()
            await producer.begin_transaction()
            try:
                for _ in range(_BATCH):
                    transaction.values.append(sender.next_value())
                    await producer.send("committed", transaction.values[-1], partition=dice.randrange(PARTITIONS))
                await producer.commit_transaction(WAIT)
                transaction.outcome = Outcome.COMMITTED
            except ClientError:
                if not producer.core.transactions.can_abort:
                    raise
                await producer.abort_transaction(WAIT)
                transaction.outcome = Outcome.ABORTED
            await asyncio.sleep(0.05)


def _write_rdkafka(run: Run, name: str) -> None:
    sender, dice = run.ledger.sender(name, "plain", Promises.ONCE), Random(name)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": run.servers,
            "client.id": name,
            "enable.idempotence": True,
            "message.timeout.ms": 10_000,
            **RDKAFKA,
        }
    )

    def note(error: Any, message: Any) -> None:
        if error is None:
            sender.acked[bytes(message.value())] = message.partition(), message.offset()

    while not run.writers_end.wait(0.05):
        for _ in range(_BATCH):
            producer.produce("plain", sender.next_value(), partition=dice.randrange(PARTITIONS), on_delivery=note)
        producer.flush(WAIT)
    producer.flush(WAIT)


def _transact_rdkafka(run: Run, name: str) -> None:
    sender, dice = run.ledger.sender(name, "committed", Promises.ONCE), Random(name)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": run.servers,
            "client.id": name,
            "transactional.id": "rdkafka",
            "transaction.timeout.ms": 10_000,
            "message.timeout.ms": 8_000,
            **RDKAFKA,
        }
    )
    producer.init_transactions(WAIT)
    while not run.writers_end.wait(0.05):
        transaction = sender.begin()
        producer.begin_transaction()
        try:
            for _ in range(_BATCH):
                transaction.values.append(sender.next_value())
                producer.produce("committed", transaction.values[-1], partition=dice.randrange(PARTITIONS))
            producer.commit_transaction(WAIT)
            transaction.outcome = Outcome.COMMITTED
        except confluent_kafka.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(WAIT)
            transaction.outcome = Outcome.ABORTED


def _write_aiokafka(run: Run, name: str) -> None:
    asyncio.run(_write_on_asyncio(run, name))


async def _write_on_asyncio(run: Run, name: str) -> None:
    sender, dice = run.ledger.sender(name, "plain", Promises.KEPT), Random(name)
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=run.servers, client_id=name, acks="all", request_timeout_ms=3000, retry_backoff_ms=100
    )
    try:
        await asyncio.wait_for(producer.start(), WAIT)
        while not run.writers_end.is_set():
            values = [sender.next_value() for _ in range(_BATCH)]
            sent = [await producer.send("plain", value, partition=dice.randrange(PARTITIONS)) for value in values]
            await asyncio.wait(sent, timeout=WAIT)
            for value, delivery in zip(values, sent, strict=True):
                if delivery.done() and not delivery.cancelled() and delivery.exception() is None:
                    sender.acked[value] = delivery.result().partition, delivery.result().offset
            await asyncio.sleep(0.05)
    finally:
        await asyncio.wait_for(producer.stop(), WAIT)


def _read(run: Run, name: str) -> None:
    with Consumer(
        run.servers, client_id=name, group_id="classic", auto_offset_reset="earliest", isolation_level="read_committed",
        assignors="range", session_timeout=6.0, rebalance_timeout=10.0, timeout=WAIT,
    ) as consumer:  # fmt: skip
        consumer.subscribe(["plain"])
        while not run.readers_end.is_set():
            records = consumer.poll(0.5)
            run.ledger.read["classic"] |= {(each.topic, each.partition, each.offset) for each in records}
            if records:
                offsets = {name: consumer.position(name) for name in consumer.assignment}
                try:
                    consumer.commit(offsets)
                except ClientError:
                    continue
                run.ledger.committed("classic", {(place[0], place[1]): offset for place, offset in offsets.items()})


def _read_rdkafka(run: Run, name: str, group: str = "classic", **settings: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": run.servers,
            "client.id": name,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
            **RDKAFKA,
        }
    )
    silence = Silence()
    try:
        consumer.subscribe(["plain"])
        while not run.readers_end.is_set():
            messages = [each for each in consumer.consume(200, 0.5) if each.error() is None]
            if silence.lasts(messages):
                return
            run.ledger.read[group] |= {(each.topic(), each.partition(), each.offset()) for each in messages}
            if messages:
                try:
                    done = consumer.commit(asynchronous=False)
                except confluent_kafka.KafkaException:
                    continue
                good = {(each.topic, each.partition): each.offset for each in done if each.error is None}
                run.ledger.committed(group, good)
    finally:
        consumer.close()


def _read_rdkafka_classic(run: Run, name: str) -> None:
    _read_rdkafka(run, name, **{"partition.assignment.strategy": "range", "session.timeout.ms": "6000"})


def _read_rdkafka_modern(run: Run, name: str) -> None:
    _read_rdkafka(run, name, "modern", **{"group.protocol": "consumer"})


CLIENTS: Final[dict[str, tuple[Life, str]]] = {
    "ours": (_write, "writer"),
    "ours-transactional": (_transact, "writer"),
    "rdkafka": (_write_rdkafka, "writer"),
    "rdkafka-transactional": (_transact_rdkafka, "writer"),
    "aiokafka": (_write_aiokafka, "writer"),
    "ours-classic": (_read, "reader"),
    "rdkafka-classic": (_read_rdkafka_classic, "reader"),
    "rdkafka-modern": (_read_rdkafka_modern, "reader"),
    **{name: (partial(work, group=group), "reader") for name, (work, group) in COPIERS.items()},
}
"""The clients by name: the function of a life, and the event that ends it."""

TRANSACTIONAL_IDS: Final = ("ours", "rdkafka", *COPIERS)
"""The names of the transactional producers."""
