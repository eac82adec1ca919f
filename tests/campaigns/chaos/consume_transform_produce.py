"""Exactly-once loops of real clients: they read ``committed``, produce, and commit the offsets in one transaction.

Each loop is a life, as in ``clients``. The transactional id is the client's name without the number of the life. An
error ends a life, and the next life begins at the committed offsets.

Third-party clients may return records from before a rebalance with positions from after it, so a rebalance ends the
life of such a client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Any, Final

import aiokafka
import confluent_kafka

from kafka_msgs.client import Consumer, Producer
from tests.campaigns.chaos.history import Outcome, Promises, Sender, Transaction
from tests.campaigns.chaos.run import RDKAFKA, WAIT, Run, Silence
from tests.campaigns.chaos.settings import GROUPS

__all__ = ["COPIERS"]

_BATCH: Final = 100
_TRANSACTION: Final = 10.0
"""The transaction timeout in seconds."""


def _copy(run: Run, name: str, group: str) -> None:
    settings, copies = GROUPS[group], _Copies(run, name, group)
    producer = Producer(
        run.servers, client_id=name, transactional_id=copies.transactional_id, transaction_timeout=_TRANSACTION,
        delivery_timeout=WAIT, request_timeout=3.0, timeout=WAIT,
    )  # fmt: skip
    consumer = Consumer(
        run.servers, client_id=name, group_id=group, group_protocol=settings.protocol, assignors=settings.assignor,
        timeout=WAIT, session_timeout=6.0, rebalance_timeout=10.0, isolation_level="read_committed",
        auto_offset_reset="earliest",
    )  # fmt: skip
    with producer, consumer:
        producer.init_transactions(WAIT)
        consumer.subscribe([settings.reads])
        while not run.readers_end.is_set():
            records = consumer.poll(0.5, max_records=_BATCH)
            if records:
                transaction = copies.begin((each.partition, each.offset) for each in records)
                with producer.transaction():
                    for (partition, _), value in zip(copies.places, transaction.values, strict=True):
                        producer.send(copies.into, value, partition=partition)
                    offsets = {place: consumer.position(place) for place in consumer.assignment}
                    producer.send_offsets_to_transaction(offsets, consumer.group_metadata)
                copies.committed({(place.topic, place.partition): offset for place, offset in offsets.items()})


def _copy_rdkafka(run: Run, name: str, group: str) -> None:
    settings, copies = GROUPS[group], _Copies(run, name, group)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": run.servers,
            "client.id": name,
            "transactional.id": copies.transactional_id,
            "transaction.timeout.ms": int(_TRANSACTION * 1000),
            "message.timeout.ms": 8_000,
            **RDKAFKA,
        }
    )
    classic = {"partition.assignment.strategy": settings.assignor, "session.timeout.ms": "6000"}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": run.servers,
            "client.id": name,
            "group.id": group,
            "group.protocol": settings.protocol,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **(classic if settings.protocol == "classic" else {}),
            **RDKAFKA,
        }
    )
    revoked: list[Any] = []
    silence = Silence()
    try:
        producer.init_transactions(WAIT)
        consumer.subscribe([settings.reads], on_revoke=lambda _, partitions: revoked.extend(partitions))
        while not run.readers_end.is_set():
            revoked.clear()
            messages = [each for each in consumer.consume(_BATCH, 0.5) if each.error() is None]
            if (messages and revoked) or silence.lasts(messages):
                return
            if messages:
                _within(4 * WAIT, partial(_copy_messages, producer, consumer, copies, messages))
    finally:
        consumer.close()


def _within(seconds: float, work: Callable[[], None]) -> None:
    """Run a transaction, but abandon it long after its timeouts; the next life fences it."""
    ended: Future[None] = Future()

    def run() -> None:
        try:
            work()
            ended.set_result(None)
        except BaseException as error:
            ended.set_exception(error)

    Thread(target=run, daemon=True).start()
    ended.result(seconds)


def _copy_messages(
    producer: confluent_kafka.Producer,
    consumer: confluent_kafka.Consumer,
    copies: _Copies,
    messages: list[confluent_kafka.Message],
) -> None:
    transaction = copies.begin((int(each.partition() or 0), int(each.offset() or 0)) for each in messages)
    producer.begin_transaction()
    try:
        for (partition, _), value in zip(copies.places, transaction.values, strict=True):
            producer.produce(copies.into, value, partition=partition)
        known = [each for each in consumer.position(consumer.assignment()) if each.offset >= 0]
        producer.send_offsets_to_transaction(known, consumer.consumer_group_metadata(), WAIT)
        producer.commit_transaction(WAIT)
    except confluent_kafka.KafkaException as error:
        if error.args[0].txn_requires_abort():
            producer.abort_transaction(WAIT)
        raise
    copies.committed({(each.topic, each.partition): each.offset for each in known})


def _copy_aiokafka(run: Run, name: str, group: str) -> None:
    asyncio.run(_copy_on_asyncio(run, _Copies(run, name, group)))


class _Watch(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """Records whether partitions were revoked."""

    revoked = False

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.revoked = self.revoked or bool(revoked)

    def on_partitions_assigned(self, assigned: Any) -> None:
        pass


async def _copy_on_asyncio(run: Run, copies: _Copies) -> None:
    watch = _Watch()
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=run.servers,
        client_id=copies.name,
        transactional_id=copies.transactional_id,
        transaction_timeout_ms=int(_TRANSACTION * 1000),
        request_timeout_ms=3000,
    )
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=run.servers,
        client_id=copies.name,
        group_id=copies.group,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        request_timeout_ms=3000,
        rebalance_timeout_ms=2500,
    )
    try:
        await asyncio.wait_for(producer.start(), WAIT)
        consumer.subscribe([GROUPS[copies.group].reads], listener=watch)
        await asyncio.wait_for(consumer.start(), WAIT)
        while not run.readers_end.is_set():
            found = await asyncio.wait_for(consumer.getmany(timeout_ms=500, max_records=_BATCH), WAIT)
            if watch.revoked:
                return
            if found:
                await asyncio.wait_for(_copy_found(producer, copies, found), 3 * WAIT)
    finally:
        await asyncio.wait((asyncio.create_task(_stop(consumer)), asyncio.create_task(_stop(producer))))


async def _copy_found(producer: Any, copies: _Copies, found: dict[Any, list[Any]]) -> None:
    transaction = copies.begin((each.partition, each.offset) for records in found.values() for each in records)
    offsets = {place: records[-1].offset + 1 for place, records in found.items()}
    async with producer.transaction():
        for (partition, _), value in zip(copies.places, transaction.values, strict=True):
            (await producer.send(copies.into, value, partition=partition)).add_done_callback(_look_at)
        await producer.send_offsets_to_transaction(offsets, copies.group)
    copies.committed({(place.topic, place.partition): offset for place, offset in offsets.items()})


def _look_at(sent: asyncio.Future[Any]) -> None:
    """Retrieve the exception of a sent record, because the transaction reports it as well."""
    if not sent.cancelled():
        sent.exception()


async def _stop(client: Any) -> None:
    await asyncio.wait_for(client.stop(), WAIT)


class _Copies:
    """The promises of one life. ``places`` contains partition and offset of the records being copied."""

    def __init__(self, run: Run, name: str, group: str) -> None:
        self.name = name
        self.group = group
        self.into = str(GROUPS[group].writes)
        self.transactional_id = name.rpartition(".")[0]
        self.places: list[tuple[int, int]] = []
        self._ledger = run.ledger
        self._sender: Sender = run.ledger.sender(name, self.into, Promises.ONCE)

    def begin(self, places: Iterable[tuple[int, int]]) -> Transaction:
        """Begin a transaction with values that copy records, each given by partition and offset."""
        self.places = list(places)
        reads = GROUPS[self.group].reads
        self._ledger.read[self.group] |= {(reads, *place) for place in self.places}
        transaction = self._sender.begin()
        transaction.values += [self._sender.next_copy(*place) for place in self.places]
        return transaction

    def committed(self, offsets: dict[tuple[str, int], int]) -> None:
        """Record that the last transaction is committed, with these offsets."""
        self._sender.transactions[-1].outcome = Outcome.COMMITTED
        self._ledger.committed(self.group, offsets)


COPIERS: Final = {
    "ours-copier": (_copy, "copiers"),
    "rdkafka-copier": (_copy_rdkafka, "copiers"),
    "ours-modern-copier": (_copy, "modern-copiers"),
    "rdkafka-modern-copier": (_copy_rdkafka, "modern-copiers"),
    "aiokafka-copier": (_copy_aiokafka, "lone-copier"),
}
"""The loops by name: the function of a life, and the group of its consumer."""
