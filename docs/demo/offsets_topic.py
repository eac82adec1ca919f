"""Section: the broker's own records about its groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from textwrap import wrap

from docs.demo.presenter import Stage, columns, shorten
from docs.demo.recordings import Record
from kafka_msgs import Message, Versioned, fields

__all__ = ["show"]

_WHAT_WIDTH = 36
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
_Entry = tuple[Record, Versioned[Message], Versioned[Message] | None]


def show(stage: Stage) -> None:
    """Decode every record of the offsets topic, count by kind, and decode the nested data of a classic group."""
    stage.section(
        "Read the offsets topic",
        "A broker keeps its groups in the topic __consumer_offsets: a number in the key tells what the record is, a "
        "number in the value at which version it was written.",
    )
    stage.run(
        """
        from kafka_msgs import decode_versioned, message_class
        from docs.demo.recordings import read_records

        def typed(kind, part, data):
            cls = message_class(kind, f"coordinator-{part}", origin="group-coordinator")
            return data and decode_versioned(cls, data)

        records = list(read_records(recordings / "consumer_offsets.jsonl"))
        kinds = [int.from_bytes(record.key[:2], "big") for record in records]
        keys = [typed(kind, "key", record.key) for record, kind in zip(records, kinds)]
        values = [typed(kind, "value", record.value) for record, kind in zip(records, kinds)]
        """
    )
    _kinds(stage)
    _members(stage)


def _kinds(stage: Stage) -> None:
    names = stage.names
    entries: defaultdict[str, list[_Entry]] = defaultdict(list)
    for entry in zip(names["records"], names["keys"], names["values"], strict=True):
        entries[entry[1].message.INFO.name.removesuffix("Key")].append(entry)
    stage.say(
        f"All {len(names['records'])} records by kind, with the largest of each; "
        f"{names['values'].count(None)} are tombstones, which delete their key:"
    )
    rows = columns("kind", "all", "group", "v", "bytes", "what", numbers=("all", "v", "bytes"))
    for name, group in entries.items():
        rows.add_row(name, str(len(group)), *_example(group))
    stage.table(rows)


def _example(entries: list[_Entry]) -> Iterator[str]:
    """Yield group, version, size and content of the largest record."""
    record, key, value = max(entries, key=lambda entry: _size(entry[0]))
    yield str(getattr(key.message, fields(type(key.message))[0].attribute))
    yield "" if value is None else str(value.version)
    yield str(_size(record))
    facts = [*_facts(key.message)][1:] + ([*_facts(value.message)] if value is not None else ["tombstone"])
    text = ", ".join(shorten(fact, _WHAT_WIDTH - 1) for fact in facts)
    yield "\n".join(wrap(text, _WHAT_WIDTH, max_lines=2, placeholder=" …", break_on_hyphens=False))


def _size(record: Record) -> int:
    return len(record.key) + len(record.value or b"")


def _facts(message: Message) -> Iterator[str]:
    """Yield the content of a message, field by field: its non-empty values, and the number of its structs."""
    for info in fields(type(message)):
        value = getattr(message, info.attribute)
        if info.is_array and info.struct is not None and value:
            yield f"{len(value)}{_NO_BREAK_SPACE}{info.attribute}"
        elif value not in (None, "", (), b""):
            yield f"{info.attribute}={value}"


def _members(stage: Stage) -> None:
    stage.say(
        "A classic group's value holds the messages of its members to each other. The broker never opens their "
        "format; kafka-msgs does:"
    )
    stage.run(
        """
        from kafka_msgs import ConsumerProtocolAssignment, ConsumerProtocolSubscription
        member = values[1].message.members[0]
        subscription = decode_versioned(ConsumerProtocolSubscription, member.subscription)
        assignment = decode_versioned(ConsumerProtocolAssignment, member.assignment)
        """
    )
    stage.value(stage.names["subscription"])
    stage.value(stage.names["assignment"])
