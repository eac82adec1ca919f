"""Records, and their property: both implementations agree, and encode decoded records alike.

The first byte of an input chooses how the rest is read, the second the number of records; the rest contains the
records. Seeds are batches with all features of records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafka_msgs.binary_layouts import LENGTH_AND_OFFSET_STRUCT, RecordField
from kafka_msgs.records import Record, native, python
from tests.support.damaged_batches import outcome, samples

__all__ = ["MAX_SIZE", "check", "seeds"]

MAX_SIZE: Final = 2048
"""The maximum input size in bytes: enough for a buffer that grows, and for sizes of three bytes."""

_HEAD: Final = 2
_PARTS: Final = tuple(RecordField)
_BATCH_HEAD: Final = 61
_BASES: Final = (0, 2**40, 2**63 - 1, -(2**63))


def seeds() -> Iterator[bytes]:
    """Yield the initial inputs."""
    for sample in samples():
        if sample[16] == 2:
            count = int.from_bytes(sample[57:61], "big")
            for choice in range(0, 256, 5):
                yield bytes((choice, count)) + sample[_BATCH_HEAD:]


def check(data: bytes) -> None:
    """Check the property for one input of the fuzzer; raises ``AssertionError`` if it is violated."""
    if len(data) < _HEAD:
        return
    choice, part = divmod(data[0], len(_PARTS))
    base, body = _BASES[choice % 4], data[_HEAD:]
    times = (base, 17 if choice & 4 else None)
    place: tuple[Any, ...] = (_PARTS[part], body, 0, len(body), data[1], base, *times, bool(choice & 8))
    expected = outcome(lambda: python.read(*place))
    found = outcome(lambda: native.read(*place))
    assert found == expected, f"c: {found}; python: {expected}"
    if expected[0] == "value" and _PARTS[part] is RecordField.RECORDS:
        records: Any = expected[1]
        ways = [outcome(lambda: _written(module, records)) for module in (native, python)]  # noqa: B023
        assert ways[0] == ways[1], ways


def _written(module: Any, records: list[Record]) -> object:
    """Append decoded records, whose offsets and timestamps may not fit; return the outcome of each, and the batch."""
    collector = module.RecordAppender(0, 2**31 - 1, None, 1500)
    outcomes = []
    for each in records:
        given = {"timestamp": each.timestamp, "headers": each.headers, "offset": each.offset}
        try:
            outcomes.append(collector.append(each.key, each.value, **given))
        except ValueError as refused:
            outcomes.append(str(refused))
    head = bytearray(_BATCH_HEAD)
    head[8:12] = (_BATCH_HEAD - LENGTH_AND_OFFSET_STRUCT + collector.size).to_bytes(4, "big")
    return outcomes, collector.sealed(bytes(head))
