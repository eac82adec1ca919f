"""A transactional client for the recording of internal topics; runs in an environment with confluent-kafka.

``transactions.py HOST:PORT`` runs three transactions that commit offsets for a group: the first commits, the second
aborts, and the third is still open when the process ends, so the coordinator aborts it after its timeout.
"""

from __future__ import annotations

import os
import sys

from confluent_kafka import Consumer, Producer, TopicPartition

TOPIC = "orders"
GROUP = "billing"
SECONDS = 30


def transaction(producer: Producer, consumer: Consumer, offset: int) -> None:
    producer.begin_transaction()
    for number in range(2):
        producer.produce(TOPIC, key=f"order-{offset + number}", value=b'{"paid":true}', partition=number)
    offsets = [TopicPartition(TOPIC, 0, offset), TopicPartition(TOPIC, 1, offset + 1)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)
    producer.flush(SECONDS)


def main(bootstrap: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "billing-writer"})
    producer.init_transactions(SECONDS)
    transaction(producer, consumer, 2)
    producer.commit_transaction(SECONDS)
    transaction(producer, consumer, 4)
    producer.abort_transaction(SECONDS)
    late = Producer({"bootstrap.servers": bootstrap, "transactional.id": "billing-late"})
    late.init_transactions(SECONDS)
    transaction(late, consumer, 6)
    # Neither close nor destroy it: either would abort the transaction.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
