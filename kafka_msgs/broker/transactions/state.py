"""The states of a transaction, and their valid transitions.

The source is ``org.apache.kafka.coordinator.transaction.TransactionState``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

__all__ = ["VALID_PREVIOUS_STATES", "TransactionState"]


class TransactionState(IntEnum):
    """The state of a transactional id, by its number in ``__transaction_state``."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The name in DescribeTransactions responses, for example ``PrepareCommit``."""
        return self.name.title().replace("_", "")

    @property
    def at_rest(self) -> bool:
        """Whether no transaction is open. Only such a transactional id may expire."""
        return self in _AT_REST

    @property
    def ending(self) -> bool:
        """Whether the end is decided and markers are pending."""
        return self in _ENDING


_STATUS = TransactionState
_AT_REST: Final = frozenset({_STATUS.EMPTY, _STATUS.COMPLETE_COMMIT, _STATUS.COMPLETE_ABORT})
_ENDING: Final = frozenset({_STATUS.PREPARE_COMMIT, _STATUS.PREPARE_ABORT})

VALID_PREVIOUS_STATES: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    _STATUS.EMPTY: _AT_REST,
    _STATUS.ONGOING: _AT_REST | {_STATUS.ONGOING},
    _STATUS.PREPARE_COMMIT: frozenset({_STATUS.ONGOING}),
    _STATUS.PREPARE_ABORT: _AT_REST | {_STATUS.ONGOING},
    _STATUS.COMPLETE_COMMIT: frozenset({_STATUS.PREPARE_COMMIT}),
    _STATUS.COMPLETE_ABORT: frozenset({_STATUS.PREPARE_ABORT}),
}
"""The valid previous states of each recorded state.

From transaction version 2 on (KIP-890), a producer may abort even if no transaction is open.
"""
