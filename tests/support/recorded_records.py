"""Recorded records of an internal topic: one JSON object per line, after a line that describes the recording.

Each object contains ``partition``, ``offset``, ``timestamp`` (milliseconds since the epoch), and ``key`` and ``value``
in hexadecimal; a null value is a tombstone. kafka_msgs decodes the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from kafka_msgs.internal_topics.records import InternalRecord, decode_record
from kafka_msgs.internal_topics.replay import TransactionEnd
from tests.support.recordings import INTERNAL_TOPICS

__all__ = ["Line", "Record", "read_lines", "read_records", "record_of"]

Line = dict[str, Any]
"""One record line of an internal topic's recording."""


@frozen
class Record:
    """One record of a log; ``value`` is None for a tombstone, which deletes its key."""

    partition: int
    offset: int
    timestamp: int
    key: bytes
    value: bytes | None

    @classmethod
    def from_json(cls, line: dict[str, Any]) -> Record:
        """Return the record in a line of a recording."""
        value = None if line["value"] is None else bytes.fromhex(line["value"])
        return cls(line["partition"], line["offset"], line["timestamp"], bytes.fromhex(line["key"]), value)


def read_records(path: Path) -> Iterator[Record]:
    """Return the records of a recording, in log order."""
    with path.open(encoding="ascii") as lines:
        next(lines)
        for line in lines:
            yield Record.from_json(json.loads(line))


def read_lines(path: Path = INTERNAL_TOPICS) -> list[Line]:
    """Return the lines of a recording after its header."""
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()[1:]]


def record_of(line: Line) -> InternalRecord | TransactionEnd:
    """Return the decoded record or marker of a line."""
    if "marker" in line:
        return TransactionEnd(producer_id=line["producer_id"], committed=line["marker"] == "commit")
    key, value = (None if line[part] is None else bytes.fromhex(line[part]) for part in ("key", "value"))
    return decode_record(line["topic"], key, value, producer_id=line.get("producer_id", -1))
