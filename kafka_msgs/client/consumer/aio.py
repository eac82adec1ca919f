"""``AsyncConsumer``: the shell for asyncio. All logic is in ``core``."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from kafka_msgs.client.client import AsyncClient
from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.consumer.config import ConsumerConfig, ConsumerSettings, consumer_settings
from kafka_msgs.client.consumer.core import Callback, ConsumerCore, Offsets
from kafka_msgs.client.consumer.offsets import CommittedOffset
from kafka_msgs.client.consumer.partitions import ResetTo
from kafka_msgs.client.servers import Servers, settings_of
from kafka_msgs.client.waiting import Pending, Steps
from kafka_msgs.records import ConsumerRecord

__all__ = ["AsyncConsumer"]

_ITERATION: Final = 60.0
"""How long one poll of an iteration waits, in seconds. Nothing depends on it."""

T = TypeVar("T")


class AsyncConsumer:
    """Reads topics, alone or as a member of a group, for asyncio. See ``Consumer``.

        async with AsyncConsumer("localhost:9092", group_id="billing") as consumer:
            consumer.subscribe(["orders"])
            async for record in consumer:
                print(record.value)

    It must be made while the event loop runs. Heartbeats, fetching and automatic commits run as tasks between the
    polls. A consumer that does not poll for ``rebalance_timeout`` leaves the group, as in Kafka's consumer; the next
    poll joins again. The functions of ``subscribe`` may be coroutine functions.
    """

    def __init__(self, servers: Servers | AsyncClient, **settings: Unpack[ConsumerSettings]) -> None:
        if isinstance(servers, AsyncClient):
            self._owns, self.client, found = False, servers, dict[str, Any](settings)
        else:
            config, found = settings_of(servers, settings, consumer_settings)
            self._owns, self.client = True, AsyncClient(config)
        self.config = ConsumerConfig(**found)
        self.core = ConsumerCore(self.client.core, self.config, background=True)

    def subscribe(
        self,
        topics: str | Collection[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Ask for topics, which the members of the group share. The next poll joins the group.

        ``pattern`` is a regular expression instead of topics. In a group of the protocol ``consumer`` a text is
        matched by the broker (RE2 syntax); everything else is matched here, with ``re.search``.

        The functions get a list of partitions. They may be coroutine functions. ``on_assigned`` is called before
        anything is fetched from new partitions: it may ``seek`` to positions that are kept elsewhere. ``on_revoked`` is
        called before partitions are given up: it may commit. ``on_lost`` is called for partitions that others may have
        already; without it ``on_revoked`` is called. An exception of a function is raised by the poll.
        """
        names = (topics,) if isinstance(topics, str) else topics
        self.core.subscribe(names, pattern, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)

    async def unsubscribe(self, *, timeout: float | None = None) -> None:
        """Give up all partitions, and leave the group."""
        await self._run(self.core.unsubscribe(self._deadline(timeout)))

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read exactly these partitions, without a group: no coordinator is asked, except for commits."""
        self.core.set_partitions([TopicPartition(*each) for each in partitions])

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the consumer has now."""
        return self.core.partitions.names

    async def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return records, as soon as there are some; an empty list after ``timeout`` seconds.

        At most ``max_records`` are returned (by default that of the configuration). A poll also does everything else:
        it joins the group, calls the functions of ``subscribe``, and sends heartbeats. Without a subscription or an
        assignment it returns an empty list.

        Raises ``BrokerError``, ``AuthenticationError``, ``ConnectionFailedError``, ``PositionError``, ``RecordError``
        for damaged records (seek past them to go on), and what a function of ``subscribe`` raised.
        """
        room = self.config.max_records if max_records is None else max_records
        return await self._run(self.core.poll(self._deadline(timeout), room))

    async def poll_table(
        self, timeout: float = 0.0, *, columns: Sequence[str] | None = None, max_records: int | None = None
    ) -> Any:
        """Return records as an Arrow table, as soon as there are some; an empty one after ``timeout`` seconds.

        The table has the columns ``topic``, ``partition``, and ``columns`` of ``kafka_msgs.columns.record_schema`` (by
        default offset, timestamp, key, value and headers). Batches are not divided, so there may be some more records
        than ``max_records``. Needs the extra ``arrow``. Raises what ``poll`` raises.
        """
        room = self.config.max_records if max_records is None else max_records
        return await self._run(self.core.poll_table(self._deadline(timeout), room, columns))

    async def commit(self, offsets: Offsets | None = None, *, timeout: float | None = None) -> None:
        """Commit offsets: by default the positions, which are behind the records that polls returned.

        Raises ``BrokerError``, for example if the group has given the partitions to another member.
        """
        await self._run(self.core.commit(offsets, self._deadline(timeout)))

    def commit_later(self, offsets: Offsets | None = None) -> Pending[None]:
        """Begin to commit, and return at once. The commit goes on as a task.

        The value that is returned is ``done`` after that; its ``result()`` raises what ``commit`` raises.
        """
        return self.core.commit_later(offsets)

    async def committed(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return what the group has committed for partitions. Those without a commit are left out."""
        names = [TopicPartition(*each) for each in partitions]
        return await self._run(self.core.committed(names, self._deadline(timeout)))

    async def position(self, partition: tuple[str, int], *, timeout: float | None = None) -> int:
        """Return the offset of the next record that a poll returns; it is looked up if it is not known."""
        return await self._run(self.core.position(TopicPartition(*partition), self._deadline(timeout)))

    def seek(self, offsets: Offsets) -> None:
        """Go on at these offsets: a mapping from partition to offset. Raises ``PositionError``."""
        self.core.seek(offsets)

    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Go on at the first record of partitions; without an argument, of all of them."""
        self.core.reset(partitions or self.assignment, ResetTo.EARLIEST)

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Go on at the end of partitions; without an argument, of all of them."""
        self.core.reset(partitions or self.assignment, ResetTo.LATEST)

    def seek_to_time(self, timestamp: int, *partitions: tuple[str, int]) -> None:
        """Go on at the first records that are not older than a time: milliseconds since the epoch.

        Where all records are older, go on at the end.
        """
        self.core.reset(partitions or self.assignment, timestamp)

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Return nothing from partitions until ``resume``; without an argument, from all of them."""
        self.core.pause(partitions or self.assignment, paused=True)

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Go on with paused partitions; without an argument, with all of them."""
        self.core.pause(partitions or self.assignment, paused=False)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return frozenset(each.name for each in self.core.partitions if each.paused)

    @property
    def member_id(self) -> str:
        """The id of this member in its group. It is empty outside of a group."""
        return self.core.identity.member_id

    async def close(self, *, timeout: float | None = None) -> None:
        """Commit if ``auto_commit`` is set, give up the partitions, and leave the group.

        A client that was made here is closed.
        """
        try:
            await self._run(self.core.close(self._deadline(timeout)))
        finally:
            if self._owns:
                await self.client.close()

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Yield records for ever. Positions move on with each poll, not with each record: see ``poll``."""
        while True:
            for record in await self.poll(_ITERATION):
                yield record

    def _deadline(self, timeout: float | None) -> float:
        return self.client.core.deadline(timeout)

    async def _run(self, steps: Steps[T]) -> T:
        return await self.client.run(steps)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
