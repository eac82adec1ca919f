"""Counts of the API versions and record formats that clients send, from captured exchanges.

Counts per client: its client id, its software (which it sends with ApiVersions since KIP-511), and its address. The
number of counts is limited, so a proxy can count for a long time; requests beyond the limit are reported as uncounted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from attrs import define

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.capture.connections import Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.exchanges import Exchange
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import DecodeError
from kafka_msgs.messages.produce_request import ProduceRequest
from kafka_msgs.messages.request_header import RequestHeader

__all__ = ["Client", "ClientUsage", "FormatUse", "VersionUse"]

_MAX_COUNTS: Final = 200_000
_LAST_WITH_OLD_FORMATS: Final = 2
"""The last version of Produce with message formats v0 and v1."""
_MAGIC_AT: Final = 16
_OLD_MAGICS: Final = (0, 1)
_HEADER_VERSION: Final = 1
_NULL: Final = b"\xff\xff"
_ANY_TEXT: Final = CodecOptions(utf8_errors="replace")


class Client(NamedTuple):
    """A client: its id, the name and version of its software (both None if unknown), and its host."""

    client_id: str | None
    software: str | None
    host: str


@define
class VersionUse:
    """The requests of a client with one API version.

    ``offered`` is the highest version of the API that the broker offered, or None if no response to ApiVersions was
    captured before. Times are in microseconds since the epoch.
    """

    client: Client
    api_key: int
    version: int
    offered: int | None = None
    count: int = 0
    first_us: int = 0
    last_us: int = 0


@define
class FormatUse:
    """The batches of a client in one message format (the magic of KIP-98: 0 or 1)."""

    client: Client
    magic: int
    count: int = 0
    first_us: int = 0
    last_us: int = 0


class ClientUsage:
    """Counts the exchanges that are added. Faults are counted, but not judged."""

    def __init__(self) -> None:
        self.faults = 0
        self.undecoded = 0
        self.uncounted = 0
        self._versions: dict[tuple[Client, int, int], VersionUse] = {}
        self._formats: dict[tuple[Client, int], FormatUse] = {}
        self._software: dict[tuple[str, int], str] = {}
        self._offered: dict[Endpoint, dict[int, int]] = {}

    @property
    def versions(self) -> list[VersionUse]:
        """The counts by client, API and version."""
        return list(self._versions.values())

    @property
    def formats(self) -> list[FormatUse]:
        """The counts of old message formats by client."""
        return list(self._formats.values())

    def add_all(self, items: Iterable[Item], source: str = "") -> None:
        """Add the items of a capture or a recording; ``source`` distinguishes its connections from others."""
        for item in items:
            self.add(item, source)

    def add(self, item: Item, source: str = "") -> None:
        """Add an exchange or a fault."""
        if not isinstance(item, Exchange):
            self.faults += item.kind.is_damage
            return
        connection = source, item.connection.number
        if item.api_key == ApiKey.API_VERSIONS:
            self._negotiated(item, connection)
        client = Client(item.client_id, self._software.get(connection), item.connection.client.host)
        self._count(item, client)
        if item.api_key == ApiKey.PRODUCE and item.version <= _LAST_WITH_OLD_FORMATS:
            self._count_formats(item, client)

    def _negotiated(self, item: Exchange, connection: tuple[str, int]) -> None:
        """Remember the software of a connection, and the versions that its broker offers."""
        software = item.client_software
        if software is not None and len(self._software) < _MAX_COUNTS:
            self._software[connection] = software
        response: Any = None if item.problems else item.response_message
        if response is not None and not response.error_code and len(self._offered) < _MAX_COUNTS:
            offered = {each.api_key: each.max_version for each in response.api_keys}
            self._offered[item.connection.server] = offered

    def _count(self, item: Exchange, client: Client) -> None:
        key = client, item.api_key, item.version
        use = self._versions.get(key)
        if use is None:
            if len(self._versions) >= _MAX_COUNTS:
                self.uncounted += 1
                return
            use = self._versions[key] = VersionUse(client, item.api_key, item.version)
        offered = self._offered.get(item.connection.server, {}).get(item.api_key)
        use.offered = max((each for each in (use.offered, offered) if each is not None), default=None)
        _add_time(use, item.request.time_us)

    def _count_formats(self, item: Exchange, client: Client) -> None:
        try:
            request = _old_produce_request(item.request.payload)
        except DecodeError:
            self.undecoded += 1
            return
        for topic in request.topic_data:
            for partition in topic.partition_data:
                records = partition.records
                if records and len(records) > _MAGIC_AT and records[_MAGIC_AT] in _OLD_MAGICS:
                    key = client, records[_MAGIC_AT]
                    _add_time(self._formats.setdefault(key, FormatUse(*key)), item.request.time_us)


def _old_produce_request(payload: bytes) -> ProduceRequest:
    """Decode a Produce request of version 0 to 2, which no longer has a definition.

    Version 3 has one more field, at the start: the transactional id, which is null here.
    """
    _, start = RequestHeader.read(payload, _HEADER_VERSION, options=_ANY_TEXT)
    return ProduceRequest.decode(_NULL + payload[start:], _LAST_WITH_OLD_FORMATS + 1, options=_ANY_TEXT)


def _add_time(use: VersionUse | FormatUse, time_us: int) -> None:
    use.first_us = min(use.first_us, time_us) if use.count else time_us
    use.last_us = max(use.last_us, time_us)
    use.count += 1
