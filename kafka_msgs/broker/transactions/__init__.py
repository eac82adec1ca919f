"""The transaction coordinator of a broker as a state machine: KIP-98, KIP-360, KIP-890.

``TransactionCoordinator`` stores the states of transactional ids as records of ``__transaction_state``. It uses no
sockets, clocks or threads, and accesses no other partitions: its host writes the markers of ending transactions.
"""

from kafka_msgs.broker.transactions.coordinator import PendingCompletion, TransactionCoordinator
from kafka_msgs.broker.transactions.transaction_metadata import (
    TopicPartition,
    TransactionConfig,
    TransactionMetadata,
    TransactionState,
    group_by_topic,
)
from kafka_msgs.groups.runtime.output import ProducerIdAndEpoch

__all__ = [
    "PendingCompletion",
    "ProducerIdAndEpoch",
    "TopicPartition",
    "TransactionConfig",
    "TransactionCoordinator",
    "TransactionMetadata",
    "TransactionState",
    "group_by_topic",
]
