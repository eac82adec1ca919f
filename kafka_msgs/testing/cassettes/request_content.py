"""The content of a request, without values that differ between runs: member and producer ids, epochs, times.

The contents of two requests of an API can be compared, even at different versions: a field that one of the versions
lacks is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from kafka_msgs.codec import Buffer
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.message import Message
from kafka_msgs.records import RecordBatch, read_batches
from kafka_msgs.schema import FieldInfo, Struct, fields

__all__ = ["Content", "content_of", "differences"]

Content: TypeAlias = Any
"""Dictionaries by attribute, lists, and simple values."""

_IGNORED: Final = frozenset(
    {
        *("client_software_name", "client_software_version", "auth_bytes", "reason", "cluster_id", "node_id"),
        *("generation_id", "generation_id_or_member_epoch", "assignment_epoch", "topology_epoch"),
        *("producer_id", "producer_epoch", "endpoint_information_epoch"),
        *("current_leader_epoch", "last_fetched_epoch", "committed_leader_epoch", "leader_epoch", "commit_timestamp"),
        *("max_wait_ms", "timeout_ms", "rebalance_timeout_ms", "session_timeout_ms", "transaction_timeout_ms"),
        *("subscription_id", "client_instance_id", "process_id", "user_endpoint", "task_offsets", "task_end_offsets"),
    }
)
"""Ignored fields, by attribute."""

_GIVEN_OR_NOT: Final = frozenset({"member_id"})
"""Fields for which only the presence of a value counts."""

_SIGNED: Final = frozenset({"member_epoch", "session_epoch", "share_session_epoch"})
"""Fields for which only the sign counts: it shows whether a client joins, stays or leaves."""


def content_of(message: Message, version: int) -> Content:
    """Return the content of a message at a version."""
    return _struct(message, version)


def _struct(value: Struct, version: int) -> Mapping[str, Content]:
    return {
        info.attribute: _value(info, getattr(value, info.attribute), version)
        for info in fields(type(value))
        if version in info.versions and info.attribute not in _IGNORED
    }


def _value(info: FieldInfo, value: Any, version: int) -> Content:
    if info.attribute in _GIVEN_OR_NOT:
        return bool(value)
    if info.attribute in _SIGNED:
        return (value > 0) - (value < 0)
    if value is None:
        return None
    if info.element_type == "records":
        return _records(bytes(value))
    if info.struct is None:
        return list(value) if info.is_array else value
    return [_struct(each, version) for each in value] if info.is_array else _struct(value, version)


def _records(data: bytes) -> Content:
    """Return keys, values and headers, independent of batching. Damaged records are returned as bytes."""
    try:
        return [
            {"key": _bytes(record.key), "value": _bytes(record.value), "headers": list(record.headers)}
            for batch in read_batches(data)
            if isinstance(batch, RecordBatch)
            for record in batch.records()
        ]
    except KafkaMsgsError:
        return data


def _bytes(payload: Buffer | None) -> bytes | None:
    return None if payload is None else bytes(payload)


def differences(recorded: Content, asked: Content, path: str = "") -> Iterator[str]:
    """Yield the differences between two contents, such as ``topics[0].name: 'a' was recorded, 'b' is asked``."""
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for name in recorded.keys() & asked.keys():
            yield from differences(recorded[name], asked[name], f"{path}.{name}" if path else name)
    elif isinstance(recorded, list) and isinstance(asked, list):
        if len(recorded) != len(asked):
            yield f"{path}: {len(recorded)} were recorded, {len(asked)} are asked"
        for index, pair in enumerate(zip(recorded, asked, strict=False)):
            yield from differences(*pair, f"{path}[{index}]")
    elif recorded != asked:
        yield f"{path}: {recorded!r:.100} was recorded, {asked!r:.100} is asked"
