"""The recorded exchanges of a cassette, and the lookup of responses.

A request is compared with the recorded requests of its API, starting with the same version and continuing with the
nearest ones. If several match, they are replayed in order, preferring the same client id. After that, the last one is
repeated, unless the API changes data: a client that repeats a write more often than recorded behaves differently from
the recording.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from attrs import define, frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.exchanges import Exchange
from kafka_msgs.message import Message
from kafka_msgs.messages.fetch_request import FetchRequest
from kafka_msgs.messages.heartbeat_response import HeartbeatResponse
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.testing.cassettes.recorded_fetches import RecordedFetches
from kafka_msgs.testing.cassettes.recorded_topics import RecordedTopics
from kafka_msgs.testing.cassettes.request_content import Content, content_of, differences

__all__ = ["Miss", "RecordedExchanges", "RecordedReply"]

_CHANGES: Final = frozenset(
    {
        *(ApiKey.PRODUCE, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DELETE_RECORDS),
        *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS),
    }
)
"""The APIs that change data that clients read. Each recorded request is replayed once."""

_ANY_CONTENT: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.HEARTBEAT})
"""APIs for which all requests match."""

_MOST_DIFFERENCES: Final = 3
_UNCHANGED: Final[Mapping[int, Message]] = {ApiKey.HEARTBEAT: HeartbeatResponse()}
"""Responses to periodic requests that were not recorded."""


@define(eq=False)
class _Recorded:
    place: int
    exchange: Exchange
    content: Content
    response: Message | None
    played: bool = False


@frozen
class RecordedReply:
    """The response to a request, or None without one. ``version`` is its version, or None for the request version.

    ``latency_ms`` is the latency of the recorded response. ``idle`` is True for a fetch that found no records.
    """

    response: Message | None
    version: int | None = None
    latency_ms: float = 0.0
    idle: bool = False


@frozen
class Miss:
    """The reason why a request has no recorded response."""

    reason: str


class RecordedExchanges:
    """The exchanges of one cassette, without undecodable exchanges and requests without a response."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._by_api: defaultdict[int, list[_Recorded]] = defaultdict(list)
        self._changes: list[_Recorded] = []
        self._fetches = RecordedFetches()
        self._topics = RecordedTopics()
        for place, item in enumerate(items):
            if isinstance(item, Exchange) and not item.problems:
                self._add(place, item)

    def _add(self, place: int, exchange: Exchange) -> None:
        response = exchange.response_message
        if response is None and exchange.api_key != ApiKey.PRODUCE:
            return
        self._fetches.note(place, response)
        self._topics.note(response)
        content = content_of(exchange.request_message, exchange.version)
        recorded = _Recorded(place, exchange, content, response)
        self._by_api[exchange.api_key].append(recorded)
        if exchange.api_key in _CHANGES:
            self._changes.append(recorded)

    @property
    def unplayed(self) -> list[str]:
        """Recorded changes that have not been requested yet."""
        return [_named(each.exchange) for each in self._changes if not each.played]

    def find_response(self, request: Message, version: int, client_id: str | None) -> RecordedReply | Miss:
        """Return the response to a request."""
        api_key = int(request.INFO.api_key or 0)
        recorded = self._by_api.get(api_key, [])
        if isinstance(request, FetchRequest) and recorded:
            before = next((each.place for each in self._changes if not each.played), _NEVER)
            fetched, found = self._fetches.answer(request, before)
            return RecordedReply(fetched, idle=not found)
        content = content_of(request, version)
        equal = [each for each in recorded if api_key in _ANY_CONTENT or _is_equal(each, content)]
        chosen = _choose(equal, version, client_id, again=api_key not in _CHANGES)
        if chosen is not None:
            return _reply(chosen, version)
        other = self._topics.answer(request) if isinstance(request, MetadataRequest) else _UNCHANGED.get(api_key)
        return Miss(_reason(request, version, content, recorded, equal)) if other is None else RecordedReply(other)


_NEVER: Final = 2**63


def _is_equal(recorded: _Recorded, content: Content) -> bool:
    return next(differences(recorded.content, content), None) is None


def _choose(equal: list[_Recorded], version: int, client_id: str | None, *, again: bool) -> _Recorded | None:
    """Return the recorded request to replay, from those with equal content."""

    def distance(recorded: _Recorded) -> tuple[int, bool, int]:
        exchange = recorded.exchange
        return abs(exchange.version - version), exchange.client_id != client_id, recorded.place

    unplayed = [each for each in equal if not each.played]
    if unplayed:
        return min(unplayed, key=distance)
    return equal[-1] if equal and again else None


def _reply(recorded: _Recorded, version: int) -> RecordedReply:
    recorded.played = True
    exchange = recorded.exchange
    latency_ms = (exchange.latency_us or 0) / 1000
    if recorded.response is None:
        return RecordedReply(None)
    same = exchange.version == version
    return RecordedReply(recorded.response, exchange.response_version if same else None, latency_ms)


def _reason(request: Message, version: int, content: Content, recorded: list[_Recorded], equal: list[_Recorded]) -> str:
    asked = f"{request.INFO.name} v{version}"
    if equal:
        return f"{asked} was recorded {len(equal)} times, and is asked once more"
    if not recorded:
        return f"{asked} is asked, and no request of this api was recorded"
    near = min(recorded, key=lambda each: _distance(each, content))
    found = list(differences(near.content, content))
    shown = "; ".join(found[:_MOST_DIFFERENCES])
    more = f"; and {len(found) - _MOST_DIFFERENCES} more" if len(found) > _MOST_DIFFERENCES else ""
    return f"{asked} was not recorded; the nearest one, {_named(near.exchange)}, differs in {shown}{more}"


def _distance(recorded: _Recorded, content: Content) -> int:
    return sum(1 for _ in differences(recorded.content, content))


def _named(exchange: Exchange) -> str:
    return f"{exchange.api} v{exchange.version} in line {exchange.request.packet}"
