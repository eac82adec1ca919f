"""Checks an installed kafka-msgs: all of it runs on one backend, and every message round-trips.

    python check_install.py c|python

Requires the installation and pyarrow, and exits with status 1 on failure: wheel builds run it. It does not rely on the
library's own report of its backend, but counts calls of the C core while the library works.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import kafka_msgs
from kafka_msgs.codec import codec_for
from kafka_msgs.columns import decode_column, read_record_table
from kafka_msgs.log.summary import read_summary
from kafka_msgs.records import BatchBuilder, read_batches
from kafka_msgs.testing.random_values import random_message

CORE: Final = "kafka_msgs._core"


def core_calls(work: Callable[[], object]) -> set[str]:
    """Return the functions of the C core called by ``work``."""
    found = set()

    def note(frame: object, event: str, called: Any) -> None:
        if event == "c_call":
            module = called.__module__ or type(called.__self__).__module__
            if module.startswith(CORE):
                found.add(called.__qualname__)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def a_batch() -> bytes:
    builder = BatchBuilder()
    for number in range(9):
        builder.append(b"key", b"%d" % number)
    return builder.build()


def count() -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "00000000000000000000.log")
        file.write_bytes(a_batch())
        assert read_summary(file).records == 9


CODEC: Final = codec_for(kafka_msgs.OffsetFetchRequest, 2)
MESSAGE: Final = kafka_msgs.OffsetFetchRequest(group_id="billing", topics=None)
WORK: Final[dict[str, tuple[Callable[[], object], set[str]]]] = {
    "encoding a message": (lambda: CODEC.encode(MESSAGE), {"Codec.encode"}),
    "decoding a message": (lambda: CODEC.decode(CODEC.encode(MESSAGE)), {"Codec.decode"}),
    "writing records": (a_batch, {"RecordAppender.append"}),
    "reading records": (lambda: list(next(iter(read_batches(a_batch())))), {"read_records"}),
    "a column of messages": (
        lambda: decode_column([MESSAGE.encode(2)], kafka_msgs.OffsetFetchRequest, 2),
        {"ColumnProgram.decode"},
    ),
    "a table of records": (lambda: list(read_record_table(a_batch())), {"RecordColumns.append"}),
    "the scan of a log file": (count, {"count_batches"}),
}
"""Library operations, and the C core functions that they use."""


def run(expected: str) -> str | None:
    """Return an operation that runs on an unexpected backend, or None."""
    if kafka_msgs.backend() != expected:
        return f"this installation runs {kafka_msgs.backend()}, not {expected}"
    for name, (work, functions) in WORK.items():
        called = core_calls(work)
        if called if expected != "c" else not functions <= called:
            return f"{name} does not run on {expected}: it calls {called or 'nothing'} of the C core"
    return None


def main(expected: str) -> str | None:
    """Return an error, or None."""
    wrong = run(expected)
    if wrong:
        return wrong
    count = 0
    for cls in kafka_msgs.iter_message_classes():
        for version in {cls.INFO.versions.lowest, cls.INFO.versions.highest}:
            message = random_message(cls, version, Random(count))
            if cls.decode(message.encode(version), version) != message:
                return f"{cls.__name__} v{version} does not come back as it was"
            count += 1
    print(f"{expected}: {count} messages came back as they were")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
