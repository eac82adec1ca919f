"""Recorded exchanges: a file of JSON lines that contains the bytes of each request and response.

This module defines the format. The first line identifies the file. Each other line is an exchange or a fault. Payloads
are hexadecimal, like the input of ``kafka-msgs frame``; alternatively the raw payloads follow the line, request first.
Damaged lines are reported as a fault, and reading continues with the next exchange or fault.
"""

from __future__ import annotations

import json
from binascii import hexlify
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from attrs import evolve

from kafka_msgs.capture.connections import CapturedConnection, Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.exchanges import CapturedPayload, Exchange
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.catalog import MessageCatalog

__all__ = ["RECORDING_START", "is_recording", "read_recording", "recording_line", "recording_pieces", "recording_start"]

RECORDING_START: Final = b'{"format": "kafka-msgs exchanges 1"'
"""The start of the first line of a recording."""

_LONGEST_LINE: Final = 2**30
"""The maximum line length in bytes: more than two frames of 100 MB in hexadecimal."""
_SKIPPED_AT_ONCE: Final = 2**20
_READ_AT_ONCE: Final = 2**20


def recording_start(facts: Mapping[str, Any]) -> str:
    """Return the first line of a recording, without its line end; ``facts`` describe the whole recording."""
    return json.dumps({"format": "kafka-msgs exchanges 1", **facts})


def recording_line(item: Item, more: Mapping[str, Any] | None = None) -> str:
    """Return the line of an exchange or a fault, without its line end. See ``recording_pieces``."""
    return b"".join(recording_pieces(item, more)).decode("ascii").removesuffix("\n")


def recording_pieces(item: Item, more: Mapping[str, Any] | None = None, *, raw: bool = False) -> Iterator[bytes]:
    """Yield the pieces of the line of an exchange or a fault, with its line end, for ``writelines``.

    Payloads are separate pieces, which avoids copying large payloads. ``more`` contains additional facts for people and
    other programs; ``read_recording`` ignores them. With ``raw`` the payloads follow the line unencoded, which halves
    their size and is several times faster.
    """
    if isinstance(item, CaptureFault):
        yield _json({**_fault(item), **(more or {})})
    else:
        yield from _exchange(item, more, raw)
    yield b"\n"
    if raw and isinstance(item, Exchange):
        yield from (sent.payload for sent in (item.request, item.response) if sent is not None)


def is_recording(file: BinaryIO) -> bool:
    """Return whether a file is a recording. The file position stays unchanged."""
    start = file.read(len(RECORDING_START))
    file.seek(-len(start), 1)
    return start == RECORDING_START


def read_recording(file: BinaryIO, *, catalog: MessageCatalog | None = None) -> Iterator[Item]:
    """Yield the exchanges and faults of a recording, and a fault for lines that are neither.

    ``packet`` of an exchange or a fault is the number of its line, from 1, not counting payloads after a line.
    Consecutive damaged lines are one fault. ``catalog`` contains the message classes, by default the release's.
    """
    number = 0
    damaged: CaptureFault | None = None
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if number == 1 and line.startswith(RECORDING_START):
            continue
        item = _item_of(file, line, number, catalog)
        if isinstance(item, CaptureFault) and item.packet is None:  # The fault is not a recorded one.
            damaged = item if damaged is None else evolve(damaged, size=damaged.size + item.size)
            continue
        if damaged is not None:
            yield damaged
            damaged = None
        yield item
    if damaged is not None:
        yield damaged


def _item_of(file: BinaryIO, line: bytes, number: int, catalog: MessageCatalog | None) -> Item:
    """Return the item in a line and its following payloads."""
    if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
        return _damaged(number, _skip_line(file) + len(line), f"a line of more than {_LONGEST_LINE} bytes")
    try:
        return _item(json.loads(line), number, file, catalog)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return _damaged(number, len(line), f"not an exchange: {type(error).__name__}: {error}")


def _exchange(exchange: Exchange, more: Mapping[str, Any] | None, raw: bool) -> Iterator[bytes]:
    facts = {
        "kind": "exchange",
        **_connection(exchange.connection),
        "apiKey": exchange.api_key,
        "version": exchange.version,
        "correlationId": exchange.correlation_id,
        **(more or {}),
    }
    yield _json(facts)[:-1] + b', "request": '
    yield from _sent(exchange.request, raw)
    yield b', "response": '
    yield from (b"null",) if exchange.response is None else _sent(exchange.response, raw)
    yield b"}"


def _json(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")


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


def _connection(connection: CapturedConnection) -> dict[str, Any]:
    return {"connection": connection.number, "client": [*connection.client], "server": [*connection.server]}


def _sent(sent: CapturedPayload, raw: bool) -> Iterator[bytes]:
    """Yield one side as JSON. The payload bypasses ``json``, which would check each of its characters."""
    missing = {"missing": sent.missing} if sent.missing else {}
    facts = _json({"at": sent.time_us, "size": sent.size, **missing})
    if raw:
        yield facts
        return
    yield facts[:-1] + b', "bytes": "'
    yield hexlify(sent.payload)
    yield b'"}'


def _item(line: dict[str, Any], number: int, file: BinaryIO, catalog: MessageCatalog | None) -> Item:
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
        request=_sent_of(line["request"], number, file),
        response=line["response"] and _sent_of(line["response"], number, file),
        catalog=catalog,
    )


def _connection_of(line: dict[str, Any]) -> CapturedConnection:
    ends = (Endpoint(str(line[end][0]), _number(line[end][1])) for end in ("client", "server"))
    return CapturedConnection(_number(line["connection"]), *ends)


def _sent_of(sent: dict[str, Any], number: int, file: BinaryIO) -> CapturedPayload:
    missing = _number(sent.get("missing", 0))
    size = _number(sent["size"])
    if not 0 <= missing <= size:
        raise ValueError(f"{size} bytes are stated, and {missing} are missing")
    payload = bytes.fromhex(sent["bytes"]) if "bytes" in sent else _following(file, size - missing)
    if not missing and len(payload) != size:
        raise ValueError(f"{size} bytes are stated, {len(payload)} are there")
    return CapturedPayload(payload=payload, size=size, missing=missing, time_us=_number(sent["at"]), packet=number)


def _following(file: BinaryIO, size: int) -> bytes:
    """Return the next bytes of a file. They are read in pieces, because a line may state more bytes than exist."""
    pieces: list[bytes] = []
    left = size
    while left:
        piece = file.read(min(left, _READ_AT_ONCE))
        if not piece:
            raise ValueError(f"the file ends {left} bytes before the end of a payload of {size} bytes")
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r:.100} is not a whole number")
    return value


def _damaged(number: int, size: int, reason: str) -> CaptureFault:
    return CaptureFault(kind=FaultKind.FILE, reason=f"line {number}: {reason}", size=size)


def _skip_line(file: BinaryIO) -> int:
    """Skip to the end of a line with little memory; return the number of bytes."""
    skipped = 0
    while piece := file.readline(_SKIPPED_AT_ONCE):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped
