"""A batch of each format and compression, damaged batches, and the results of reading them."""

from __future__ import annotations

import random
from collections.abc import Callable

from kafka_msgs.records import CompressionType, ControlType, Record
from kafka_msgs.records.record import RecordFaultError
from tests.support.batches import BatchSpec
from tests.support.control_records import MESSAGES, control_batch

RARE = b"\x00\x01\x7e\x7f\x80\xfe\xff"


def samples() -> list[bytes]:
    """Return a batch of each format and compression, with every feature of its format."""
    made = []
    for magic in (0, 1, 2):
        for codec in CompressionType:
            if magic < 2 and codec is CompressionType.ZSTD:
                continue
            time, headers = (-1 if magic == 0 else 70), (("h", b"x" * 65), ("h", None)) if magic == 2 else ()
            records = [Record(number, time, b"k" * number, None, headers) for number in range(5)]
            made.append(BatchSpec(magic, codec, (*records, Record(9000, time, None, b"v" * 200, headers))).written())
    return [*made, control_batch(ControlType.KRAFT_VOTERS, MESSAGES[ControlType.KRAFT_VOTERS])]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Draw the data with some bytes changed, removed or inserted."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        cut, put = chance.choice([(1, 1), (1, 1), (0, 1), (1, 0), (4, 4), (3, 0)])
        changed[at : at + cut] = bytes(chance.choice([*RARE, chance.randrange(256)]) for _ in range(put))
    return bytes(changed)


def outcome(work: Callable[[], object]) -> tuple[str, object]:
    """Return the result of ``work``, or the fault that it raises."""
    try:
        return "value", work()
    except RecordFaultError as fault:
        return "fault", (fault.at, fault.index, fault.reason)
