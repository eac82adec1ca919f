"""Functions for Kafka's variable-length integers and UUIDs.

The module ``struct`` does not support these integers. A fast conversion from 16 bytes to a ``UUID`` is also included.
The functions raise ``ValueError`` or ``IndexError``. The codec raises errors with the path in a message instead.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID, SafeUUID

ZERO_UUID: Final = UUID(int=0)
"""The UUID that Kafka uses for "no id"."""

MAX_UINT32: Final = 0xFFFFFFFF

_ZERO_BYTES: Final = bytes(16)
_new = object.__new__
_set_int = UUID.__dict__["int"].__set__
_set_is_safe = UUID.__dict__["is_safe"].__set__


def read_uvarint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits; return the value and the position after it.

    Raises ``IndexError`` if the buffer ends first, and ``ValueError`` for more than five bytes or 32 bits.

    >>> read_uvarint(bytes.fromhex("8001ff"), 0)
    (128, 2)
    """
    result = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            if result > MAX_UINT32:
                raise ValueError("varint of more than 32 bits")
            return result, position
        shift += 7
        if shift == 35:
            raise ValueError("varint of more than five bytes")


def write_uvarint(value: int) -> bytes:
    """Return the shortest unsigned varint of a non-negative integer.

    >>> write_uvarint(300).hex()
    'ac02'
    """
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE: Final = [bytes([value]) for value in range(0x80)]


def uuid_from_bytes(raw: bytes) -> UUID:
    """Return the UUID of 16 bytes, most significant first; all zeros return the shared ``ZERO_UUID``.

    Fills the slots of ``UUID`` directly: the constructor's argument handling takes longer than decoding a message.
    """
    if raw == _ZERO_BYTES:
        return ZERO_UUID
    value = _new(UUID)
    _set_int(value, int.from_bytes(raw, "big"))
    _set_is_safe(value, SafeUUID.unknown)
    return value
