"""Transactions that the coordinator must verify before a partition accepts their first batch (KIP-890).

A guard stands for one pending verification. It is valid for one append, and a marker in the meantime invalidates it. In
Kafka these are ``VerificationStateEntry`` and ``VerificationGuard`` in ``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

from attrs import define, field, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError

__all__ = ["VerificationGuard", "VerificationState"]


@frozen(eq=False)
class VerificationGuard:
    """One pending verification of a transaction. A guard equals only itself."""


@define(eq=False)
class _Question:
    asked_at: int
    lowest_sequence: int
    epoch: int
    bumps_epoch: bool
    guard: VerificationGuard = field(factory=VerificationGuard)

    def lower(self, sequence: int, epoch: int) -> None:
        """Remember the lowest sequence of the epoch. A higher one must not be written before it."""
        if epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence


@define(eq=False)
class VerificationState:
    """The pending verifications of a partition by producer id."""

    _questions: dict[int, _Question] = field(factory=dict)

    def start(self, producer_id: int, sequence: int, epoch: int, *, bumps_epoch: bool, now: int) -> VerificationGuard:
        """Return the guard for the first batch of a transaction.

        ``sequence`` and ``epoch`` are from the batch. ``bumps_epoch`` is True if the producer gets a new epoch for each
        transaction (transaction version 2). ``now`` is in milliseconds since the epoch.
        """
        question = self._questions.get(producer_id)
        if question is None:
            question = self._questions[producer_id] = _Question(now, sequence, epoch, bumps_epoch)
        question.lower(sequence, epoch)
        return question.guard

    def is_verified(self, producer_id: int, guard: VerificationGuard | None) -> bool:
        """Return whether ``guard`` belongs to the pending verification of this producer."""
        question = self._questions.get(producer_id)
        return question is not None and question.guard is guard

    def check_sequence(self, producer_id: int, sequence: int, *, known: bool) -> None:
        """Check the first sequence of a batch while its verification is pending.

        ``known`` is True if the partition has batches of the producer. Raises ``RequestRefusedError`` with
        OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        question = self._questions.get(producer_id)
        if question is None:
            return
        if question.bumps_epoch and sequence != 0 and not known:
            expected = "Expected sequence 0 for transactions v2 idempotent producer with no existing state."
        elif sequence > question.lowest_sequence:
            expected = f"{question.lowest_sequence} (earliest seen sequence)"
        else:
            return
        reason = (
            f"Out of order sequence number for producer {producer_id}: {sequence} (incoming seq. number), {expected}"
        )
        raise RequestRefusedError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, reason)

    def written(self, producer_id: int, epoch: int, *, control: bool) -> None:
        """End the verification when a batch of the transaction, or its marker, is written.

        It continues after the marker if the producer's next transaction is already being verified with the marker's
        epoch.
        """
        question = self._questions.get(producer_id)
        if question is not None and not (question.bumps_epoch and control and epoch == question.epoch):
            del self._questions[producer_id]

    def expire(self, now: int, after_ms: int) -> None:
        """Remove verifications that are ``after_ms`` old."""
        self._questions = {
            producer_id: question
            for producer_id, question in self._questions.items()
            if now - question.asked_at < after_ms
        }
