"""Fetch: batches of partitions, at once or when there are enough of them, as in Kafka's ``ReplicaManager``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from attrs import define, evolve

from kafka_msgs.broker.call import Call, Handler
from kafka_msgs.broker.controller.image import PartitionKey
from kafka_msgs.broker.handlers.fetch_sessions import Asked, Fetch, FetchSessions
from kafka_msgs.broker.handlers.leading import Led, endpoints, find_topic, led_partition
from kafka_msgs.codec import Buffer
from kafka_msgs.enums import AclOperation
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedError
from kafka_msgs.log import Isolation
from kafka_msgs.messages.fetch_request import FetchRequest
from kafka_msgs.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

__all__ = ["HANDLERS", "join_data"]

_ISOLATIONS: Final[tuple[Isolation, Isolation]] = ("read_uncommitted", "read_committed")
_FIRST_WITH_LEADERS: Final = 12
_FIRST_WITH_ENDPOINTS: Final = 16
_CONSUMER: Final = -1
_MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def _fetch(call: Call[FetchRequest]) -> None:
    cluster = call.cluster
    try:
        fetch = _sessions(call).begin(call.request, call.version, cluster.now)
    except RefusedError as error:
        call.answer(FetchResponse(error_code=error.error))
        return
    reading = _read(call, fetch)
    if call.request.max_wait_ms <= 0 or reading.complete(call.request.min_bytes):
        _answer(call, fetch, reading)
    else:
        _Waiting(call, fetch).begin(reading)


def _sessions(call: Call[FetchRequest]) -> FetchSessions:
    parts = call.node.parts
    sessions = parts.get(FetchSessions)
    if sessions is None:
        cluster = call.cluster
        slots = cluster.settings.number("max.incremental.fetch.session.cache.slots")
        sessions = parts[FetchSessions] = FetchSessions(slots, cluster.random)
    return sessions


@define
class _Reading:
    """What the partitions have now. ``keys`` are those that may get more. ``urgent``: the client must learn of it."""

    results: list[tuple[Asked, PartitionData]]
    keys: list[PartitionKey]
    size: int = 0
    urgent: bool = False

    def complete(self, min_bytes: int) -> bool:
        """Return whether the answer need not wait."""
        return self.urgent or self.size >= min_bytes or not self.keys


class _Waiting:
    """A fetch that waits until enough bytes are there, or something else is to be told, or its time is over."""

    def __init__(self, call: Call[FetchRequest], fetch: Fetch) -> None:
        self._call, self._fetch = call, fetch

    def begin(self, reading: _Reading) -> None:
        """Watch the partitions."""
        cluster = self._call.cluster
        self._watch = cluster.partitions.watch(reading.keys, self._look)
        self._timer = cluster.after(self._call.request.max_wait_ms, self._expire)
        self._stay = self._call.session.on_close(self._cancel)

    def _look(self) -> None:
        reading = _read(self._call, self._fetch)
        if reading.complete(self._call.request.min_bytes):
            self._end(reading)

    def _expire(self) -> None:
        self._end(_read(self._call, self._fetch))

    def _end(self, reading: _Reading) -> None:
        self._stay()
        self._cancel()
        _answer(self._call, self._fetch, reading)

    def _cancel(self) -> None:
        self._watch.cancel()
        self._timer.cancel()


def _read(call: Call[FetchRequest], fetch: Fetch) -> _Reading:
    """Read all partitions, up to the bytes that the client and the broker allow.

    The first batch of the whole answer is read even if it is larger. So a consumer always gets on.
    """
    left = min(call.request.max_bytes, call.cluster.settings.number("fetch.max.bytes"))
    reading = _Reading([], [])
    for asked in fetch.partitions:
        try:
            topic = find_topic(call, asked.topic, asked.topic_id, AclOperation.READ)
            _check_there(call, topic.id, asked.wanted.partition)
        except RefusedError as error:
            reading.results.append((asked, _failed(asked, error)))
            continue
        reading.keys.append((topic.id, asked.wanted.partition))
        try:
            led = led_partition(call, topic, asked.wanted.partition, asked.wanted.current_leader_epoch)
            data = _read_partition(call, led, asked, left, min_one=not reading.size)
        except RefusedError as error:
            data = _with_leader(call, topic.id, _failed(asked, error))
        reading.results.append((asked, data))
        size = len(data.records or b"")
        reading.size += size
        left = max(0, left - size)
        reading.urgent |= bool(data.error_code) or data.diverging_epoch.epoch >= 0
    return reading


def _check_there(call: Call[FetchRequest], topic_id: Any, partition: int) -> None:
    if call.cluster.image.partition(topic_id, partition) is None:
        raise RefusedError(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _read_partition(call: Call[FetchRequest], led: Led, asked: Asked, left: int, *, min_one: bool) -> PartitionData:
    log, wanted, isolation = led.log, asked.wanted, _ISOLATIONS[call.request.isolation_level == 1]
    offsets: dict[str, Any] = {
        "partition_index": wanted.partition,
        "high_watermark": log.high_watermark,
        "last_stable_offset": log.last_stable_offset,
        "log_start_offset": log.log_start_offset,
    }
    if wanted.last_fetched_epoch >= 0:
        end = log.end_offset_for_epoch(wanted.last_fetched_epoch)
        if end.epoch < wanted.last_fetched_epoch or end.start_offset < wanted.fetch_offset:
            diverging = EpochEndOffset(epoch=end.epoch, end_offset=end.start_offset)
            return PartitionData(**offsets, diverging_epoch=diverging, records=b"")
    found = log.read(
        wanted.fetch_offset,
        min(wanted.partition_max_bytes, left),
        isolation=isolation,
        min_one=min_one,
        upto=None if _replica_id(call.request) == _CONSUMER else log.log_end_offset,
    )
    aborted = None
    if found.aborted is not None:
        aborted = tuple(
            AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in found.aborted
        )
    return PartitionData(**offsets, aborted_transactions=aborted, records=join_data(found.data))


def _replica_id(request: FetchRequest) -> int:
    return request.replica_id if request.replica_id != _CONSUMER else request.replica_state.replica_id


def join_data(data: list[Buffer]) -> bytes | memoryview:
    """Return pieces of records as one. One piece stays as it is."""
    if len(data) == 1:
        piece = data[0]
        return bytes(piece) if isinstance(piece, bytearray) else piece
    return b"".join(data)


def _failed(asked: Asked, error: RefusedError) -> PartitionData:
    return PartitionData(
        partition_index=asked.wanted.partition,
        error_code=error.error,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _with_leader(call: Call[FetchRequest], topic_id: Any, data: PartitionData) -> PartitionData:
    """Add who leads the partition now (KIP-951), if that is why it failed."""
    state = call.cluster.image.partition(topic_id, data.partition_index)
    if state is None or data.error_code not in _MOVED or call.version < _FIRST_WITH_LEADERS:
        return data
    leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
    return evolve(data, current_leader=leader)


def _answer(call: Call[FetchRequest], fetch: Fetch, reading: _Reading) -> None:
    chosen = fetch.answered(reading.results)
    nodes: tuple[NodeEndpoint, ...] = ()
    if call.version >= _FIRST_WITH_ENDPOINTS:
        leaders = [data.current_leader.leader_id for _, data in chosen if data.error_code in _MOVED]
        nodes = tuple(NodeEndpoint(**each) for each in endpoints(call, leaders))
    call.answer(FetchResponse(session_id=fetch.session_id, responses=tuple(_by_topic(chosen)), node_endpoints=nodes))


def _by_topic(chosen: Iterable[tuple[Asked, PartitionData]]) -> Iterator[FetchableTopicResponse]:
    for (name, topic_id), group in groupby(chosen, key=lambda each: (each[0].topic, each[0].topic_id)):
        yield FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=tuple(data for _, data in group))


HANDLERS: Final = (Handler(FetchRequest, _fetch),)
