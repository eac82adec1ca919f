"""librdkafka producers for the recording of a log directory; runs in an environment with confluent-kafka.

``log_directory.py HOST:PORT`` fills ``codecs`` with every compression and then with transactions, and ``prices``, which
is compacted and uses the broker's time, with repeated keys and a tombstone.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS = 30
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = {
    "codecs": {"internal.segment.bytes": "2500", "index.interval.bytes": "1"},
    "prices": {
        "cleanup.policy": "compact",
        "message.timestamp.type": "LogAppendTime",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "1000",
        "index.interval.bytes": "1",
    },
}


def create_topics(config: dict[str, Any]) -> None:
    topics = [
        NewTopic(name, num_partitions=1, replication_factor=1, config=settings) for name, settings in TOPICS.items()
    ]
    admin = AdminClient(config)
    for created in admin.create_topics(topics).values():
        created.result(SECONDS)


def every_codec(config: dict[str, Any]) -> None:
    for codec in COMPRESSIONS:
        settings = {"compression.type": codec, "enable.idempotence": codec in ("none", "lz4"), "linger.ms": 200}
        producer = Producer({**config, **settings})
        for number in range(6):
            headers = [("source", b"shop"), ("source", None), ("trace", f"{number:04x}".encode())]
            producer.produce(
                "codecs",
                key=f"{codec}-{number}",
                value=f"{number:>60}" if number % 3 else None,
                headers=headers if number % 2 else None,
                timestamp=1_700_000_000_000 + 1000 * number,
            )
        producer.produce("codecs", value=f"{codec} without a key", timestamp=1_700_000_009_000)
        producer.flush(SECONDS)


def transactions(config: dict[str, Any]) -> None:
    producer = Producer({**config, "transactional.id": "writer"})
    producer.init_transactions(SECONDS)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number in range(2):
            producer.produce("codecs", key=f"paid-{number}", value=end.__name__)
        # An abort drops unsent records, which then never reach the log.
        producer.flush(SECONDS)
        end(SECONDS)


def prices(config: dict[str, Any]) -> None:
    producer = Producer(config)
    for cents in (250, 300, 350):
        for item in ("mint", "oolong", "cocoa"):
            gone = item == "cocoa" and cents == 350
            producer.produce("prices", key=item, value=None if gone else str(cents))
        producer.flush(SECONDS)
        time.sleep(1.5)
    producer.produce("prices", key="mint", value="400")
    producer.flush(SECONDS)


def main(bootstrap: str) -> None:
    config = {"bootstrap.servers": bootstrap}
    create_topics(config)
    every_codec(config)
    transactions(config)
    prices(config)


if __name__ == "__main__":
    main(sys.argv[1])
