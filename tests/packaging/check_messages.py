"""Checks an installed kafka-msgs without extras: every message survives a round trip at every version."""

from __future__ import annotations

import sys
from random import Random

import kafka_msgs
from kafka_msgs.testing.random_values import random_message


def main() -> str | None:
    """Return the first message that does not come back unchanged, or None."""
    count = 0
    for cls in kafka_msgs.iter_message_classes():
        for version in cls.INFO.versions:
            message = random_message(cls, version, Random(count))
            if cls.decode(message.encode(version), version) != message:
                return f"{cls.__name__} v{version} does not survive a round trip"
            count += 1
    print(f"{sys.implementation.name}, {kafka_msgs.backend()}: {count} messages survive a round trip")
    return None


if __name__ == "__main__":
    sys.exit(main())
