"""The configuration of a transaction coordinator, with Kafka's names and defaults.

The sources are Kafka's ``TransactionLogConfig`` and ``TransactionStateManagerConfig``.
"""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import ge

__all__ = ["TransactionConfig"]


@frozen(kw_only=True)
class TransactionConfig:
    """Configuration of the coordinator. Attribute names are Kafka's names with ``_`` for ``.``; times are in ms.

    ``transaction_version`` is the level of the feature ``transaction.version``: 2 is KIP-890, 0 is a release before it.
    """

    transaction_state_log_num_partitions: int = field(default=50, validator=ge(1))
    transaction_max_timeout_ms: int = field(default=900_000, validator=ge(1))
    transactional_id_expiration_ms: int = field(default=7 * 24 * 3_600_000, validator=ge(1))
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = field(default=10_000, validator=ge(1))
    transaction_remove_expired_transaction_cleanup_interval_ms: int = field(default=3_600_000, validator=ge(1))
    transaction_version: int = field(default=2, validator=ge(0))
