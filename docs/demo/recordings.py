"""Reader for the recordings in the demonstration: frames between clients and a broker, and records of a topic.

A recording is a file of JSON lines after a first line that describes its origin. Bytes are hexadecimal; the bytes of a
frame begin with its size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka_msgs.wire import SIZE_BYTES, read_correlation_id, read_request_prefix

__all__ = ["Exchange", "Frame", "Record", "about", "read_exchanges", "read_records"]

_REQUEST: Final = "request"


class Frame(NamedTuple):
    """A frame: ``ms`` since the recording began, and its bytes, which begin with the size of the payload."""

    connection: int
    ms: float
    data: bytes

    @property
    def payload(self) -> bytes:
        """The bytes after the size: header and message."""
        return self.data[SIZE_BYTES:]


class Exchange(NamedTuple):
    """A request and its response, with the API key and version of the request."""

    api_key: int
    api_version: int
    request: Frame
    response: Frame


class Record(NamedTuple):
    """A record of a topic; a ``value`` of None deletes the key."""

    key: bytes
    value: bytes | None


def about(path: Path) -> dict[str, Any]:
    """Return the metadata in the first line of a recording: release, clients, date, script."""
    with path.open(encoding="ascii") as lines:
        facts: dict[str, Any] = json.loads(next(lines))
    return facts


def read_exchanges(path: Path) -> Iterator[Exchange]:
    """Yield the exchanges of a recording, in the order of their responses, without unanswered requests."""
    waiting: dict[tuple[int, int], tuple[int, int, Frame]] = {}
    for line in _lines(path):
        frame = Frame(line["connection"], line["ms"], bytes.fromhex(line["bytes"]))
        if line["direction"] == _REQUEST:
            prefix = read_request_prefix(frame.payload)
            waiting[frame.connection, prefix.correlation_id] = prefix.api_key, prefix.version, frame
        else:
            correlation_id = read_correlation_id(frame.payload)
            yield Exchange(*waiting.pop((frame.connection, correlation_id)), frame)


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a recording, in the order of the log."""
    for line in _lines(path):
        yield Record(bytes.fromhex(line["key"]), None if line["value"] is None else bytes.fromhex(line["value"]))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="ascii") as lines:
        next(lines)
        yield from map(json.loads, lines)
