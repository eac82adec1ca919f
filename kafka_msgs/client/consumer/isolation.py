"""The visible batches of a fetch response: no control batches and, with ``read_committed``, no aborted batches.

A response for a ``read_committed`` consumer lists the aborted transactions with their first offsets. A marker in the
log ends each transaction (KIP-98). Kafka's class is ``org.apache.kafka.clients.consumer.internals.CompletedFetch``.
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
    """Yield each batch, and whether its records are visible to the consumer.

    ``aborted`` are the aborted transactions listed in the response; None or empty for ``read_uncommitted``. Raises
    the same errors as ``RecordBatch.control_records``.
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
