"""Promises to clients, and broken promises, independent of any client or broker.

A value contains its sender and its number for that sender: ``name:number``. Each sender sends to the partitions of one
topic in the order of its numbers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from attrs import Factory, define

__all__ = ["Ledger", "Log", "Outcome", "Place", "Promises", "Sender", "Transaction"]

Place = tuple[str, int]
"""A topic and a partition."""

Log = Mapping[Place, Sequence[tuple[int, bytes]]]
"""Offset and value of the records of each partition, in order."""


class Outcome(Enum):
    """The outcome of a transaction, as its client observed it."""

    UNKNOWN = "unknown"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Promises(Enum):
    """The guarantees for a sender's records, in addition to not losing acknowledged records."""

    KEPT = "records are kept"
    ORDERED = "their order is kept"
    ONCE = "their order is kept, and there is each only once"


@define(eq=False)
class Transaction:
    """The values of a transaction, and its outcome as observed by the producer."""

    values: list[bytes] = Factory(list)
    outcome: Outcome = Outcome.UNKNOWN


@define(eq=False)
class Sender:
    """A producer. ``acked`` contains partition and offset of each acknowledged value; -1 is an unknown offset."""

    name: str
    topic: str
    promises: Promises
    count: int = 0
    acked: dict[bytes, tuple[int, int]] = Factory(dict)
    transactions: list[Transaction] = Factory(list)

    def next_value(self) -> bytes:
        """Return the next value to send."""
        self.count += 1
        return b"%s:%d" % (self.name.encode(), self.count)

    def next_copy(self, partition: int, offset: int) -> bytes:
        """Return the next value to send, marked as a copy of the record at a partition and an offset."""
        return b"%s=%d/%d" % (self.next_value(), partition, offset)

    def begin(self) -> Transaction:
        """Record the start of a transaction."""
        self.transactions.append(Transaction())
        return self.transactions[-1]


@define(eq=False)
class Ledger:
    """All promises of a run. ``broken`` contains descriptions of broken promises.

    ``read`` contains the records that each group received, and ``commits`` the highest acknowledged commit of each
    partition.
    """

    senders: list[Sender] = Factory(list)
    read: defaultdict[str, set[tuple[str, int, int]]] = Factory(lambda: defaultdict(set))
    commits: defaultdict[str, dict[Place, int]] = Factory(lambda: defaultdict(dict))
    broken: list[str] = Factory(list)

    def sender(self, name: str, topic: str, promises: Promises) -> Sender:
        """Add a producer. Each life of a client is a separate producer."""
        self.senders.append(Sender(name, topic, promises))
        return self.senders[-1]

    def committed(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Record that a commit of a group was acknowledged."""
        for place, offset in offsets.items():
            self.commits[group][place] = max(offset, self.commits[group].get(place, 0))

    def judge(self, everything: Log, visible: Log) -> None:
        """Compare the promises with all records, and with the records visible to a read_committed consumer."""
        for sender in self.senders:
            log = visible if sender.transactions else everything
            self.broken += _judge_records(sender, {at: each for at, each in log.items() if at[0] == sender.topic})
            seen = Counter(value for _, _, value in _values(visible) if sender.transactions)
            self.broken += _judge_transactions(sender, seen)

    def judge_group(self, group: str, visible: Log, committed: Mapping[Place, int]) -> None:
        """Compare the records that a group received, and its commits, with the records that it should have read."""
        missing = {(*place, offset) for place, offset, _ in _values(visible)} - self.read[group]
        if missing:
            self.broken.append(f"{group} was never given {_some(missing)}")
        for place, offset in self.commits[group].items():
            if committed.get(place, -1) < offset:
                self.broken.append(f"{group} committed {offset} of {place}, and now has {committed.get(place)}")

    def judge_copy(self, source: Log, copy: Log) -> None:
        """Check that a copying loop wrote each record exactly once."""
        expected = Counter(b"%d/%d" % (place[1], offset) for place, offset, _ in _values(source))
        found = Counter(value.split(b"=", 1)[-1] for _, _, value in _values(copy))
        if found != expected:
            twice = [value for value, times in found.items() if times > 1]
            into = ", ".join({place[0] for place in copy})
            self.broken.append(
                f"the copy in {into} lacks {_some(expected - found)}, and has {_some(twice)} more than once"
            )


def _values(log: Log) -> Iterator[tuple[Place, int, bytes]]:
    return ((place, offset, value) for place, records in log.items() for offset, value in records)


def _judge_records(sender: Sender, log: Log) -> Iterator[str]:
    prefix = sender.name.encode() + b":"
    mine = {at: [each for each in records if each[1].startswith(prefix)] for at, records in log.items()}
    stored = Counter(value for _, _, value in _values(mine))
    lost = sender.acked.keys() - stored.keys()
    if lost:
        yield f"{sender.name} lost {_some(lost)}"
    elsewhere = [
        value
        for value, (partition, offset) in sender.acked.items()
        if value not in lost and offset >= 0 and (offset, value) not in mine.get((sender.topic, partition), ())
    ]
    if elsewhere:
        yield f"{sender.name} has {_some(elsewhere)} in other places than was said"
    if sender.promises is Promises.ONCE and (twice := [value for value, times in stored.items() if times > 1]):
        yield f"{sender.name} has {_some(twice)} more than once"
    if sender.promises is not Promises.KEPT:
        for place, records in mine.items():
            numbers = [int(value.rpartition(b":")[2].partition(b"=")[0]) for _, value in records]
            firsts = list(dict.fromkeys(numbers))
            if firsts != sorted(firsts):
                yield f"{sender.name} is out of order in {place}: {firsts}"


def _judge_transactions(sender: Sender, seen: Mapping[bytes, int]) -> Iterator[str]:
    for transaction in sender.transactions:
        times = {seen.get(value, 0) for value in transaction.values}
        allowed = {Outcome.COMMITTED: ({1},), Outcome.ABORTED: ({0},), Outcome.UNKNOWN: ({0}, {1})}
        if times and times not in allowed[transaction.outcome]:
            yield f"{sender.name}: a transaction that is {transaction.outcome.value} shows {times} of {_some(times)}"


def _some(values: Iterable[object]) -> str:
    found = sorted(map(repr, values))
    return f"{', '.join(found[:5])}{f' and {len(found) - 5} more' if len(found) > 5 else ''}"
