"""The producer state of a partition: sequences, epochs, and open transactions.

An append is prepared on copies and takes effect with ``commit``, after its bytes were written. A refused or failed
append therefore changes nothing. ``verification`` tracks transactions that are not verified yet. The sources are
KIP-98, KIP-360, KIP-890, KIP-1228 and Kafka's classes ``ProducerStateManager``, ``ProducerAppendInfo`` and
``ProducerStateEntry`` in ``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

from attrs import define, evolve, field, frozen

from kafka_msgs.broker.storage.batch_headers import PositionedHeader, next_sequence
from kafka_msgs.broker.storage.verification import VerificationState
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.records import ControlType

__all__ = [
    "AppendOrigin",
    "BatchMetadata",
    "CompletedTransaction",
    "EndTransactionMarker",
    "ProducerStateEntry",
    "ProducerStateManager",
]

_REMEMBERED: Final = 5
_NO_EPOCH: Final = -1
_NO_SEQUENCE: Final = -1
_MAX_EPOCH: Final = 2**15 - 1
_STRICT_MARKERS: Final = 2


class AppendOrigin(Enum):
    """The origin of an append: a client, a coordinator or the controller, or the replay of a leader's records."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLAY = "replay"


class BatchMetadata(NamedTuple):
    """A batch that a producer wrote. The timestamp is in milliseconds since the epoch."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        """The offset of the first record."""
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        """The sequence of the first record."""
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + 2**31


class EndTransactionMarker(NamedTuple):
    """The control record that ends a transaction. The timestamp is in milliseconds since the epoch."""

    kind: ControlType
    coordinator_epoch: int
    timestamp: int


@frozen
class CompletedTransaction:
    """A transaction that a marker ended, with the offsets of its first record and of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


def _remembered() -> deque[BatchMetadata]:
    return deque(maxlen=_REMEMBERED)


@define
class ProducerStateEntry:
    """A producer: its epoch, its last batches, and the first offset of its open transaction, or None.

    ``batches`` has at most five batches, oldest first. ``last_timestamp`` is in milliseconds since the epoch. An epoch
    of -1 is unknown.
    """

    producer_id: int
    epoch: int = _NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    first_offset: int | None = None
    batches: deque[BatchMetadata] = field(factory=_remembered)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, or -1."""
        return self.batches[-1].last_sequence if self.batches else _NO_SEQUENCE

    def duplicate_of(self, batch: PositionedHeader) -> BatchMetadata | None:
        """Return the remembered batch with the epoch and the sequences of ``batch``, or None."""
        if batch.producer_epoch != self.epoch:
            return None
        wanted = batch.base_sequence, batch.last_sequence
        return next((each for each in self.batches if (each.first_sequence, each.last_sequence) == wanted), None)

    def condensed(self) -> ProducerStateEntry:
        """Return a copy for a snapshot: it contains only the last batch, with the last timestamp."""
        kept = [each._replace(timestamp=self.last_timestamp) for each in list(self.batches)[-1:]]
        return evolve(self, batches=deque(kept, maxlen=_REMEMBERED))

    def take_epoch(self, epoch: int) -> None:
        """Switch to an epoch. Batches of another epoch are forgotten."""
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch


@define(eq=False)
class ProducerAppendInfo:
    """The effect of an append on the producers, before it is written."""

    states: dict[int, ProducerStateEntry] = field(factory=dict)
    completed: list[CompletedTransaction] = field(factory=list)
    transactional: list[PositionedHeader] = field(factory=list)


@define(eq=False)
class ProducerStateManager:
    """The producers of a partition by id.

    ``open`` lists the first offset and the producer of each open transaction, in ascending order. ``unreplicated``
    lists ended transactions whose marker is not yet below the high watermark: the first offset, and the offset of the
    marker. ``end_offset`` is the offset after the last record that the state includes.
    """

    states: dict[int, ProducerStateEntry] = field(factory=dict)
    open: dict[int, int] = field(factory=dict)
    unreplicated: dict[int, int] = field(factory=dict)
    verification: VerificationState = field(factory=VerificationState)
    end_offset: int = 0

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of an open or unreplicated transaction, or None."""
        first = next(iter(self.open), None)
        if not self.unreplicated:
            return first
        return min(self.unreplicated) if first is None else min(first, *self.unreplicated)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Return whether a transaction of this producer and epoch is open."""
        state = self.states.get(producer_id)
        return state is not None and state.first_offset is not None and state.epoch == epoch

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Raise ``RequestRefusedError`` with INVALID_PRODUCER_EPOCH if the partition has a later epoch."""
        state = self.states.get(producer_id)
        if state is not None and epoch < state.epoch:
            reason = (
                f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {state.epoch}"
            )
            raise RequestRefusedError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)

    def prepare(
        self,
        batch: PositionedHeader,
        origin: AppendOrigin,
        marker: EndTransactionMarker | None,
        transaction_version: int,
        prepared: ProducerAppendInfo,
    ) -> None:
        """Check a batch with its final offsets, and add its effect to ``prepared``.

        ``marker`` is the record of a control batch that ends a transaction. It is None for a control batch without
        records. Raises ``RequestRefusedError``: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER,
        INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED.
        """
        now = self.states.get(batch.producer_id) or ProducerStateEntry(batch.producer_id)
        draft = prepared.states.get(batch.producer_id)
        if draft is None:
            draft = prepared.states[batch.producer_id] = evolve(now, batches=_remembered())
        if batch.is_control:
            if marker is not None:
                self._end(draft, batch, marker, origin, transaction_version, prepared)
        else:
            self._write(now, draft, batch, origin)
        if batch.is_transactional:
            prepared.transactional.append(batch)

    def _write(
        self, now: ProducerStateEntry, draft: ProducerStateEntry, batch: PositionedHeader, origin: AppendOrigin
    ) -> None:
        _check_epoch(draft, batch.producer_epoch, origin, transaction_version=0)
        if origin is AppendOrigin.CLIENT:
            self.verification.check_sequence(batch.producer_id, batch.base_sequence, known=bool(now.batches))
            _check_sequence(now, draft, batch)
        draft.take_epoch(batch.producer_epoch)
        draft.batches.append(
            BatchMetadata(batch.last_sequence, batch.last_offset, batch.last_offset_delta, batch.max_timestamp)
        )
        draft.last_timestamp = batch.max_timestamp
        if draft.first_offset is not None and not batch.is_transactional:
            reason = f"Expected transactional write from producer {batch.producer_id}"
            raise RequestRefusedError(ErrorCode.INVALID_TXN_STATE, reason)
        if draft.first_offset is None and batch.is_transactional:
            draft.first_offset = batch.base_offset

    def _end(
        self,
        draft: ProducerStateEntry,
        batch: PositionedHeader,
        marker: EndTransactionMarker,
        origin: AppendOrigin,
        version: int,
        prepared: ProducerAppendInfo,
    ) -> None:
        _check_epoch(draft, batch.producer_epoch, origin, version)
        if draft.coordinator_epoch > marker.coordinator_epoch and origin is not AppendOrigin.REPLAY:
            reason = f"Invalid coordinator epoch for producerId {batch.producer_id}: {marker.coordinator_epoch}"
            raise RequestRefusedError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED, f"{reason} (zombie), {draft.coordinator_epoch} (current)"
            )
        if draft.first_offset is not None:
            aborted = marker.kind is ControlType.ABORT
            prepared.completed.append(
                CompletedTransaction(batch.producer_id, draft.first_offset, batch.base_offset, aborted)
            )
        draft.take_epoch(batch.producer_epoch)
        draft.coordinator_epoch, draft.last_timestamp = marker.coordinator_epoch, marker.timestamp
        draft.first_offset = None

    def commit(self, prepared: ProducerAppendInfo) -> None:
        """Apply a prepared append. The transactions that it completes stay open until ``complete``."""
        for producer_id, draft in prepared.states.items():
            state = self.states.get(producer_id)
            if state is None:
                state = self.states[producer_id] = ProducerStateEntry(producer_id)
            state.take_epoch(draft.epoch)
            state.batches.extend(draft.batches)
            state.coordinator_epoch, state.last_timestamp = draft.coordinator_epoch, draft.last_timestamp
            state.first_offset = draft.first_offset
        for batch in prepared.transactional:
            self.verification.written(batch.producer_id, batch.producer_epoch, control=batch.is_control)
        begun = {done.first_offset: done.producer_id for done in prepared.completed}
        begun |= {draft.first_offset: each for each, draft in prepared.states.items() if draft.first_offset is not None}
        self.open.update(sorted(begun.items()))

    def stable_offset_after(self, done: CompletedTransaction) -> int:
        """Return the last stable offset after a transaction has ended: all transactions below it have ended."""
        others = (first for first, producer_id in self.open.items() if producer_id != done.producer_id)
        return next(others, done.last_offset + 1)

    def complete(self, done: CompletedTransaction, high_watermark: int) -> None:
        """Close a transaction. It stays unstable while its marker is not below the high watermark."""
        del self.open[done.first_offset]
        if done.last_offset >= high_watermark:
            self.unreplicated[done.first_offset] = done.last_offset

    def replicated(self, high_watermark: int) -> None:
        """Apply a new high watermark, below which all markers are stable."""
        if self.unreplicated:
            self.unreplicated = {first: last for first, last in self.unreplicated.items() if last >= high_watermark}

    def expire(self, now: int, after_ms: int) -> None:
        """Remove producers without an open transaction that have written no batch for ``after_ms``; see KIP-854."""
        idle = [
            producer_id
            for producer_id, state in self.states.items()
            if state.first_offset is None and now - state.last_timestamp >= after_ms
        ]
        for producer_id in idle:
            del self.states[producer_id]
        self.verification.expire(now, after_ms)

    def reset(self, states: Iterable[ProducerStateEntry] = (), end_offset: int = 0) -> None:
        """Replace all producers by the given ones. Unverified transactions remain, as in Kafka."""
        self.states = {state.producer_id: state for state in states}
        firsts = ((state.first_offset, state.producer_id) for state in self.states.values())
        self.open = dict(sorted((first, producer_id) for first, producer_id in firsts if first is not None))
        self.unreplicated = {}
        self.end_offset = end_offset


def _check_epoch(state: ProducerStateEntry, epoch: int, origin: AppendOrigin, transaction_version: int) -> None:
    """Refuse an older epoch.

    From transaction version 2 on, a marker has the next epoch unless it repeats the last one.
    """
    if origin is AppendOrigin.REPLAY or epoch > state.epoch:
        return
    strict = transaction_version >= _STRICT_MARKERS
    repeated = state.first_offset is None or epoch == _MAX_EPOCH
    if epoch == state.epoch and (not strict or repeated):
        return
    sign = "<=" if strict else "<"
    reason = f"Epoch of producer {state.producer_id} is {epoch}, which is {sign} the last seen epoch {state.epoch}"
    raise RequestRefusedError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)


def _check_sequence(now: ProducerStateEntry, draft: ProducerStateEntry, batch: PositionedHeader) -> None:
    """Refuse a batch that does not continue the last sequence. An unknown producer may start at any sequence."""
    first = batch.base_sequence
    if batch.producer_epoch != draft.epoch:
        if first == 0 or draft.epoch == _NO_EPOCH:
            return
        reason = f"Invalid sequence number for new epoch of producer {now.producer_id}: {batch.producer_epoch}"
        reason += f" (request epoch), {first} (seq. number), {draft.epoch} (current producer epoch)"
        raise RequestRefusedError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, reason)
    if now.epoch == _NO_EPOCH:
        return
    if draft.batches:
        last = draft.last_sequence
    else:
        last = now.last_sequence if batch.producer_epoch == now.epoch else _NO_SEQUENCE
    follows = first == 0 if last == _NO_SEQUENCE else first == next_sequence(last, 1)
    if not follows:
        reason = f"Out of order sequence number for producer {now.producer_id}: {first} (incoming seq. number), "
        reason += f"{last} (current end sequence number)"
        raise RequestRefusedError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, reason)
