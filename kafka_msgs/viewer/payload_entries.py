"""The bytes of an exchange for the page: both payloads and the decompressed contents of its batches, with lengths."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.faults import CaptureFault

__all__ = ["encode_entry", "encode_item"]

_LENGTH: Final = Struct(">i")


def encode_entry(request: bytes, response: bytes | None, contents: Sequence[bytes]) -> bytes:
    """Return the request, the response (length -1 for None), the number of contents, and the contents."""
    sides = [_LENGTH.pack(len(request)), request]
    sides += [_LENGTH.pack(-1)] if response is None else [_LENGTH.pack(len(response)), response]
    sides.append(_LENGTH.pack(len(contents)))
    for content in contents:
        sides += [_LENGTH.pack(len(content)), content]
    return b"".join(sides)


def encode_item(item: Item, contents: Sequence[bytes]) -> bytes:
    """Return the entry of an exchange. A fault has an empty request."""
    if isinstance(item, CaptureFault):
        return encode_entry(b"", None, ())
    return encode_entry(item.request.payload, item.response and item.response.payload, contents)
