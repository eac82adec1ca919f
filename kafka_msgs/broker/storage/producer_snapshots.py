"""Producer snapshots of a partition (KIP-98), which contain only the last batch of each producer."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_msgs.broker.storage.producer_state import BatchMetadata, ProducerStateEntry
from kafka_msgs.messages.producer_snapshot import ProducerEntry, ProducerSnapshot

__all__ = ["from_snapshot", "to_snapshot"]


def to_snapshot(producers: Iterable[ProducerStateEntry]) -> ProducerSnapshot:
    """Return the snapshot of producers."""
    return ProducerSnapshot(producer_entries=tuple(map(_entry, producers)))


def _entry(state: ProducerStateEntry) -> ProducerEntry:
    last = state.batches[-1] if state.batches else BatchMetadata(-1, -1, 0, -1)
    return ProducerEntry(
        producer_id=state.producer_id,
        epoch=state.epoch,
        last_sequence=last.last_sequence,
        last_offset=last.last_offset,
        offset_delta=last.offset_delta,
        timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_first_offset=-1 if state.first_offset is None else state.first_offset,
    )


def from_snapshot(snapshot: ProducerSnapshot) -> list[ProducerStateEntry]:
    """Return the producers of a snapshot."""
    return [_state(entry) for entry in snapshot.producer_entries]


def _state(entry: ProducerEntry) -> ProducerStateEntry:
    state = ProducerStateEntry(
        entry.producer_id,
        entry.epoch,
        entry.coordinator_epoch,
        entry.timestamp,
        entry.current_txn_first_offset if entry.current_txn_first_offset >= 0 else None,
    )
    if entry.last_offset >= 0:
        state.batches.append(BatchMetadata(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp))
    return state
