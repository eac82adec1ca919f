"""Messages, and their property: all executors agree, and encode decoded messages to the same bytes.

The first two bytes of an input choose a message at a version, the third the options and the kind of call; the rest is
decoded. Seeds are the bytes of the vectors, including invalid ones, and some larger messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from kafka_msgs import DescribeGroupsRequest, iter_message_classes
from kafka_msgs.codec import DEFAULT_OPTIONS, CodecOptions, DecodeBudget
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.testing.random_values import random_message
from tests.support.codecs import codec
from tests.support.damage import outcome, same
from tests.vectors.files import Invalid, Valid, read_all

__all__ = ["MAX_SIZE", "check", "seeds"]

PAIRS: Final[list[tuple[Any, int]]] = [
    (cls, version)
    for cls in sorted(iter_message_classes(), key=lambda cls: cls.INFO.name)
    for version in cls.INFO.versions
]
"""All messages at all versions; the index in this list is the number in inputs."""

HEAD: Final = 3
"""The number of bytes that choose how the rest is processed."""

MAX_SIZE: Final = 4096
"""The maximum input size in bytes: enough for output beyond the first buffer, and for arrays that grow twice."""

_OPTIONS: Final = (
    DEFAULT_OPTIONS,
    CodecOptions(memoryview_records=True),
    CodecOptions(utf8_errors="surrogateescape"),
    CodecOptions(utf8_errors="replace"),
    CodecOptions(budget=DecodeBudget(elements=3, bytes=40)),
    CodecOptions(budget=DecodeBudget(depth=2)),
)
_PREFIX: Final = b"\xa5\x5a\x80"
_LARGE: Final = DescribeGroupsRequest(groups=("",) * 1500)
"""An array longer than the initial allocation for an array count."""

_FAST: Final = [name for name in EXECUTORS if name != "reference"]


def seeds() -> Iterator[bytes]:
    """Yield the initial inputs."""
    for vectors in read_all():
        both: tuple[Valid | Invalid, ...] = (*vectors.valid, *vectors.invalid)
        for vector in both:
            yield head(vectors.message, vector.version) + bytes.fromhex(vector.hex)
    for cls, version in PAIRS:
        if version == cls.INFO.versions.highest:
            message = random_message(cls, version, Random(cls.__name__), max_elements=6)
            yield head(cls.INFO.name, version) + message.encode(version)
    yield head("DescribeGroupsRequest", 0) + _LARGE.encode(0)


def head(name: str, version: int) -> bytes:
    """Return the bytes that choose a message at a version, with default options."""
    number = next(i for i, (cls, known) in enumerate(PAIRS) if (cls.INFO.name, known) == (name, version))
    return number.to_bytes(2, "big") + b"\0"


def check(data: bytes) -> None:
    """Check the property for one input of the fuzzer; raises ``AssertionError`` if it is violated."""
    if len(data) < HEAD:
        return
    cls, version = PAIRS[int.from_bytes(data[:2], "big") % len(PAIRS)]
    at_offset, choice = divmod(data[2], 128)
    options = _OPTIONS[choice % len(_OPTIONS)]
    expected = _decode("reference", cls, version, options, data[HEAD:], at_offset)
    for name in _FAST:
        found = _decode(name, cls, version, options, data[HEAD:], at_offset)
        assert same(found, expected), f"{name}: {found}; reference: {expected}"
    if expected[0] == "value":
        _check_writing(cls, version, options, expected[1][0] if at_offset else expected[1])


def _decode(name: str, cls: Any, version: int, options: CodecOptions, data: bytes, at_offset: int) -> tuple[str, Any]:
    """Decode all of ``data``, or read it after a prefix from a mutable buffer."""
    functions = codec(name, cls, version, options)
    if not at_offset:
        return outcome(functions.decode, data)
    return outcome(lambda buffer: functions.read(buffer, len(_PREFIX)), bytearray(_PREFIX + data))


def _check_writing(cls: Any, version: int, options: CodecOptions, message: Any) -> None:
    """Check that all executors encode or refuse a decoded message alike: replaced text may have become too long."""
    expected = outcome(codec("reference", cls, version, options).encode, message)
    for name in _FAST:
        assert outcome(codec(name, cls, version, options).encode, message) == expected, name
    if expected[0] == "value":
        lenient = CodecOptions(utf8_errors=options.utf8_errors)
        for name in EXECUTORS:
            again = codec(name, cls, version, lenient).decode(expected[1])
            assert codec(name, cls, version, lenient).encode(again) == expected[1], name
