"""Checks of requests to end a transaction, including retries.

A producer that received no response may retry EndTxn. Before KIP-890, the transaction state identifies a retry. From
transaction version 2 on, each end bumps the epoch, so the epoch identifies it. The source is
``kafka.coordinator.transaction.TransactionCoordinator``; KIP-890 contains the table for version 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_msgs.broker.transactions.transaction_metadata import LAST_EPOCH, TransactionMetadata, TransactionState
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.runtime.output import ProducerIdAndEpoch

__all__ = ["is_repeated"]

_Status = TransactionState
_OUTCOMES: Final[Mapping[TransactionState, bool]] = {
    _Status.PREPARE_COMMIT: True,
    _Status.COMPLETE_COMMIT: True,
    _Status.PREPARE_ABORT: False,
    _Status.COMPLETE_ABORT: False,
}
"""The states after a requested end, and whether it was a commit."""


def is_repeated(
    transaction: TransactionMetadata, producer: ProducerIdAndEpoch, *, committed: bool, bumps_epoch: bool
) -> bool:
    """Return whether a client's request to end a transaction is a retry of a completed request.

    False means that the transaction must be ended. ``bumps_epoch`` is True from transaction version 2 on. Raises
    ``RequestRefusedError`` for an invalid request.
    """
    overflowed = bumps_epoch and _overflowed(transaction, producer)
    if transaction.producer_id != producer.id and not overflowed:
        raise RequestRefusedError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if not bumps_epoch:
        if producer.epoch != transaction.producer_epoch:
            raise RequestRefusedError(ErrorCode.PRODUCER_FENCED)
        return _repeated_by_state(transaction, committed)
    again = overflowed or transaction.producer_epoch == producer.epoch + 1
    if not _has_right_epoch(transaction, producer, again):
        raise RequestRefusedError(ErrorCode.PRODUCER_FENCED)
    return _repeated_by_epoch(transaction, again, committed)


def _overflowed(transaction: TransactionMetadata, producer: ProducerIdAndEpoch) -> bool:
    """Return whether the producer has the last epoch of the previous producer id."""
    first = transaction.producer_epoch == 0 and transaction.previous_producer_id == producer.id
    return first and producer.epoch == LAST_EPOCH


def _has_right_epoch(transaction: TransactionMetadata, producer: ProducerIdAndEpoch, again: bool) -> bool:
    same = producer.epoch == transaction.producer_epoch
    if transaction.status.ending:
        return transaction.producer_epoch == producer.epoch + 1
    if transaction.status in _OUTCOMES:
        return again or same
    return same


def _repeated_by_state(transaction: TransactionMetadata, committed: bool) -> bool:
    """Return whether the state shows a retry, before transaction version 2."""
    status = transaction.status
    if status is _Status.ONGOING:
        return False
    if _OUTCOMES.get(status) is not committed:
        raise RequestRefusedError(ErrorCode.INVALID_TXN_STATE)
    if status.ending:
        raise RequestRefusedError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return True


def _repeated_by_epoch(transaction: TransactionMetadata, again: bool, committed: bool) -> bool:
    """Return whether the epoch shows a retry, from transaction version 2 on.

    A producer may abort even if no transaction is open.
    """
    status = transaction.status
    if status.ending:
        again_later = _OUTCOMES[status] is committed
        raise RequestRefusedError(ErrorCode.CONCURRENT_TRANSACTIONS if again_later else ErrorCode.INVALID_TXN_STATE)
    if status is _Status.ONGOING or (not again and not committed):
        return False
    if not again or _OUTCOMES.get(status) is not committed:
        raise RequestRefusedError(ErrorCode.INVALID_TXN_STATE)
    return True
