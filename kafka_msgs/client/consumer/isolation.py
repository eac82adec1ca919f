"""Which batches of a fetch response a consumer gets: never control batches, and no aborted ones if it asks for that.

A response to a consumer that reads committed records names the transactions that were aborted, by their first offset.
A marker in the log ends each of them (KIP-98). Kafka's class is ``org.apache.kafka.clients.consumer.internals.
CompletedFetch``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from kafka_msgs.messages.fetch_response import AbortedTransaction
from kafka_msgs.records import ControlType, LegacyBatch, RecordBatch

__all__ = ["AnyBatch", "visible_batches"]

AnyBatch: TypeAlias = RecordBatch | LegacyBatch


def visible_batches(
    batches: Iterable[AnyBatch], aborted: Iterable[AbortedTransaction] | None
) -> Iterator[tuple[AnyBatch, bool]]:
    """Yield each batch, and whether a consumer gets its records.

    ``aborted`` are the transactions of the response that were aborted. It is None or empty if the consumer reads
    uncommitted records. Raises what reading a control batch raises.
    """
    ahead = deque(sorted(aborted or (), key=lambda each: each.first_offset))
    open_producers: set[int] = set()
    for batch in batches:
        if not isinstance(batch, RecordBatch):
            yield batch, True
            continue
        while ahead and ahead[0].first_offset <= batch.last_offset:
            open_producers.add(ahead.popleft().producer_id)
        if batch.is_control:
            if batch.producer_id in open_producers and _aborts(batch):
                open_producers.discard(batch.producer_id)
            yield batch, False
        else:
            yield batch, not (batch.is_transactional and batch.producer_id in open_producers)


def _aborts(batch: RecordBatch) -> bool:
    return any(record.type == ControlType.ABORT for record in batch.control_records())
