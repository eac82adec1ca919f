"""Records of aborted transactions, which groups with ``share.isolation.level=read_committed`` skip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kafka_msgs.broker.share.record_state import AcquiredRecords, RecordState
from kafka_msgs.broker.share.share_partition import SharePartition
from kafka_msgs.broker.storage.batch_headers import PositionedHeader
from kafka_msgs.log.indexes import AbortedTransaction

__all__ = ["archive_aborted"]


def archive_aborted(
    share: SharePartition,
    acquired: list[AcquiredRecords],
    batches: Sequence[PositionedHeader],
    transactions: Iterable[AbortedTransaction],
    ends_aborted: Callable[[PositionedHeader], bool],
) -> list[AcquiredRecords]:
    """Archive acquired records of aborted transactions, and return the remaining records.

    ``batches`` are the batches that were read, and ``transactions`` the aborted transactions that may have records in
    them. ``ends_aborted`` returns whether a control batch aborts a transaction.
    """
    aborted = _aborted(batches, transactions, ends_aborted)
    for batch in aborted:
        touched = share.touching(batch.base_offset, batch.last_offset)
        share.archive(batch.base_offset, batch.last_offset, touched, RecordState.ACQUIRED)
    return list(_without(acquired, aborted)) if aborted else acquired


def _aborted(
    batches: Sequence[PositionedHeader],
    transactions: Iterable[AbortedTransaction],
    ends_aborted: Callable[[PositionedHeader], bool],
) -> list[PositionedHeader]:
    """Return the batches of aborted transactions."""
    waiting = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
    producers: set[int] = set()
    found: list[PositionedHeader] = []
    for batch in batches:
        if not batch.has_producer:
            continue
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.is_control and ends_aborted(batch):
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(batch)
    return found


def _without(acquired: Iterable[AcquiredRecords], batches: Sequence[PositionedHeader]) -> Iterable[AcquiredRecords]:
    """Yield the parts of acquired records outside the batches. Both arguments are in order."""
    index = 0
    for each in acquired:
        first = each.first
        while index < len(batches) and batches[index].last_offset < first:
            index += 1
        at = index
        while at < len(batches) and batches[at].base_offset <= each.last:
            if batches[at].base_offset > first:
                yield each._replace(first=first, last=batches[at].base_offset - 1)
            first = max(first, batches[at].last_offset + 1)
            at += 1
        index = max(index, at - 1)
        if first <= each.last:
            yield each._replace(first=first)
