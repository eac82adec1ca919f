"""Recorded frames: the file format, and the matching of responses to requests.

A recording is a JSON-lines file. Its first line describes the recording; every other line is one frame: ``connection``
(from 1), ``direction`` (``request`` or ``response``), ``ms`` (milliseconds since the recording began) and ``bytes``
(hexadecimal, prefixed with the four size bytes, as on the wire).

``kafka_msgs.wire`` decides which response belongs to which request.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen

from kafka_msgs.wire import SIZE_BYTES, Correlation, MatchedPair, read_correlation_id, read_request_prefix

__all__ = [
    "REQUEST",
    "RESPONSE",
    "Direction",
    "Exchange",
    "Frame",
    "exchanges",
    "read_frames",
    "read_header",
    "write_lines",
]

Direction = Literal["request", "response"]

REQUEST: Final[Direction] = "request"
RESPONSE: Final[Direction] = "response"


@frozen
class Frame:
    """One size-prefixed message of a connection; ``ms`` counts from the start of the recording."""

    connection: int
    direction: Direction
    ms: float
    data: bytes

    @property
    def payload(self) -> bytes:
        """The frame without its size: header and body."""
        return self.data[SIZE_BYTES:]

    @property
    def correlation_id(self) -> int:
        """The number that a response repeats from its request."""
        if self.direction == REQUEST:
            return read_request_prefix(self.payload).correlation_id
        return read_correlation_id(self.payload)

    def to_json(self) -> dict[str, Any]:
        """Return the frame as a line of the file."""
        return {
            "connection": self.connection,
            "direction": self.direction,
            "ms": round(self.ms, 1),
            "bytes": self.data.hex(),
        }

    @classmethod
    def from_json(cls, line: dict[str, Any]) -> Frame:
        """Return the frame in a line that :meth:`to_json` wrote."""
        return cls(line["connection"], line["direction"], line["ms"], bytes.fromhex(line["bytes"]))


@frozen
class Exchange:
    """A request and its response."""

    request: Frame
    response: Frame

    @property
    def api_key(self) -> int:
        """The API key of the request."""
        return read_request_prefix(self.request.payload).api_key

    @property
    def api_version(self) -> int:
        """The version of both bodies."""
        return read_request_prefix(self.request.payload).version


def exchanges(frames: Iterable[Frame]) -> Iterator[Exchange]:
    """Match requests with their responses, in the order of the responses.

    Raises ``KeyError`` for a response without an earlier request on its connection. Omits requests without a response.
    """
    connections: defaultdict[int, Correlation[Frame, Frame]] = defaultdict(Correlation)
    for frame in frames:
        correlation = connections[frame.connection]
        if frame.direction == REQUEST:
            correlation.add_request(frame.payload, frame)
            continue
        answered = [each for each in correlation.add_response(frame.payload, frame) if isinstance(each, MatchedPair)]
        if not answered:
            raise KeyError(frame.correlation_id)
        yield Exchange(answered[0].question, frame)


def read_header(path: Path) -> dict[str, Any]:
    """Return the first line of a recording: format, Kafka release, clients, date, script."""
    with path.open(encoding="ascii") as lines:
        header: dict[str, Any] = json.loads(next(lines))
        return header


def read_frames(path: Path) -> Iterator[Frame]:
    """Return the frames of a recording, in recorded order."""
    with path.open(encoding="ascii") as lines:
        next(lines)
        for line in lines:
            yield Frame.from_json(json.loads(line))


def write_lines(path: Path, header: dict[str, Any], lines: Iterable[dict[str, Any]]) -> None:
    """Write a recording: the header, then one object per line."""
    text = "".join(json.dumps(line) + "\n" for line in (header, *lines))
    path.write_text(text, encoding="ascii")
