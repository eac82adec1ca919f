"""The session of tests/broker/clients/features.py: kafka_python.py kafka-python SERVERS SERVERS_WITH_LOGIN PREFIX.

It prints a line of JSON for each feature, with the observed facts or the error.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

SERVERS, PREFIX = sys.argv[2], sys.argv[4]
PATIENCE_SECONDS = 120
START = 1_700_000_000_000
BATCH = 20
PARTITIONS = 4


def until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"never: {what}")


def name(suffix: str) -> str:
    return f"{PREFIX}-{suffix}"


def producer(**settings: Any) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=SERVERS, acks="all", **settings)


def consumer(**settings: Any) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=SERVERS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
        fetch_max_wait_ms=100,
        **settings,
    )


def read(topic: str, count: int, **settings: Any) -> list[Any]:
    found: list[Any] = []
    reader = consumer(**settings)
    reader.assign([TopicPartition(name(topic), 0)])

    def enough() -> bool:
        for some in reader.poll(timeout_ms=100).values():
            found.extend(some)
        return len(found) >= count

    until(f"{count} records come", enough)
    reader.close()
    return found


def records() -> object:
    sender = producer()
    for n in range(3):
        sent = sender.send(name("records"), b"v%d" % n, b"k%d" % n, headers=[("h", b"h%d" % n)], timestamp_ms=START + n)
        sent.get(PATIENCE_SECONDS)
    sender.close()
    return [
        {
            "offset": each.offset,
            "key": each.key.decode(),
            "value": each.value.decode(),
            "header": each.headers[0][1].decode(),
            "timestamp": each.timestamp,
        }
        for each in read("records", 3)
    ]


def batch(topic: str, **settings: Any) -> object:
    sender = producer(linger_ms=100, **settings)
    for _ in range(BATCH):
        sender.send(name(topic), b"the same value again and again")
    sender.close()
    return len(read(topic, BATCH))


class Member:
    """A member of the group: its assignment, and the offsets it has read from it."""

    def __init__(self) -> None:
        self.consumer = consumer(group_id=name("group"), session_timeout_ms=10_000)
        # The group leader assigns the partitions in its metadata at that time, which may be none.
        until(
            "the partitions are known",
            lambda: len(self.consumer.partitions_for_topic(name("group")) or ()) == PARTITIONS,
        )
        self.consumer.subscribe([name("group")])
        self.seen: dict[int, set[int]] = {}

    def owned(self) -> int:
        for place, some in self.consumer.poll(timeout_ms=50).items():
            self.seen.setdefault(place.partition, set()).update(each.offset for each in some)
        assigned = {place.partition for place in self.consumer.assignment()}
        self.seen = {partition: offsets for partition, offsets in self.seen.items() if partition in assigned}
        return len(assigned)

    def count(self) -> int:
        self.owned()
        return sum(map(len, self.seen.values()))

    def committed(self) -> bool:
        try:
            self.consumer.commit()
        except RebalanceInProgressError:
            self.owned()
            return False
        return True


def fill(count: int) -> None:
    sender = producer()
    for partition in range(PARTITIONS):
        for _ in range(count):
            sender.send(name("group"), b"value", partition=partition)
    sender.close()


def group() -> object:
    fill(10)
    first = Member()
    until("one member has all", lambda: first.owned() == PARTITIONS)
    second = Member()
    until("each has a half", lambda: [first.owned(), second.owned()] == [2, 2])
    second.consumer.close()
    until("the first has all again", lambda: first.owned() == PARTITIONS)
    until("everything is read", lambda: first.count() == 10 * PARTITIONS)
    everything = first.count()
    until("the first commits", first.committed)
    first.consumer.close()
    fill(2)
    later = Member()
    until("new records are read", lambda: later.count() >= 2 * PARTITIONS)
    until("the later one commits", later.committed)
    later.consumer.close()
    start = min(min(offsets) for offsets in later.seen.values())
    return {"read": everything, "resumed at": start, "read later": sum(map(len, later.seen.values()))}


def transactions() -> object:
    writer = producer(transactional_id=name("transactions"))
    writer.init_transactions()
    for end in ("commit", "abort", "commit"):
        writer.begin_transaction()
        for _ in range(5):
            writer.send(name("transactions"), end.encode())
        writer.flush()
        getattr(writer, f"{end}_transaction")()
    writer.close()
    committed = read("transactions", 10, isolation_level="read_committed")
    aborted = [each for each in committed if each.value == b"abort"]
    everything = read("transactions", 15)
    return {"committed": len(committed), "aborted among them": len(aborted), "all": len(everything)}


def transactional_offsets() -> object:
    place, found = TopicPartition(name("source"), 0), {}
    reader = consumer(group_id=name("transactional-offsets"))
    writer = producer(transactional_id=name("pipe"))
    writer.init_transactions()
    for end in ("abort", "commit"):
        writer.begin_transaction()
        writer.send(name("sink"), b"value").get(PATIENCE_SECONDS)
        writer.send_offsets_to_transaction({place: OffsetAndMetadata(10, "", -1)}, name("transactional-offsets"))
        getattr(writer, f"{end}_transaction")()
        if end == "commit":
            until("the offset is known", lambda: reader.committed(place) is not None)
        known = reader.committed(place)
        found[end] = -1 if known is None else known
    writer.close()
    reader.close()
    return found


def times() -> object:
    place = TopicPartition(name("records"), 0)
    reader = consumer()
    found = reader.offsets_for_times({place: START + 1})[place].offset
    reader.close()
    return found


SESSION: dict[str, Callable[[], object]] = {
    "records": records,
    **{codec: partial(batch, codec, compression_type=codec) for codec in ("gzip", "snappy", "lz4", "zstd")},
    "idempotence": partial(batch, "idempotence", enable_idempotence=True),
    "group": group,
    "transactions": transactions,
    "transactional-offsets": transactional_offsets,
    "times": times,
}

if __name__ == "__main__":
    for feature, run in SESSION.items():
        try:
            line = {"feature": feature, "facts": run()}
        except Exception as error:
            line = {"feature": feature, "error": repr(error)}
        print(json.dumps(line), flush=True)
