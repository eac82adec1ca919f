"""Fetching: one loop per broker that sends requests and buffers the fetched records.

Each loop has one request in flight. When the response arrives, the loop buffers its bytes undecoded and immediately
sends the next request. It skips partitions that are paused or have enough buffered data. The loops are background tasks
(``Network.spawn``). Kafka's class is ``AbstractFetch``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, Final, Protocol
from uuid import UUID

from kafka_msgs.client.broker_connection import BrokerConnection
from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.assigned_partitions import RESETS, AssignedPartition, AssignedPartitions, FetchedRecords
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.consumer.fetch_session import FetchSession, FetchTarget, SessionRequest, TopicKey
from kafka_msgs.client.consumer.membership import Signal
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, Wait, sleep_until
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.client.scheduler import Task
from kafka_msgs.codec import CodecOptions
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import ConnectionFailedError, DeadlineError, NoProgressError, OffsetPositionError
from kafka_msgs.messages.fetch_request import FetchPartition, FetchRequest
from kafka_msgs.messages.fetch_response import FetchResponse, PartitionData
from kafka_msgs.records import Payload

__all__ = ["Fetcher"]

_LOG: Final = logging.getLogger("kafka_msgs.client.consumer")

PURPOSE: Final = "fetch"
_VIEWS: Final = CodecOptions(memoryview_records=True)
"""Records are views of the response: copying them would cost more than the rest of the fetch."""
_SMALL_SHARE: Final = 8
"""Records smaller than 1/8 of their response are copied, so that they do not keep the full response in memory."""
_TOPIC_IDS: Final = 13
"""The first Fetch version with topic ids (KIP-516)."""
_MOST_STALLS: Final = 3
_EPOCHS: Final = 12
"""The first Fetch version in which the broker checks the epoch of the last fetched record (KIP-595)."""

_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)  # fmt: skip
"""Partition error codes after which the consumer refreshes its metadata and retries the fetch."""
_SESSION_ENDED: Final = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})
"""Response error codes after which the next request starts a new session. They occur in normal operation."""


class Signals(Protocol):
    """The signals that a fetcher waits for and sends."""

    changed: Signal
    """Partitions, positions or metadata changed."""
    arrived: Signal
    """A poll has records to return or an error to raise."""
    drained: Signal
    """A poll has removed records from the buffers."""
    lock: Any

    def notice_topics(self) -> None:
        """Restart the partitions of recreated topics."""
        ...


class Fetcher:
    """Fetches for all partitions of a consumer."""

    def __init__(
        self,
        client: ClientCore,
        config: ConsumerConfig,
        partitions: AssignedPartitions,
        signals: Signals,
        report: Callable[[Exception], None],
    ) -> None:
        self._client = client
        self._config = config
        self._partitions = partitions
        self._signals = signals
        self._report = report
        self._sessions: dict[int, FetchSession] = {}
        self._loops: dict[int, Task[None]] = {}
        self._retries = RetryLog(_LOG, client.network.now)
        self.outdated = False
        """Whether the metadata may be out of date, for example after an error from a broker."""

    def restart_loops(self) -> None:
        """Start a loop for each broker that serves an assigned partition and has no loop yet."""
        nodes = {self._node_of(partition) for partition in self._partitions}
        for found in nodes.difference(self._loops):
            if found is not None:
                self._begin_loop(found)

    def _begin_loop(self, broker_id: int) -> None:
        loop = self._client.network.spawn(self._loop(broker_id))
        if loop.done:
            self._loop_ended(broker_id, loop)
        else:
            self._loops[broker_id] = loop
            loop.add_done_callback(lambda: self._loop_ended(broker_id, loop))

    def _loop_ended(self, broker_id: int, loop: Task[None]) -> None:
        """Report the error that ended a loop. A loop ends only by an error or by cancellation."""
        if not loop.cancelled and loop.error is not None:
            self._loops.pop(broker_id, None)
            self._report(loop.error)

    def restart(self) -> None:
        """Discard the loops and the sessions after every task has ended."""
        self._loops.clear()
        self._sessions.clear()
        self.outdated = True

    def invalidate_leaders(self) -> None:
        """Mark the metadata as possibly out of date."""
        if not self.outdated:
            self.outdated = True
            self._signals.changed.notify()

    @property
    def tasks(self) -> Collection[Task[None]]:
        """The fetch loops. They end only by an error or by cancellation."""
        return tuple(self._loops.values())

    def stop(self) -> None:
        """End the loops."""
        loops, self._loops = self._loops, {}
        for loop in loops.values():
            loop.cancel()

    def close(self, deadline: float) -> Flow[None]:
        """End the loops, and close the fetch sessions at the brokers, which limit the number of sessions.

        Sessions are independent of connections. A loop's connection may have a long poll in flight, and brokers respond
        in order, so the fetcher closes the session through another connection.
        """
        self.stop()
        closing = []
        for broker_id, session in self._sessions.items():
            last = session.close()
            if last is not None:
                try:
                    connection = yield from self._client.link(broker_id, deadline=deadline)
                    request, version = self._request(last, wait=0.0), self._version(connection)
                    closing.append(
                        (yield from connection.send_when_ready(partial(connection.send, request, version), deadline))
                    )
                except (ConnectionFailedError, DeadlineError):
                    continue
        for pending in closing:
            yield Wait((pending,), deadline)

    def _loop(self, broker_id: int) -> Flow[None]:
        """Fetch from one broker repeatedly. Wait while it has no partitions to fetch."""
        session = self._sessions.setdefault(broker_id, FetchSession())
        failures = 0
        while True:
            news = self._signals.changed.pending, self._signals.drained.pending
            if next(self._ready(broker_id), None) is None:
                yield Wait(news, None)
                continue
            try:
                failed = yield from self._fetch(broker_id, session)
            except (ConnectionFailedError, DeadlineError) as error:
                self._retries.failed(broker_id, error, expected=isinstance(error, ConnectionFailedError))
                session.handle_error()
                self.invalidate_leaders()
                failed = True
            failures = failures + 1 if failed else 0
            if failures:
                self._signals.arrived.notify()
                settings = self._client.config
                pause = min(settings.max_backoff, settings.backoff * 2 ** min(failures, 20))
                yield from sleep_until(self._client.network.now() + pause)

    def _fetch(self, broker_id: int, session: FetchSession) -> Flow[bool]:
        """Send one request and process its response. Return whether an error requires a pause."""
        connection = yield from self._client.link(broker_id, purpose=PURPOSE, deadline=self._client.deadline(None))
        version = self._version(connection)
        self._signals.notice_topics()
        wanted = dict(self._wanted(broker_id, version))
        if not wanted:
            return False
        limit = self._client.directory.request_deadline() + self._config.fetch_max_wait
        request = self._request(session.build(wanted), self._config.fetch_max_wait)
        answer = yield from connection.call(request, version, deadline=None, limit=limit, options=_VIEWS)
        if answer.error_code:
            session.handle_error(answer.error_code)
            self._refused(broker_id, answer.error_code)
            return True
        self._retries.passed(broker_id)
        session.handle_response(answer.session_id)
        return self._handle_response(broker_id, session, answer)

    def _refused(self, broker_id: int, code: int) -> None:
        """Handle the rejection of an entire request. The fetcher retries it, as Kafka's consumer does."""
        ended = code in _SESSION_ENDED
        self._retries.failed(broker_id, broker_error(code, api="Fetch", subject=f"broker {broker_id}"), expected=ended)
        if not ended:
            self.invalidate_leaders()

    def _version(self, connection: BrokerConnection) -> int:
        """Return the Fetch version to use: the last version without topic ids if a topic id is unknown."""
        version = connection.highest_version(FetchRequest)
        cluster = self._client.cluster
        if version >= _TOPIC_IDS and any(cluster.topic_id(each.name.topic) is None for each in self._partitions):
            return _TOPIC_IDS - 1
        return version

    def _request(self, session: SessionRequest, wait: float) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=round(wait * 1000),
            min_bytes=self._config.fetch_min_bytes,
            max_bytes=self._config.fetch_max_bytes,
            isolation_level=int(self._config.isolation_level == "read_committed"),
            session_id=session.session_id,
            session_epoch=session.session_epoch,
            topics=session.topics,
            forgotten_topics_data=session.forgotten,
            rack_id=self._config.client_rack,
        )

    def _wanted(self, broker_id: int, version: int) -> Iterator[tuple[FetchTarget, FetchPartition]]:
        """Yield the fetch target and parameters of each partition to request from this broker."""
        for partition in self._ready(broker_id):
            topic, number = partition.name
            yield (
                (self._key(topic, version), number),
                FetchPartition(
                    partition=number,
                    current_leader_epoch=self._client.cluster.partitions(topic)[number].leader_epoch,
                    fetch_offset=partition.fetch_offset,
                    last_fetched_epoch=partition.epoch if version >= _EPOCHS else -1,
                    partition_max_bytes=self._config.partition_max_bytes,
                ),
            )

    def _ready(self, broker_id: int) -> Iterator[AssignedPartition]:
        """Yield the partitions to fetch from this broker, or none while the buffers are full."""
        if self._partitions.buffered < self._config.buffer_max_bytes:
            for partition in self._partitions:
                if partition.is_fetchable(self._config.partition_max_bytes) and self._node_of(partition) == broker_id:
                    yield partition

    def _key(self, topic: str, version: int) -> TopicKey:
        topic_id = self._client.cluster.topic_id(topic) if version >= _TOPIC_IDS else None
        return topic if topic_id is None else topic_id

    def _node_of(self, partition: AssignedPartition) -> int | None:
        """Return the broker to fetch a partition from: the preferred follower until it expires, or the leader."""
        if partition.replica is not None:
            alive = partition.replica in self._client.cluster.brokers
            if alive and self._client.network.now() < partition.replica_expires:
                return partition.replica
            partition.replica = None
        broker_id = self._client.cluster.leader(*partition.name)
        if broker_id is None:
            self.invalidate_leaders()
        return broker_id

    def _handle_response(self, broker_id: int, session: FetchSession, answer: FetchResponse) -> bool:
        """Buffer the records of a response, and handle partition errors."""
        failed = False
        for topic in answer.responses:
            named = topic.topic if topic.topic else self._client.cluster.topic_name(topic.topic_id)
            key: str | UUID = topic.topic or topic.topic_id
            for data in topic.partitions:
                asked = session.includes((key, data.partition_index))
                partition = self._partitions.get(TopicPartition(named or "", data.partition_index))
                with self._signals.lock:  # an interrupted poll returns to an earlier offset in its own thread
                    if asked is None or partition is None or partition.fetch_offset != asked.fetch_offset:
                        continue
                    failed |= self._take_partition(broker_id, partition, data)
        self._signals.arrived.notify()
        return failed

    def _take_partition(self, broker_id: int, partition: AssignedPartition, data: PartitionData) -> bool:
        """Process the response for one partition. Return whether an error requires a pause."""
        if data.error_code:
            return self._failed(broker_id, partition, data)
        self._retries.passed(partition.name)
        if data.diverging_epoch.end_offset >= 0:
            self._truncated(partition, data.diverging_epoch.end_offset)
            return False
        partition.high_watermark = data.high_watermark
        partition.last_stable_offset = data.last_stable_offset
        partition.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            partition.replica = data.preferred_read_replica
            partition.replica_expires = self._client.network.now() + self._client.config.metadata_max_age
        if not data.records:
            return False
        before = partition.fetch_offset
        count = partition.add(FetchedRecords(_kept(data.records), before, data.aborted_transactions))
        lag = max(0, partition.high_watermark - partition.fetch_offset)
        self._client.directory.hooks.call("fetched", *partition.name, count, len(data.records), lag)
        return self._stalls(partition, before)

    def _stalls(self, partition: AssignedPartition, before: int) -> bool:
        """Whether a response had bytes, but no batch at the requested offset. Three in a row are an error."""
        partition.stalls = partition.stalls + 1 if partition.fetch_offset == before else 0
        if partition.stalls == _MOST_STALLS:
            topic, number = partition.name
            partition.error = NoProgressError(
                topic=topic, partition=number, position=0, offset=before, reason="stalled"
            )
        return partition.stalls > 0

    def _failed(self, broker_id: int, partition: AssignedPartition, data: PartitionData) -> bool:
        code = data.error_code
        error = broker_error(code, api="Fetch", subject=partition.name)
        if code in _MOVED:
            self._retries.failed(partition.name, error, expected=True)
            partition.replica = None
            leader = data.current_leader
            if leader.leader_id >= 0:
                self._client.cluster.set_leader(*partition.name, leader.leader_id, leader.leader_epoch)
            self.invalidate_leaders()
            return True
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if partition.replica != broker_id:
                return self._out_of_range(partition)
            partition.replica = None
            return False
        if code == ErrorCode.UNKNOWN_SERVER_ERROR:  # Kafka's consumer retries it, and raises all other codes
            self._retries.failed(partition.name, error)
            return True
        partition.error = error
        return False

    def _out_of_range(self, partition: AssignedPartition) -> bool:
        """Handle an out-of-range offset. Return True to wait until all buffered records are returned first."""
        if partition.position != partition.fetch_offset:
            return True
        self._reset(partition, f"the offset {partition.fetch_offset} is out of range", None)
        return False

    def _truncated(self, partition: AssignedPartition, end: int) -> None:
        """Handle a log truncated below the fetch offset (KIP-320)."""
        reason = f"the log was truncated: it agrees with what was read only up to the offset {end}"
        self._reset(partition, reason, end)

    def _reset(self, partition: AssignedPartition, reason: str, end: int | None) -> None:
        policy = self._config.auto_offset_reset
        if policy == "none":
            name = partition.name
            partition.error = OffsetPositionError(topic=name.topic, partition=name.partition, reason=reason)
        elif end is not None:
            partition.seek(end)
        else:
            partition.reset(RESETS[policy])
            self._signals.changed.notify()


def _kept(records: Payload) -> Payload:
    """Return the records to buffer, copied if they are a small part of the response that they keep in memory."""
    if isinstance(records, memoryview) and len(records) * _SMALL_SHARE < memoryview(records.obj).nbytes:
        return bytes(records)
    return records
