"""Rows of the list of exchanges: what a list shows and filters, without the bytes.

The topics, groups and record counts of a message come from its schema: entity types, topic ids and records fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from attrs import define, field, frozen

from kafka_msgs.binary_layouts import HEADER_SIZE, LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.exchanges import Exchange
from kafka_msgs.capture.faults import CaptureFault
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.message import Message
from kafka_msgs.messages.metadata_response import MetadataResponse
from kafka_msgs.records.compression import decompress
from kafka_msgs.schema import fields

__all__ = ["Row", "RowBuilder", "decompressed_contents"]

_Visit = tuple[str, Literal["topic", "group", "id", "records", "struct", "structs"]]
_FEW: Final = 3
_MAX_COUNTED_BATCHES: Final = 10_000
_COUNT_AT: Final = 57
_ATTRIBUTES_AT: Final = 21
_CODEC: Final = 7
_ENTRY_HEAD: Final = {0: 18, 1: 26}
"""The bytes before the key of a message of magic 0 or 1."""


@frozen(kw_only=True)
class Row:
    """An exchange or a fault as a row. Times are in microseconds, sizes in bytes; None means without a response.

    ``error`` is the first error code, or None. ``problem`` is set if a side cannot be decoded, and for a fault.
    """

    time: int
    connection: int
    ends: tuple[str, str]
    client_id: str
    api_key: int
    version: int
    response_version: int
    sizes: tuple[int, int | None]
    latency: int | None
    error: int | None
    problem: str
    summary: str
    topics: tuple[str, ...]
    group: str


class _Names(NamedTuple):
    """The names in a message, and its records: batches, records and bytes."""

    topics: dict[str, None]
    groups: dict[str, None]
    records: list[Any]


@define
class RowBuilder:
    """A builder of rows. It remembers the names of topic ids in Metadata responses."""

    topic_ids: dict[UUID, str] = field(factory=dict)

    def read(self, item: Item) -> tuple[Row, list[Any]]:
        """Return the row of an exchange or a fault, and the records in it: request first, in wire order."""
        if isinstance(item, CaptureFault):
            return self._fault(item), []
        names = _Names({}, {}, [])
        messages = _messages(item)
        for message in messages:
            self._learn(message)
        for message in messages:
            self._collect(message, names)
        return self._exchange(item, names), names.records

    def records_of(self, message: Message) -> list[Any]:
        """Return the contents of the records fields of a message, in wire order."""
        names = _Names({}, {}, [])
        self._collect(message, names)
        return names.records

    def _fault(self, fault: CaptureFault) -> Row:
        connection = fault.connection
        return Row(
            time=fault.at or 0,
            connection=0 if connection is None else connection.number,
            ends=("", "") if connection is None else (str(connection.client), str(connection.server)),
            client_id="",
            api_key=-1,
            version=-1,
            response_version=-1,
            sizes=(fault.size, None),
            latency=None,
            error=None,
            problem=fault.kind.value,
            summary=fault.reason,
            topics=(),
            group="",
        )

    def _exchange(self, exchange: Exchange, names: _Names) -> Row:
        response = exchange.response
        errors = exchange.errors
        return Row(
            time=exchange.request.time_us,
            connection=exchange.connection.number,
            ends=(str(exchange.connection.client), str(exchange.connection.server)),
            client_id=exchange.client_id or "",
            api_key=exchange.api_key,
            version=exchange.version,
            response_version=_response_version(exchange),
            sizes=(exchange.request.size, None if response is None else response.size),
            latency=exchange.latency_us,
            error=errors[0].code if errors else None,
            problem="; ".join(problem.reason for problem in exchange.problems),
            summary=_summary(names, exchange),
            topics=tuple(names.topics),
            group=next(iter(names.groups), ""),
        )

    def _learn(self, message: Message) -> None:
        if isinstance(message, MetadataResponse):
            self.topic_ids.update({topic.topic_id: topic.name for topic in message.topics if topic.name})

    def _collect(self, item: Any, names: _Names) -> None:
        for attribute, kind in _visits(type(item)):
            value = getattr(item, attribute)
            if not value:
                continue
            if kind == "structs":
                for each in value:
                    self._collect(each, names)
            elif kind == "struct":
                self._collect(value, names)
            elif kind == "records":
                names.records.append(value)
            elif kind == "id":
                known = self.topic_ids.get(value)
                if known is not None:
                    names.topics[known] = None
            else:
                found = names.topics if kind == "topic" else names.groups
                found.update(dict.fromkeys(value if isinstance(value, tuple) else (value,)))


def _messages(exchange: Exchange) -> list[Message]:
    found: list[Message] = []
    broken = {problem.direction for problem in exchange.problems}
    if "request" not in broken:
        found.append(exchange.request_message)
    if exchange.response is not None and "response" not in broken and exchange.response_message is not None:
        found.append(exchange.response_message)
    return found


def _response_version(exchange: Exchange) -> int:
    if exchange.response is None or any(problem.direction == "response" for problem in exchange.problems):
        return exchange.version
    return exchange.response_version


_VISITS: Final[dict[type[Any], tuple[_Visit, ...]]] = {}
_ENTITIES: Final[dict[str, Literal["topic", "group"]]] = {"topicName": "topic", "groupId": "group"}


def _visits(cls: type[Any]) -> tuple[_Visit, ...]:
    """Return the fields of a struct that name topics and groups, contain records, or contain such fields."""
    if cls not in _VISITS:
        _VISITS[cls] = tuple(_visit_fields(cls))
    return _VISITS[cls]


def _visit_fields(cls: type[Any]) -> Iterator[_Visit]:
    for info in fields(cls):
        if info.struct is not None:
            if _visits(info.struct):
                yield info.attribute, "structs" if info.is_array else "struct"
        elif info.entity_type in _ENTITIES:
            yield info.attribute, _ENTITIES[info.entity_type]
        elif info.type == "records":
            yield info.attribute, "records"
        elif info.attribute == "topic_id" and info.type == "uuid":
            yield info.attribute, "id"


def _summary(names: _Names, exchange: Exchange) -> str:
    parts = [", ".join(list(names.topics)[:_FEW])] if names.topics else []
    if len(names.topics) > _FEW:
        parts[0] += f" and {len(names.topics) - _FEW} more"
    if names.groups:
        parts.append(f"group {', '.join(list(names.groups)[:_FEW])}")
    if names.records:
        count = sum(map(_count_records, names.records))
        parts.append(f"{count:,} record{'s' * (count != 1)}")
    if exchange.client_software:
        parts.append(exchange.client_software)
    return " · ".join(parts)


def _batches(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the start, the end and the magic of each complete batch or message. Malformed data ends the iteration."""
    at = 0
    while len(data) - at > MAGIC_OFFSET:
        end = at + LENGTH_AND_OFFSET_STRUCT + int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        if end > len(data) or end <= at + MAGIC_OFFSET:
            return
        yield at, end, data[at + MAGIC_OFFSET]
        at = end


def _count_records(data: bytes) -> int:
    count = 0
    for number, (at, end, magic) in enumerate(_batches(data)):
        if number == _MAX_COUNTED_BATCHES:
            break
        whole = magic == 2 and end - at >= HEADER_SIZE
        count += max(0, int.from_bytes(data[at + _COUNT_AT : at + HEADER_SIZE], "big", signed=True)) if whole else 1
    return count


def decompressed_contents(parts: Sequence[Any], limit: int) -> list[bytes]:
    """Return the decompressed contents of the compressed batches in records, in order.

    A content is empty if it cannot be decompressed, or if all together would exceed ``limit`` bytes.
    """
    found: list[bytes] = []
    for data in map(bytes, parts):
        for start, end, magic in _batches(data):
            body = _compressed_body(data, start, end, magic)
            if body is not None:
                found.append(_decompressed(*body, magic, limit))
                limit -= len(found[-1])
    return found


def _compressed_body(data: bytes, start: int, end: int, magic: int) -> tuple[int, bytes] | None:
    """Return the codec and the compressed bytes of a batch, or None if it is not compressed."""
    if magic == 2:
        codec = data[start + _ATTRIBUTES_AT + 1] & _CODEC if end - start >= HEADER_SIZE else 0
        return (codec, data[start + HEADER_SIZE : end]) if codec else None
    head = _ENTRY_HEAD.get(magic)
    codec = data[start + MAGIC_OFFSET + 1] & _CODEC if end - start > MAGIC_OFFSET + 1 else 0
    if head is None or not codec:
        return None
    key_end = start + head + 4 + max(0, int.from_bytes(data[start + head : start + head + 4], "big", signed=True))
    return codec, data[key_end + 4 : end]


def _decompressed(codec: int, body: bytes, magic: int, limit: int) -> bytes:
    try:
        return decompress(codec, memoryview(body), max(0, limit), magic=magic)
    except KafkaMsgsError:
        return b""
