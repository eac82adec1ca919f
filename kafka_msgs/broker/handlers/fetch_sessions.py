"""Incremental fetch sessions (KIP-227): the partitions that a client fetches, and their last responses.

Each session belongs to one broker. ``max.incremental.fetch.session.cache.slots`` limits their number, and a client
without a session sends full fetch requests. In Kafka this is ``org.apache.kafka.server.FetchSession``.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final, TypeAlias
from uuid import UUID

from attrs import Factory, define

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.fetch_request import FetchPartition, FetchRequest
from kafka_msgs.messages.fetch_response import PartitionData

__all__ = ["FIRST_WITH_IDS", "CachedPartition", "FetchContext", "FetchSessionCache", "is_urgent"]

_NO_SESSION: Final = 0
_FIRST_EPOCH: Final = 0
_LAST_EPOCH: Final = -1
_MAX_EPOCH: Final = 2**31 - 1
_IDLE_MS: Final = 120_000
FIRST_WITH_IDS: Final = 13

Key: TypeAlias = tuple[str, UUID, int]
"""Topic name, topic id and partition number. Requests contain either the name or the id."""


@define
class CachedPartition:
    """A partition that a client fetches. ``high_watermark`` and ``log_start_offset`` are from its last response."""

    topic: str
    topic_id: UUID
    wanted: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    @property
    def key(self) -> Key:
        """The key of the partition in a session."""
        return self.topic, self.topic_id, self.wanted.partition

    def has_news(self, data: PartitionData) -> bool:
        """Return whether a response contains anything new for the client."""
        if data.records or is_urgent(data):
            return True
        return (data.high_watermark, data.log_start_offset) != (self.high_watermark, self.log_start_offset)

    def remember(self, data: PartitionData) -> None:
        """Remember the response sent to the client."""
        if data.error_code:
            # The next response for this partition counts as new.
            self.high_watermark = -1
        else:
            self.high_watermark, self.log_start_offset = data.high_watermark, data.log_start_offset


def is_urgent(data: PartitionData) -> bool:
    """Return whether a response contains more than new end offsets, so that it must not wait."""
    return bool(data.error_code) or data.diverging_epoch.epoch >= 0 or data.preferred_read_replica >= 0


Results: TypeAlias = list[tuple[CachedPartition, PartitionData]]
"""The requested partitions with their data."""


@define
class _Session:
    id: int
    uses_ids: bool
    used_at: int
    epoch: int = _FIRST_EPOCH + 1
    partitions: dict[Key, CachedPartition] = Factory(dict)

    def update(self, request: FetchRequest) -> None:
        for asked in _asked(request):
            known = self.partitions.get(asked.key)
            if known is None:
                self.partitions[asked.key] = asked
            else:
                known.wanted = asked.wanted
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                self.partitions.pop((topic.topic, topic.topic_id, partition), None)


@define
class FetchContext:
    """The partitions of one fetch, in order. ``starts_session`` is True if its response starts a session."""

    partitions: list[CachedPartition]
    session: _Session | None = None
    starts_session: bool = False
    uses_ids: bool = False

    @property
    def session_id(self) -> int:
        """The session id for the response; 0 without a session."""
        return self.session.id if self.session else _NO_SESSION

    def chosen(self, results: Results) -> Results:
        """Return the results to include in the response: in an incremental fetch, only those with changes."""
        return results if self.session is None else [each for each in results if each[0].has_news(each[1])]


class FetchSessionCache:
    """The fetch sessions of one broker, at most ``slots``."""

    def __init__(self, slots: int, random: Random) -> None:
        self._slots = slots
        self._random = random
        self._sessions: dict[int, _Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, version: int, now: int) -> FetchContext:
        """Return the partitions that a request fetches.

        Raises ``RequestRefusedError`` with FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
        FETCH_SESSION_TOPIC_ID_ERROR.
        """
        uses_ids = version >= FIRST_WITH_IDS
        if request.session_epoch in (_FIRST_EPOCH, _LAST_EPOCH):
            self._sessions.pop(request.session_id, None)
            return FetchContext(
                _distinct(request), starts_session=request.session_epoch == _FIRST_EPOCH, uses_ids=uses_ids
            )
        session = self._find(request, uses_ids)
        session.used_at = now
        session.epoch = session.epoch + 1 if session.epoch < _MAX_EPOCH else 1
        session.update(request)
        if not session.partitions:
            del self._sessions[session.id]
            return FetchContext(_distinct(request))
        return FetchContext(list(session.partitions.values()), session)

    def answered(self, fetch: FetchContext, chosen: Results, now: int) -> None:
        """Remember the response sent to a client. A requested session starts now if a slot is available.

        Partitions with records move to the end of the session, so that other partitions come first next time.
        """
        if fetch.starts_session:
            fetch.session = self._create(fetch.partitions, fetch.uses_ids, now)
        for asked, data in chosen:
            asked.remember(data)
            if fetch.session is not None and data.records and asked.key in fetch.session.partitions:
                fetch.session.partitions[asked.key] = fetch.session.partitions.pop(asked.key)

    def _find(self, request: FetchRequest, uses_ids: bool) -> _Session:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise RequestRefusedError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise RequestRefusedError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != uses_ids:
            raise RequestRefusedError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return session

    def _create(self, partitions: list[CachedPartition], uses_ids: bool, now: int) -> _Session | None:
        """Return a new session, or None if all slots are in use."""
        if len(self._sessions) >= self._slots:
            oldest = min(self._sessions.values(), key=lambda each: each.used_at, default=None)
            if oldest is None or now - oldest.used_at <= _IDLE_MS:
                return None
            del self._sessions[oldest.id]
        session = _Session(self._new_id(), uses_ids, now)
        session.partitions = {asked.key: asked for asked in partitions}
        self._sessions[session.id] = session
        return session

    def _new_id(self) -> int:
        while (number := self._random.randrange(1, 2**31)) in self._sessions:
            pass
        return number


def _distinct(request: FetchRequest) -> list[CachedPartition]:
    """Return the requested partitions. If a partition is repeated, the last entry wins."""
    return list({each.key: each for each in _asked(request)}.values())


def _asked(request: FetchRequest) -> Iterator[CachedPartition]:
    for topic in request.topics:
        for partition in topic.partitions:
            yield CachedPartition(topic.topic, topic.topic_id, partition)
