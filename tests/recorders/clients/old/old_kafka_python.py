"""A session of an old kafka-python: it produces, reads in a group, and commits.

``old_kafka_python.py HOST:PORT CLIENT_ID [VERSION]``: with a release of Kafka such as 0.10.0, the client uses the
versions of that release without asking the broker.
"""

from __future__ import annotations

import sys
import time

from kafka import KafkaConsumer, KafkaProducer

SECONDS = 20


def main(bootstrap: str, client_id: str, version: str | None = None) -> None:
    api_version = None if version is None else tuple(map(int, version.split(".")))
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=client_id, api_version=api_version)
    for number in range(3):
        producer.send(client_id, b"order %d" % number).get(timeout=SECONDS)
    producer.close(timeout=5)
    consumer = KafkaConsumer(
        client_id,
        bootstrap_servers=bootstrap,
        client_id=client_id,
        api_version=api_version,
        group_id=client_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    deadline, found = time.monotonic() + SECONDS, 0
    while found < 3:
        found += sum(map(len, consumer.poll(timeout_ms=500).values()))
        if time.monotonic() > deadline:
            raise SystemExit("no records arrived")
    consumer.commit()
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
