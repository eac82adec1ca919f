"""Checks an installed kafka-msgs: that a certain executor runs, and that every message comes through it whole.

    python check_install.py c|python

It needs nothing but the installation, and its status is 1 when something is wrong: wheels are tested with it.
"""

from __future__ import annotations

import sys
from random import Random

import kafka_msgs
from kafka_msgs.records.loops import loops
from kafka_msgs.testing.random_values import random_message


def main(expected: str) -> str | None:
    """Return what is wrong, or None."""
    if kafka_msgs.backend() != expected:
        return f"this installation runs {kafka_msgs.backend()}, not {expected}"
    if loops().name != expected:
        return f"this installation reads records in {loops().name}, not {expected}"
    count = 0
    for cls in kafka_msgs.message_classes():
        for version in {cls.INFO.versions.lowest, cls.INFO.versions.highest}:
            message = random_message(cls, version, Random(count))
            if cls.decode(message.encode(version), version) != message:
                return f"{cls.__name__} v{version} does not come back as it was"
            count += 1
    print(f"{expected}: {count} messages came back as they were")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
