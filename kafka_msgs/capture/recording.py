"""Recorded exchanges: a file of JSON lines that keeps the bytes of each request and response.

This module owns the form. The first line says what the file is. Each other line is an exchange or a fault. Payloads are
hexadecimal, as ``kafka-msgs frame`` takes them. A line that is damaged is reported as a fault, and the next line is
read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from kafka_msgs.capture.connections import Connection, Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.exchanges import Exchange, Sent
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.lookup import MessageCatalog

__all__ = ["RECORDING_START", "is_recording", "read_recording", "recording_line", "recording_pieces", "recording_start"]

RECORDING_START: Final = b'{"format": "kafka-msgs exchanges 1"'
"""What the first line of a recording starts with."""

_LONGEST_LINE: Final = 2**30
"""The longest line in bytes that is read: more than two frames of 100 MB in hexadecimal form."""
_SKIPPED_AT_ONCE: Final = 2**20


def recording_start(facts: Mapping[str, Any]) -> str:
    """Return the first line of a recording, without its end; ``facts`` are about the whole recording."""
    return json.dumps({"format": "kafka-msgs exchanges 1", **facts})


def recording_line(item: Item, more: Mapping[str, Any] | None = None) -> str:
    """Return the line of an exchange or of a fault, without its end. See ``recording_pieces``."""
    return "".join(recording_pieces(item, more))


def recording_pieces(item: Item, more: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the pieces of the line of an exchange or of a fault, without its end, ready for ``writelines``.

    The payloads are pieces of their own: they are large, and joining them would copy them once more. ``more`` are facts
    for people and other programs. ``read_recording`` does not need them.
    """
    if isinstance(item, CaptureFault):
        yield json.dumps({**_fault(item), **(more or {})})
    else:
        yield from _exchange(item, more)


def is_recording(file: BinaryIO) -> bool:
    """Whether a file is a recording. The position in the file stays what it was."""
    start = file.read(len(RECORDING_START))
    file.seek(-len(start), 1)
    return start == RECORDING_START


def read_recording(file: BinaryIO, *, catalog: MessageCatalog | None = None) -> Iterator[Item]:
    """Yield the exchanges and faults of a recording, and a fault for each line that is neither.

    ``packet`` of an exchange and of a fault is the number of its line, from 1. ``catalog`` has the message classes, by
    default the release's.
    """
    number = 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if number == 1 and line.startswith(RECORDING_START):
            continue
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            yield _damaged(number, _skip_line(file) + len(line), f"a line of more than {_LONGEST_LINE} bytes")
            continue
        try:
            yield _item(json.loads(line), number, catalog)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            yield _damaged(number, len(line), f"not an exchange: {type(error).__name__}: {error}")


def _exchange(exchange: Exchange, more: Mapping[str, Any] | None) -> Iterator[str]:
    facts = {
        "kind": "exchange",
        **_connection(exchange.connection),
        "apiKey": exchange.api_key,
        "version": exchange.version,
        "correlationId": exchange.correlation_id,
        **(more or {}),
    }
    yield f'{json.dumps(facts)[:-1]}, "request": '
    yield from _sent(exchange.request)
    yield ', "response": '
    yield from ("null",) if exchange.response is None else _sent(exchange.response)
    yield "}"


def _fault(fault: CaptureFault) -> dict[str, Any]:
    return {
        "kind": "fault",
        **(_connection(fault.connection) if fault.connection else {}),
        "fault": fault.kind.value,
        "direction": fault.direction,
        "at": fault.at,
        "size": fault.size,
        "reason": fault.reason,
    }


def _connection(connection: Connection) -> dict[str, Any]:
    return {"connection": connection.number, "client": [*connection.client], "server": [*connection.server]}


def _sent(sent: Sent) -> Iterator[str]:
    """Yield one side as JSON. The payload is not given to ``json``, which would look at each of its characters."""
    missing = {"missing": sent.missing} if sent.missing else {}
    facts = {"at": sent.at, "size": sent.size, **missing}
    yield f'{json.dumps(facts)[:-1]}, "bytes": "'
    yield sent.payload.hex()
    yield '"}'


def _item(line: dict[str, Any], number: int, catalog: MessageCatalog | None) -> Item:
    if line["kind"] == "fault":
        return CaptureFault(
            kind=FaultKind(line["fault"]),
            reason=str(line["reason"]),
            size=_number(line["size"]),
            at=None if line["at"] is None else _number(line["at"]),
            packet=number,
            connection=_connection_of(line) if "connection" in line else None,
            direction=line["direction"] if line["direction"] in ("request", "response") else None,
        )
    if line["kind"] != "exchange":
        raise ValueError(f"the kind is {line['kind']!r}")
    return Exchange(
        connection=_connection_of(line),
        api_key=_number(line["apiKey"]),
        version=_number(line["version"]),
        correlation_id=_number(line["correlationId"]),
        request=_sent_of(line["request"], number),
        response=line["response"] and _sent_of(line["response"], number),
        catalog=catalog,
    )


def _connection_of(line: dict[str, Any]) -> Connection:
    ends = (Endpoint(str(line[end][0]), _number(line[end][1])) for end in ("client", "server"))
    return Connection(_number(line["connection"]), *ends)


def _sent_of(sent: dict[str, Any], number: int) -> Sent:
    payload = bytes.fromhex(sent["bytes"])
    missing = _number(sent.get("missing", 0))
    size = _number(sent["size"])
    if not 0 <= missing <= size or (not missing and size != len(payload)):
        raise ValueError(f"{size} bytes are stated, {len(payload)} are there, and {missing} are missing")
    return Sent(payload=payload, size=size, missing=missing, at=_number(sent["at"]), packet=number)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r:.100} is not a whole number")
    return value


def _damaged(number: int, size: int, reason: str) -> CaptureFault:
    return CaptureFault(kind=FaultKind.FILE, reason=f"line {number}: {reason}", size=size)


def _skip_line(file: BinaryIO) -> int:
    """Go to the end of a line, keeping little of it; return how many bytes that were."""
    skipped = 0
    while piece := file.readline(_SKIPPED_AT_ONCE):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped
