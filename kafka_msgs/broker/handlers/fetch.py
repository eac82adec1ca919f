"""Fetch: batches of partitions, returned immediately or when enough bytes exist, as in Kafka's ``ReplicaManager``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from attrs import Factory, define, evolve

from kafka_msgs.broker.broker_interface import LEADER_VIEW, FollowerView
from kafka_msgs.broker.controller.image import PartitionKey, TopicImage
from kafka_msgs.broker.handlers.fetch_sessions import (
    FIRST_WITH_IDS,
    CachedPartition,
    FetchContext,
    FetchSessionCache,
    is_urgent,
)
from kafka_msgs.broker.handlers.partition_access import LeaderPartition, endpoints, find_topic, get_leader_partition
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.storage import PartitionLog
from kafka_msgs.codec import Buffer
from kafka_msgs.enums import AclOperation
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.log import IsolationLevel
from kafka_msgs.message import Response
from kafka_msgs.messages.fetch_request import FetchPartition, FetchRequest
from kafka_msgs.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kafka_msgs.wire import SIZE_BYTES

__all__ = ["HANDLERS", "charge_fetch_quota", "concat_records"]

FIRST_WITH_RACKS: Final = 11
"""The first version of Fetch that contains the consumer's rack."""

_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def preferred_replica(call: ServerCall[FetchRequest], led: LeaderPartition, offset: int) -> int | None:
    """Return the broker that the consumer should fetch a partition from, or None for this one.

    Only the leader selects a replica. All in-sync replicas have the same records here, so the last matching one is
    used, as in Kafka.
    """
    state, rack, image = led.state, call.request.rack_id, call.cluster.image
    is_leader = state.leader == call.session.broker_id
    if call.version < FIRST_WITH_RACKS or not rack or not is_leader or _is_follower(call.request):
        return None
    if call.cluster.configs.text("replica.selector.class") != _SELECTOR:
        return None
    listener = call.session.listener.name
    brokers = (image.brokers[each] for each in state.isr if image.is_alive(each))
    same = {broker.id for broker in brokers if broker.rack == rack and listener in broker.endpoints}
    if not same or state.leader in same or not led.log.log_start_offset <= offset <= led.log.log_end_offset:
        return None
    return max(same)


_ISOLATIONS: Final[tuple[IsolationLevel, IsolationLevel]] = ("read_uncommitted", "read_committed")
_FIRST_WITH_LEADERS: Final = 16
_CONSUMER: Final = -1
_NO_EPOCH: Final = -1
_MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def _fetch(call: ServerCall[FetchRequest]) -> None:
    call.exempt = _is_follower(call.request)
    try:
        fetch = _sessions(call).begin(call.request, call.version, call.cluster.now)
    except RequestRefusedError as error:
        call.respond(FetchResponse(error_code=error.error))
        return
    reading = _read(call, fetch)
    if call.request.max_wait_ms <= 0 or reading.complete(_min_bytes(call)):
        _answer(call, fetch, reading)
    else:
        _DelayedFetch(call, fetch, reading)


def _sessions(call: ServerCall[FetchRequest]) -> FetchSessionCache:
    cluster = call.cluster
    slots = cluster.configs.number("max.incremental.fetch.session.cache.slots")
    return call.broker.component(FetchSessionCache, lambda: FetchSessionCache(slots, cluster.random))


@define
class _FetchRead:
    """The current data of the partitions.

    ``open`` lists the partitions that can still receive more bytes. ``urgent`` means that the client must be informed
    immediately. As in Kafka, unknown and unauthorized partitions (``refused``) follow the ``results``, unknown ids
    first.
    """

    results: list[tuple[CachedPartition, PartitionData]] = Factory(list)
    refused: list[tuple[CachedPartition, PartitionData]] = Factory(list)
    open: dict[PartitionKey, CachedPartition] = Factory(dict)
    sizes: dict[PartitionKey, int] = Factory(dict)
    size: int = 0
    urgent: bool = False

    @property
    def everything(self) -> list[tuple[CachedPartition, PartitionData]]:
        """All results, in Kafka's order."""
        return self.results + sorted(self.refused, key=lambda each: each[1].error_code != ErrorCode.UNKNOWN_TOPIC_ID)

    def complete(self, min_bytes: int) -> bool:
        """Return whether the response is ready."""
        return self.urgent or self.size >= min_bytes or not self.open


class _DelayedFetch:
    """A fetch that waits for enough bytes, another partition event, or the end of its wait time.

    Only changed partitions are checked again, like in Kafka's per-partition ``DelayedFetch``.
    """

    def __init__(self, call: ServerCall[FetchRequest], fetch: FetchContext, reading: _FetchRead) -> None:
        self._call, self._fetch = call, fetch
        self._open, self._sizes, self._size = reading.open, reading.sizes, reading.size
        self._watch = call.cluster.log_manager.watch(reading.open, self._look)
        self._timer = call.cluster.call_later(call.request.max_wait_ms, self._expire)
        self._stay = call.session.on_close(self._cancel)

    def _look(self) -> None:
        """Respond if the available bytes suffice, counting each partition up to its own limit."""
        for key in self._watch.take_changed():
            size = _readable(self._call, key, self._open[key])
            if size is None:
                self._expire()
                return
            self._size += size - self._sizes[key]
            self._sizes[key] = size
        if self._size >= _min_bytes(self._call):
            self._expire()

    def _expire(self) -> None:
        reading = _read(self._call, self._fetch)
        self._stay()
        self._cancel()
        _answer(self._call, self._fetch, reading)

    def _cancel(self) -> None:
        self._watch.cancel()
        self._timer.cancel()


def _read(call: ServerCall[FetchRequest], fetch: FetchContext) -> _FetchRead:
    """Read all partitions, up to the byte limits of the client and the broker.

    The first batch of the response is read even if it exceeds the limits, so that a consumer always makes progress.
    """
    left = _max_bytes(call)
    by_id = call.version >= FIRST_WITH_IDS
    reading = _FetchRead()
    for asked in fetch.partitions:
        try:
            topic = find_topic(call, asked.topic, asked.topic_id if by_id else None, AclOperation.READ)
            if call.cluster.image.partition(topic.id, asked.wanted.partition) is None:
                raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        except RequestRefusedError as error:
            reading.refused.append((asked, evolve(_failed(asked, error), aborted_transactions=())))
            continue
        if call.request.isolation_level not in range(len(_ISOLATIONS)):
            raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
        key = topic.id, asked.wanted.partition
        reading.open[key] = asked
        try:
            led = _served(call, topic, asked)
            data = _read_partition(call, led, asked, left, min_one=not reading.size)
        except RequestRefusedError as error:
            data = _with_leader(call, topic.id, _failed(asked, error))
        reading.results.append((asked, data))
        size = reading.sizes[key] = len(data.records or b"")
        reading.size += size
        left = max(0, left - size)
        reading.urgent |= is_urgent(data)
    return reading


def _served(call: ServerCall[FetchRequest], topic: TopicImage, asked: CachedPartition) -> LeaderPartition:
    """Return the partition that a client fetches. Consumers may also fetch from followers (KIP-392)."""
    or_followed = call.version >= FIRST_WITH_RACKS and not _is_follower(call.request)
    epoch = max(_NO_EPOCH, asked.wanted.current_leader_epoch)
    return get_leader_partition(call, topic, asked.wanted.partition, epoch, or_followed=or_followed)


def _max_bytes(call: ServerCall[FetchRequest]) -> int:
    """Return the maximum response size in bytes. Exceeding the client's quota would throttle a consumer forever."""
    most = min(call.request.max_bytes, call.cluster.configs.number("fetch.max.bytes"))
    if _is_follower(call.request):
        return most
    return min(most, call.meters.fetch.most_in_window(call.session.principal.name, call.client_id))


def _min_bytes(call: ServerCall[FetchRequest]) -> int:
    return min(call.request.min_bytes, _max_bytes(call))


def _readable(call: ServerCall[FetchRequest], key: PartitionKey, asked: CachedPartition) -> int | None:
    """Return the number of readable bytes in a partition, or None after another event such as an error."""
    topic, wanted = call.cluster.image.topics_by_id.get(key[0]), asked.wanted
    if topic is None:
        return None
    try:
        led = _served(call, topic, asked)
        log = led.log
        if _diverging(log, wanted) is not None or preferred_replica(call, led, wanted.fetch_offset) is not None:
            return None
        return log.readable(wanted.fetch_offset, wanted.partition_max_bytes, **_visible(call, led))
    except RequestRefusedError:
        return None


def _read_partition(
    call: ServerCall[FetchRequest], led: LeaderPartition, asked: CachedPartition, left: int, *, min_one: bool
) -> PartitionData:
    log, wanted, view = led.log, asked.wanted, _view(call, led)
    offsets: dict[str, Any] = {
        "partition_index": wanted.partition,
        "high_watermark": view.limit(log.high_watermark),
        "last_stable_offset": view.limit(log.last_stable_offset),
        "log_start_offset": view.start_of(log),
        "aborted_transactions": None,
    }
    diverging = _diverging(log, wanted)
    if diverging is not None:
        return PartitionData(**offsets, diverging_epoch=diverging, records=b"")
    preferred = preferred_replica(call, led, wanted.fetch_offset)
    if preferred is not None:
        return PartitionData(**offsets, preferred_read_replica=preferred, records=b"")
    view.check(log, wanted.fetch_offset)
    at_most = min(wanted.partition_max_bytes, left)
    found = log.read(wanted.fetch_offset, max(0, at_most), min_one_batch=min_one, **_visible(call, led))
    if at_most < 0 and wanted.fetch_offset < log.high_watermark:
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if found.aborted is not None:
        offsets["aborted_transactions"] = tuple(
            AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in found.aborted
        )
    return PartitionData(**offsets, records=concat_records(found.data))


def _is_follower(request: FetchRequest) -> bool:
    return (request.replica_id if request.replica_id != _CONSUMER else request.replica_state.replica_id) >= 0


def _view(call: ServerCall[FetchRequest], led: LeaderPartition) -> FollowerView:
    """Return the offsets of the broker as a follower. They only differ from the log's because of a fault."""
    views, broker_id = call.cluster.follower_views, call.session.broker_id
    if not views or led.state.leader == broker_id:
        return LEADER_VIEW
    return views.get((broker_id, led.state.key), LEADER_VIEW)


def _visible(call: ServerCall[FetchRequest], led: LeaderPartition) -> dict[str, Any]:
    """Return the arguments of ``PartitionLog.read`` for a consumer or a follower."""
    log, committed = led.log, call.request.isolation_level == 1
    max_offset = log.log_end_offset if _is_follower(call.request) else None
    view = _view(call, led)
    if view is not LEADER_VIEW:
        max_offset = view.limit(log.last_stable_offset if committed else log.high_watermark)
    return {"isolation": _ISOLATIONS[committed], "max_offset": max_offset}


def _diverging(log: PartitionLog, wanted: FetchPartition) -> EpochEndOffset | None:
    """Return the point at which the client's log diverges from this log, or None (KIP-595).

    Raises ``RequestRefusedError`` with OFFSET_OUT_OF_RANGE for an epoch that is newer than the log.
    """
    if wanted.last_fetched_epoch < 0:
        return None
    end = log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if end.epoch < 0:
        raise RequestRefusedError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if end.epoch >= wanted.last_fetched_epoch and end.start_offset >= wanted.fetch_offset:
        return None
    return EpochEndOffset(epoch=end.epoch, end_offset=end.start_offset)


def concat_records(data: list[Buffer]) -> bytes | memoryview:
    """Return record buffers as one buffer. A single buffer is returned unchanged."""
    if len(data) == 1:
        piece = data[0]
        return bytes(piece) if isinstance(piece, bytearray) else piece
    return b"".join(data)


def _failed(asked: CachedPartition, error: RequestRefusedError) -> PartitionData:
    return PartitionData(
        partition_index=asked.wanted.partition,
        error_code=error.error,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _with_leader(call: ServerCall[FetchRequest], topic_id: Any, data: PartitionData) -> PartitionData:
    """Add the current leader of the partition (KIP-951), if the fetch failed for that reason."""
    state = call.cluster.image.partition(topic_id, data.partition_index)
    if state is None or data.error_code not in _MOVED or call.version < _FIRST_WITH_LEADERS:
        return data
    leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
    return evolve(data, current_leader=leader)


def _answer(call: ServerCall[FetchRequest], fetch: FetchContext, reading: _FetchRead) -> None:
    chosen = fetch.chosen(reading.everything)
    responses = tuple(_by_topic(chosen))
    if not call.exempt and charge_fetch_quota(call, FetchResponse(responses=responses)):
        call.respond(FetchResponse(session_id=fetch.session_id))
        return
    _sessions(call).answered(fetch, chosen, call.cluster.now)
    moved = (data for _, data in chosen if call.version >= _FIRST_WITH_LEADERS and data.error_code in _MOVED)
    nodes = tuple(NodeEndpoint(**each) for each in endpoints(call, (data.current_leader.leader_id for data in moved)))
    call.respond(FetchResponse(session_id=fetch.session_id, responses=responses, node_endpoints=nodes))


def charge_fetch_quota(call: ServerCall[Any], response: Response) -> bool:
    """Charge a consumer for its fetched bytes. If it exceeds its quota, it receives no data now and is not charged."""
    call.charge_time()
    meter = call.meters.fetch
    if meter.limits.active:
        size = SIZE_BYTES + len(response.encode(call.version))
        call.charge(meter, size)
        if call.throttle_time_ms:
            meter.refund(call.session.principal.name, call.client_id, size, call.cluster.now)
    return call.throttle_time_ms > 0


def _by_topic(chosen: Iterable[tuple[CachedPartition, PartitionData]]) -> Iterator[FetchableTopicResponse]:
    for (name, topic_id), group in groupby(chosen, key=lambda each: (each[0].topic, each[0].topic_id)):
        yield FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=tuple(data for _, data in group))


HANDLERS: Final = (ApiHandler(FetchRequest, _fetch),)
