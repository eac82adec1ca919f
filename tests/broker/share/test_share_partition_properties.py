"""Random histories of a share partition: no record has two owners, no record is lost, and offsets never decrease."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Final, NamedTuple

import pytest
from attrs import Factory, define

from kafka_msgs.broker.share import (
    AcknowledgementBatch,
    AcquiredRecords,
    AcquireMode,
    PersisterStateBatch,
    RecordState,
    SharePartition,
    acquire,
)
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.runtime.timer_queue import TimerQueue
from kafka_msgs.internal_topics.share_state import combine_batches
from kafka_msgs.messages.share_snapshot_value import StateBatch as StoredBatch
from tests.support.line_counter import lines_run

STEPS: Final = 200
MEMBERS: Final = ("one", "two", "three")
LOCK_MS: Final = 15_000
LIMIT: Final = 5
TYPES: Final = {1: "done", 2: "free", 3: "done", 0: "done"}
CONFIG: Final = CoordinatorConfig().for_group({"share.record.lock.duration.ms": str(LOCK_MS)})


class Batch(NamedTuple):
    """A batch of the log."""

    base_offset: int
    last_offset: int


@define
class Record:
    """The model's state of a record."""

    state: str = "free"
    owner: str = ""
    deliveries: int = 0


@define(eq=False)
class History:
    """A share partition, its log, the share coordinator's state, and a model of the records."""

    random: random.Random
    log: list[Batch] = Factory(list)
    records: dict[int, Record] = Factory(dict)
    timers: TimerQueue = Factory(TimerQueue)
    stored: tuple[StoredBatch, ...] = ()
    start: int = 0
    now: int = 0
    fails: bool = False

    def open(self) -> SharePartition:
        """Open the share partition with the stored state."""
        states = [
            PersisterStateBatch(
                each.first_offset, each.last_offset, RecordState(each.delivery_state), each.delivery_count
            )
            for each in self.stored
        ]
        return SharePartition(self.start, states, timers=self.timers, config=lambda: CONFIG, persist=self.persist)

    def persist(self, start: int, complete: int, states: list[PersisterStateBatch]) -> None:
        """Store a change, like the share coordinator."""
        if self.fails:
            raise RequestRefusedError(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert start >= self.start
        assert complete >= 0
        more = [
            StoredBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in states
        ]
        self.start, self.stored = start, combine_batches([*self.stored, *more], start)

    def append(self) -> None:
        """Append a batch."""
        base = self.log[-1].last_offset + 1 if self.log else 0
        size = self.random.randint(1, 9)
        self.log.append(Batch(base, base + size - 1))
        self.records.update((offset, Record()) for offset in range(base, base + size))

    def fetch(self, share: SharePartition, member: str) -> list[AcquiredRecords]:
        """Acquire records for a member, and check that they were available."""
        offset = share.next_fetch_offset()
        found = acquire(
            share,
            member,
            [batch for batch in self.log if batch.last_offset >= offset],
            fetch_offset=offset,
            max_records=self.random.randint(1, 20),
            batch_size=self.random.choice((1, 5, 100)),
            mode=AcquireMode(self.random.randint(0, 1)),
            now=self.now,
        )
        for each in found:
            for number in range(each.first, each.last + 1):
                record = self.records[number]
                assert record.state == "free", (number, record)
                record.state, record.owner = "held", member
                record.deliveries += 1
                assert record.deliveries == each.delivery_count
        return found

    def say(self, share: SharePartition, member: str) -> None:
        """Acknowledge some records of a member, sometimes including one beyond its acquired records."""
        held = [number for number, record in self.records.items() if record.owner == member]
        if not held:
            return
        first = self.random.choice(held)
        last = first
        while last + 1 in held and self.random.random() < 0.7:
            last += 1
        wrong = self.random.random() < 0.1
        end = last + 1 if wrong else last
        types = [self.random.choice(list(TYPES)) for _ in range(end - first + 1)]
        if self.random.random() < 0.5:
            types = types[:1]
        self.fails = self.random.random() < 0.1
        try:
            share.acknowledge(member, [AcknowledgementBatch(first, end, types)], self.now)
        except RequestRefusedError:
            assert wrong or self.fails
        else:
            assert not self.fails
            for number in range(first, end + 1):
                self.settle(self.records[number], TYPES[types[number - first if len(types) > 1 else 0]])
        self.fails = False

    def settle(self, record: Record, state: str) -> None:
        """Record the outcome for a record, and limit its deliveries."""
        assert record.state == "held"
        record.owner = ""
        record.state = "done" if state == "free" and record.deliveries >= LIMIT else state

    def give_back(self, share: SharePartition, member: str) -> None:
        """Release the records of a member."""
        share.release(member)
        for record in self.records.values():
            if record.owner == member:
                self.settle(record, "free")

    def wait(self) -> None:
        """Advance the time until all locks time out."""
        self.now += LOCK_MS
        while (due := self.timers.pop_due(self.now)) is not None:
            due()
        for record in self.records.values():
            if record.state == "held":
                self.settle(record, "free")

    def check(self, share: SharePartition, start: int, end: int) -> None:
        """Check the invariants."""
        assert share.start_offset >= start
        assert share.end_offset >= end
        done = [number for number, record in self.records.items() if record.state == "done"]
        assert share.complete == sum(number >= share.start_offset for number in done)
        assert all(self.records[number].state == "done" for number in range(min(share.start_offset, len(self.records))))
        firsts = [batch.first for batch in share.batches]
        assert firsts == sorted(set(firsts))


@pytest.mark.parametrize("seed", range(60))
def test_records_have_one_owner_and_are_not_lost(seed: int) -> None:
    history = History(random.Random(seed))
    share = history.open()
    for _ in range(STEPS):
        start, end = share.start_offset, share.end_offset
        member = history.random.choice(MEMBERS)
        kind = history.random.choices(("append", "fetch", "say", "leave", "wait", "again"), (3, 6, 8, 1, 0.5, 0.3))[0]
        if kind == "append":
            history.append()
        elif kind == "fetch":
            history.fetch(share, member)
        elif kind == "say":
            history.say(share, member)
        elif kind == "leave":
            history.give_back(share, member)
        elif kind == "wait":
            history.wait()
        else:
            history.wait()
            share.close()
            share = history.open()
            start, end = history.start, 0
        history.check(share, start, end)
    drain(history, share)


def drain(history: History, share: SharePartition) -> None:
    """Acquire and acknowledge all records with one member, and check that all are done."""
    history.wait()
    while history.fetch(share, "one"):
        held = [number for number, record in history.records.items() if record.owner == "one"]
        share.acknowledge("one", [AcknowledgementBatch(number, number, [1]) for number in held], history.now)
        for number in held:
            history.settle(history.records[number], "done")
    assert {record.state for record in history.records.values()} <= {"done"}
    assert share.start_offset == len(history.records)
    assert share.batches == []
    assert len(history.timers) == 0


def opened(*batches: Batch) -> SharePartition:
    """Return a share partition whose member has acquired the batches."""
    share = SharePartition(0, [], timers=TimerQueue(), config=lambda: CONFIG, persist=lambda *state: None)
    acquire(
        share, "one", batches, fetch_offset=0, max_records=2**31, batch_size=1, mode=AcquireMode.BATCH_OPTIMIZED, now=0
    )
    return share


def acknowledged(share: SharePartition, said: Iterable[AcknowledgementBatch]) -> int:
    """Return the work of acknowledging, acquiring the available records again, and releasing them."""

    def work() -> None:
        share.acknowledge("one", said, 0)
        batch = Batch(0, share.end_offset)
        acquire(share, "two", [batch], fetch_offset=0, max_records=2**31, batch_size=1, mode=AcquireMode(0), now=0)
        share.release("two")

    return lines_run(work)


@pytest.mark.parametrize("one_batch", [True, False])
@pytest.mark.parametrize("one_piece", [True, False])
def test_work_follows_the_number_of_acknowledgements(one_batch: bool, one_piece: bool) -> None:
    """Neighbouring records get different types, so the implementation cannot combine them."""

    def work(count: int) -> int:
        share = opened(Batch(0, count - 1)) if one_batch else opened(*(Batch(each, each) for each in range(count)))
        types = [2 - each % 2 for each in range(count)]
        if one_piece:
            return acknowledged(share, [AcknowledgementBatch(0, count - 1, types)])
        return acknowledged(share, [AcknowledgementBatch(each, each, [kind]) for each, kind in enumerate(types)])

    small, large = work(200), work(800)
    assert large < 4.5 * small


def test_a_batch_with_many_offsets_costs_no_more_than_a_small_one() -> None:
    """A batch may span offsets up to 2**31, regardless of its records."""
    said = [AcknowledgementBatch(5, 6, [2])]
    assert acknowledged(opened(Batch(0, 2**31 - 2)), said) < 1.5 * acknowledged(opened(Batch(0, 9)), said)
