"""Count words: read lines from one topic and write the running count of each word to another.

``python -m word_count localhost:9092`` runs it until it is stopped.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

LINES = "lines"
COUNTS = "counts"
GROUP = "word-count"


async def count_words(servers: str, *, lines: str = LINES, counts: str = COUNTS, most: int | None = None) -> None:
    """Count the words of a topic. Stop after ``most`` lines; None means no limit.

    The count starts from the counts written earlier. A line is committed after its counts are written.
    """
    consumer = AIOKafkaConsumer(
        lines, bootstrap_servers=servers, group_id=GROUP, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    async with consumer, AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as producer:
        seen = await read_counts(servers, counts)
        read = 0
        while most is None or read < most:
            line = await consumer.getone()
            words = line.value.decode().lower().split()
            seen.update(words)
            sent = [await producer.send(counts, key=word.encode(), value=b"%d" % seen[word]) for word in set(words)]
            await asyncio.gather(*sent)
            await consumer.commit()
            read += 1


async def read_counts(servers: str, counts: str = COUNTS) -> Counter[str]:
    """Return the last count of each word in a topic."""
    seen: Counter[str] = Counter()
    async with AIOKafkaConsumer(counts, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        while any([await consumer.position(each) < end for each, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    seen[record.key.decode()] = int(record.value)
    return seen


if __name__ == "__main__":
    asyncio.run(count_words(sys.argv[1]))
