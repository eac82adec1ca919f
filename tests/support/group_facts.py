"""Hard state of a shard as plain values for comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import fields, has

from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.coordinator import PROTOCOLS
from kafka_msgs.groups.group import OffsetAndPosition
from kafka_msgs.groups.operation import ShardState
from kafka_msgs.groups.runtime.undo_log import WITHOUT_UNDO, Applier
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.message import Message

__all__ = ["compacted", "facts", "replayed"]

_NOT_RECORDED: Final = frozenset(
    {"soft", "configured", "refined", "targets_version", "simple_group", "position", "producer_id", "now", "written_ms"}
)
"""Attributes that are soft state, or derive from hard state and the topics of the cluster."""

_APPLIERS: Final[dict[type[Message], Applier]] = {
    cls: applier for protocol in PROTOCOLS for cls, applier in protocol.appliers.items()
}


def facts(thing: Any) -> Any:
    """Return part of the state as plain values: unordered dicts, and the attributes of objects."""
    if isinstance(thing, OffsetAndPosition):
        return thing.value
    if isinstance(thing, dict):
        return {key: facts(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [facts(each) for each in thing]
    if isinstance(thing, Message) or not type(thing).__module__.startswith("kafka_msgs.groups"):
        return thing
    named = {name: facts(getattr(thing, name)) for name in _attributes(thing) if name not in _NOT_RECORDED}
    return {"": type(thing).__name__, **named}


def _attributes(thing: Any) -> Iterator[str]:
    if has(type(thing)):
        yield from (each.name for each in fields(type(thing)))
        return
    for cls in type(thing).__mro__:
        slots = getattr(cls, "__slots__", ())
        yield from (name for name in slots if not name.startswith("__") and hasattr(thing, name))


def replayed(log: Iterable[TopicRecord | TransactionEnd]) -> ShardState:
    """Return the state that the appliers alone build from the records of a log."""
    state = ShardState(ClassicGroup)
    for position, record in enumerate(log):
        if isinstance(record, TransactionEnd):
            for protocol in PROTOCOLS:
                if protocol.apply_end_transaction is not None:
                    protocol.apply_end_transaction(state, WITHOUT_UNDO, record.producer_id, record.committed)
        else:
            assert record.key is not None
            state.position, state.producer_id = position, record.producer_id
            _APPLIERS[type(record.key)](state, WITHOUT_UNDO, record.key, record.value)
    return state


def compacted(log: Iterable[TopicRecord | TransactionEnd]) -> list[TopicRecord | TransactionEnd]:
    """Return a log as after compaction: the last record of each key, and only the tombstones that are still needed.

    Records of keys that transactions wrote remain, as do all tombstones of a log with such records.
    """
    records = list(log)
    latest: dict[Any, int] = {}
    left_alone: set[Any] = set()
    for position, record in enumerate(records):
        if isinstance(record, TopicRecord):
            latest[record.key] = position
            if record.producer_id >= 0:
                left_alone.add(record.key)
    return [
        record
        for position, record in enumerate(records)
        if isinstance(record, TransactionEnd)
        or record.key in left_alone
        or (latest[record.key] == position and (record.value is not None or left_alone))
    ]
