"""The state of a share partition: a snapshot with the later updates applied.

This module applies the updates as the share coordinator does (KIP-932). The state of each offset is exactly Kafka's.
Adjacent batches in the same state are one batch here. Kafka may keep them as two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final

from attrs import evolve

from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue, StateBatch
from kafka_msgs.messages.share_update_value import ShareUpdateValue
from kafka_msgs.messages.share_update_value import StateBatch as UpdateBatch

__all__ = ["apply_update", "combine_batches"]

_UNSET: Final = -1


def apply_update(snapshot: ShareSnapshotValue | None, update: ShareUpdateValue) -> ShareSnapshotValue:
    """Return the state of a share partition after an update. ``snapshot`` is None for the first update."""
    batches = [_snapshot_batch(batch) for batch in update.state_batches]
    if snapshot is None:
        return ShareSnapshotValue(
            snapshot_epoch=update.snapshot_epoch,
            leader_epoch=update.leader_epoch,
            start_offset=update.start_offset,
            delivery_complete_count=update.delivery_complete_count,
            state_batches=tuple(batches),
        )
    start = snapshot.start_offset if update.start_offset == _UNSET else update.start_offset
    return evolve(
        snapshot,
        leader_epoch=snapshot.leader_epoch if update.leader_epoch == _UNSET else update.leader_epoch,
        start_offset=start,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=combine_batches([*snapshot.state_batches, *batches], start),
    )


def combine_batches(batches: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Return batches without overlaps, in order of offsets, and none before ``start_offset`` (-1 for no bound).

    If batches overlap, the batch with more deliveries wins. If they have the same number of deliveries, the batch with
    the higher state wins.
    """
    joined: list[StateBatch] = []
    for batch in _without_overlaps(batches, start_offset):
        last = joined[-1] if joined else None
        if last and last.last_offset + 1 == batch.first_offset and _priority(last) == _priority(batch):
            joined[-1] = evolve(last, last_offset=batch.last_offset)
        else:
            joined.append(batch)
    return tuple(joined)


def _without_overlaps(batches: Iterable[StateBatch], start_offset: int) -> Iterator[StateBatch]:
    """Yield the winner of each range between two borders. A heap holds the started batches, the winner first."""
    kept = [batch for batch in batches if max(batch.first_offset, start_offset) <= batch.last_offset]
    begins = sorted(kept, key=lambda batch: batch.first_offset, reverse=True)
    borders = sorted({border for batch in kept for border in (batch.first_offset, batch.last_offset + 1)})
    begun: list[tuple[int, int, int]] = []
    for border, next_border in pairwise(borders):
        while begins and begins[-1].first_offset <= border:
            batch = begins.pop()
            heappush(begun, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
        while begun and begun[0][2] < border:
            heappop(begun)
        first, last = max(border, start_offset), next_border - 1
        if begun and first <= last:
            count, state, _ = begun[0]
            yield StateBatch(first_offset=first, last_offset=last, delivery_state=-state, delivery_count=-count)


def _priority(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state


def _snapshot_batch(batch: UpdateBatch) -> StateBatch:
    return StateBatch(
        first_offset=batch.first_offset,
        last_offset=batch.last_offset,
        delivery_state=batch.delivery_state,
        delivery_count=batch.delivery_count,
    )
