"""ShareFetch: records for a member of a share group, immediately or when records become available (KIP-932).

In Kafka these are ``KafkaApis.handleShareFetchRequest``, ``DelayedShareFetch`` and ``ShareFetchUtils``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, cast

from attrs import define, evolve, field

from kafka_msgs.broker.handlers.fetch import charge_fetch_quota, concat_records
from kafka_msgs.broker.handlers.response_parts import group_by_key
from kafka_msgs.broker.handlers.share_acknowledgements import (
    MOVED,
    Acknowledgements,
    AcknowledgeResult,
    check_partition,
    host_of,
    leader_endpoints,
    leader_of,
    member_of,
)
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.share import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    AcquiredRecords,
    AcquireMode,
    MemberKey,
    SharePartition,
    SharePartitionKey,
    ShareSession,
    TopicIdPartition,
    acquire,
    archive_aborted,
    rotated,
)
from kafka_msgs.broker.storage import PartitionLog
from kafka_msgs.broker.storage.batch_headers import PositionedHeader, header_at
from kafka_msgs.codec import Buffer
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.log import IsolationLevel
from kafka_msgs.messages import share_fetch_response as fetched
from kafka_msgs.messages.share_fetch_request import ShareFetchRequest
from kafka_msgs.records import ControlType, RecordBatch, read_batches

__all__ = ["HANDLERS"]

_RENEW_SINCE: Final = 2
_NONE: Final = "NONE"
"""The error message that Kafka returns without an error if the log no longer has records at the group's offset."""


@define(eq=False)
class _Fetch:
    """One fetch: its session (None for the final request of a session) and the responses by partition.

    ``said`` holds the acknowledgements of the request, and ``outcomes`` their results once they are applied.
    """

    call: ServerCall[ShareFetchRequest]
    member: MemberKey
    session: ShareSession | None
    said: Acknowledgements
    parts: dict[TopicIdPartition, fetched.PartitionData] = field(factory=dict)
    outcomes: Mapping[TopicIdPartition, AcknowledgeResult] | None = None

    @property
    def request(self) -> ShareFetchRequest:
        """The request."""
        return self.call.request

    def fail(self, place: TopicIdPartition, error: RequestRefusedError) -> None:
        """Respond with an error for a partition."""
        self.parts[place] = fetched.PartitionData(
            partition_index=place[1], error_code=error.error, error_message=error.message, records=b""
        )


def _fetch(call: ServerCall[ShareFetchRequest]) -> None:
    member, request = member_of(call), call.request
    acknowledges = any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions)
    renews = call.version >= _RENEW_SINCE and request.is_renew_ack
    if renews:
        _check_renewal(request)
    try:
        session = _session(call, member, acknowledges=acknowledges)
    except RequestRefusedError as error:
        if error.error != ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            raise
        _fail_later(call, error.error)
        return
    said = Acknowledgements.begin(call, member) if acknowledges else Acknowledgements()
    fetch = _Fetch(call, member, session, said)
    if session is None or renews:
        _answer(fetch)
    else:
        _begin(fetch, session)


def _check_renewal(request: ShareFetchRequest) -> None:
    """Raise ``RequestRefusedError`` with INVALID_REQUEST if a fetch that renews locks requests records."""
    if request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)


def _session(call: ServerCall[ShareFetchRequest], member: MemberKey, *, acknowledges: bool) -> ShareSession | None:
    """Return the session of a fetch, or None if the fetch ends it. Raises ``RequestRefusedError``."""
    host, request, epoch = host_of(call), call.request, call.request.share_session_epoch
    places = [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
    if epoch == FINAL_EPOCH:
        host.sessions.get(member)
        return None
    if epoch == INITIAL_EPOCH:
        if acknowledges:
            raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
        return host.begin_session(member, places, call.session)
    forgotten = [(topic.topic_id, each) for topic in request.forgotten_topics_data for each in topic.partitions]
    return host.sessions.update(member, epoch, places, forgotten)


def _fail_later(call: ServerCall[ShareFetchRequest], error: int) -> None:
    """Refuse a session after the wait time of the fetch, so that the client does not retry immediately."""

    def fail() -> None:
        stay()
        call.fail(ErrorCode(error))

    timer = call.cluster.call_later(max(0, call.request.max_wait_ms), fail)
    stay = call.session.on_close(timer.cancel)


def _begin(fetch: _Fetch, session: ShareSession) -> None:
    """Open the share partitions, and read now or later."""
    call, request = fetch.call, fetch.request
    wanted: list[TopicIdPartition] = []
    for place in session.partitions:
        try:
            check_partition(call, place)
        except RequestRefusedError as error:
            fetch.fail(place, error)
        else:
            wanted.append(place)
    most = min(
        request.max_bytes,
        call.cluster.configs.number("fetch.max.bytes"),
        call.meters.fetch.most_in_window(call.session.principal.name, call.client_id),
    )
    if not wanted or not request.max_records or most <= 0:
        _answer(fetch)
        return
    if request.share_acquire_mode not in tuple(AcquireMode):
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    shares: dict[TopicIdPartition, SharePartition] = {}
    for place in rotated(wanted, request.share_session_epoch):
        try:
            shares[place] = host_of(call).open(SharePartitionKey(fetch.member.group_id, *place))
        except RequestRefusedError as error:
            fetch.fail(place, error)
    if shares:
        _DelayedShareFetch(fetch, shares, most).begin()
    else:
        _answer(fetch)


class _DelayedShareFetch:
    """A fetch that responds when records are available, or after its wait time."""

    def __init__(self, fetch: _Fetch, shares: dict[TopicIdPartition, SharePartition], max_bytes: int) -> None:
        self._fetch, self._shares, self._max_bytes = fetch, shares, max_bytes
        self._ends: list[Any] = []
        self._done = False

    def begin(self) -> None:
        """Look for records, and watch the partitions if none are available."""
        self._look()
        if self._done:
            return
        call = self._fetch.call
        if call.request.max_wait_ms <= 0:
            self._end(self._read())
            return
        keys = [SharePartitionKey(self._fetch.member.group_id, *place) for place in self._shares]
        self._ends = [
            call.cluster.log_manager.watch(self._shares, self._look).cancel,
            call.cluster.call_later(call.request.max_wait_ms, lambda: self._end(self._read())).cancel,
            host_of(call).watch(keys, self._look),
            call.session.on_close(self._stop),
        ]
        # Records that this fetch releases are too late for it, unless it waits. Then it is woken.
        self._fetch.outcomes = self._fetch.said.finish()

    def _look(self) -> None:
        if not self._done:
            reads = self._read()
            least = min(self._fetch.request.min_bytes, self._max_bytes)
            if reads and (any(each.urgent for each in reads.values()) or sum(map(_size, reads.values())) >= least):
                self._end(reads)

    def _read(self) -> dict[TopicIdPartition, _Read]:
        """Read the log of each share partition with free capacity, within the client's byte limit."""
        call, host = self._fetch.call, host_of(self._fetch.call)
        open_shares = {
            place: share
            for place, share in self._shares.items()
            if host.find(SharePartitionKey(self._fetch.member.group_id, *place)) is share and share.can_acquire()
        }
        isolation = cast("IsolationLevel", host.config(self._fetch.member.group_id).share_isolation_level)
        reads: dict[TopicIdPartition, _Read] = {}
        left = self._max_bytes
        for place, share in open_shares.items():
            log = call.cluster.log_manager.get(place)
            if log is None:
                continue
            max_bytes = min(left, max(1, self._max_bytes // len(open_shares)))
            reads[place] = read = _read(log, share, max_bytes, isolation, min_one=left == self._max_bytes)
            left -= min(left, _size(read))
        return reads

    def _end(self, reads: dict[TopicIdPartition, _Read]) -> None:
        self._stop()
        fetch, count = self._fetch, 0
        for place, read in reads.items():
            part = _acquired(fetch, place, self._shares[place], read, fetch.request.max_records - count)
            count += sum(each.last_offset - each.first_offset + 1 for each in part.acquired_records)
            fetch.parts[place] = part
        for place in reads:
            self._shares[place].changed()
        _answer(fetch)

    def _stop(self) -> None:
        self._done = True
        ends, self._ends = self._ends, []
        for end in ends:
            end()


@define
class _Read:
    """Data read from a log. ``data`` is None if the log no longer has records at the offset.

    ``urgent`` means that the response must not wait for more data.
    """

    log: PartitionLog
    offset: int
    data: Buffer | None
    aborted: tuple[Any, ...] = ()
    urgent: bool = False


def _size(read: _Read) -> int:
    return 0 if read.data is None else len(read.data)


def _read(
    log: PartitionLog, share: SharePartition, max_bytes: int, isolation: IsolationLevel, *, min_one: bool
) -> _Read:
    offset = share.next_fetch_offset()
    try:
        found = log.read(offset, max_bytes, isolation=isolation, min_one_batch=min_one)
    except RequestRefusedError:
        return _Read(log, offset, None, urgent=True)
    limit = log.last_stable_offset if isolation == "read_committed" else log.high_watermark
    more = found.size > 0 and found.next_offset < limit
    return _Read(log, offset, concat_records(found.data), found.aborted or (), urgent=more)


def _headers(data: Buffer, last: int) -> list[PositionedHeader]:
    """Return the headers of the batches up to the batch with offset ``last``."""
    headers: list[PositionedHeader] = []
    at = 0
    while (header := header_at(data, at, at, len(data) - at)) is not None:
        headers.append(header)
        at = header.end
        if header.last_offset >= last:
            break
    return headers


def _acquired(
    fetch: _Fetch, place: TopicIdPartition, share: SharePartition, read: _Read, max_records: int
) -> fetched.PartitionData:
    """Acquire records from the data that was read, and return their batches."""
    if read.data is None:
        share.on_log_start_offset(read.log.log_start_offset)
        gone = read.offset < read.log.log_start_offset
        return fetched.PartitionData(partition_index=place[1], error_message=_NONE if gone else None, records=b"")
    request, data = fetch.request, read.data
    headers = _headers(data, share.end_offset + max_records)
    acquired = acquire(
        share,
        fetch.member.member_id,
        headers,
        fetch_offset=read.offset,
        max_records=max_records,
        batch_size=request.batch_size,
        mode=AcquireMode(request.share_acquire_mode),
        now=fetch.call.cluster.now,
    )
    if read.aborted:
        acquired = archive_aborted(share, acquired, headers, read.aborted, partial(_ends_aborted, data))
    if not acquired:
        return fetched.PartitionData(partition_index=place[1], records=b"")
    return fetched.PartitionData(
        partition_index=place[1],
        records=_slice(data, headers, acquired),
        acquired_records=tuple(
            fetched.AcquiredRecords(first_offset=each.first, last_offset=each.last, delivery_count=each.delivery_count)
            for each in acquired
        ),
    )


def _ends_aborted(data: Buffer, header: PositionedHeader) -> bool:
    """Return whether a control batch aborts a transaction."""
    piece = memoryview(data)[header.position : header.end]
    return any(
        record.type is ControlType.ABORT
        for batch in read_batches(piece)
        if isinstance(batch, RecordBatch)
        for record in batch.control_records()
    )


def _slice(data: Buffer, headers: list[PositionedHeader], acquired: list[AcquiredRecords]) -> memoryview:
    """Return the batches from the one with the first acquired record to the one with the last."""
    first = max((each for each in headers if each.base_offset <= acquired[0].first), default=headers[0])
    last = max((each for each in headers if each.base_offset <= acquired[-1].last), default=headers[-1])
    return memoryview(data)[first.position : last.end]


def _answer(fetch: _Fetch) -> None:
    call, session = fetch.call, fetch.session
    parts = dict(fetch.parts)
    if charge_fetch_quota(call, fetched.ShareFetchResponse(responses=tuple(_topics(parts)))):
        parts = {}
    elif session is not None and fetch.request.share_session_epoch != INITIAL_EPOCH:
        parts = {
            place: part
            for place, part in parts.items()
            if session.update_responded(place, has_records=bool(part.records), failed=bool(part.error_code))
        }
    moved = [place for place, part in parts.items() if part.error_code in MOVED]
    for place in moved:
        parts[place] = evolve(parts[place], current_leader=fetched.LeaderIdAndEpoch(**leader_of(call, place)))
    outcomes = fetch.said.finish() if fetch.outcomes is None else fetch.outcomes
    for place, outcome in outcomes.items():
        part = parts.get(place) or fetched.PartitionData(partition_index=place[1], records=b"")
        parts[place] = evolve(part, acknowledge_error_code=outcome.error, acknowledge_error_message=outcome.message)
    if session is None:
        host_of(call).end_session(fetch.member)
    call.respond(
        fetched.ShareFetchResponse(
            acquisition_lock_timeout_ms=host_of(call).config(fetch.member.group_id).share_record_lock_duration_ms,
            responses=tuple(_topics(parts)),
            node_endpoints=tuple(fetched.NodeEndpoint(**each) for each in leader_endpoints(call, moved)),
        )
    )


def _topics(parts: Mapping[TopicIdPartition, fetched.PartitionData]) -> Iterable[fetched.ShareFetchableTopicResponse]:
    for topic_id, partitions in group_by_key((place[0], part) for place, part in parts.items()).items():
        yield fetched.ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions)


HANDLERS: Final = (ApiHandler(ShareFetchRequest, _fetch),)
