"""The files that a broker keeps in its log directory.

``partition`` lists the partitions and their files. ``segment``, ``scan`` and ``index`` read segments and their indexes,
``files`` reads the small files. ``summary`` counts the batches of a file. ``index_check`` compares an index with its
segment. ``transactions`` finds aborted transactions. ``tiers`` has the names of segments in remote storage.
``kafka_msgs.topics`` knows the meaning of the records of internal topics. A name is imported when it is first used, so
unused parts cost nothing. In Kafka these files belong to the package ``org.apache.kafka.storage.internals``.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.log.files import (
        CleanShutdown,
        LeaderEpoch,
        MetaProperties,
        PartitionMetadata,
        read_clean_shutdown,
        read_leader_epochs,
        read_meta_properties,
        read_offset_checkpoint,
        read_partition_metadata,
        read_producer_snapshot,
        read_quorum_state,
    )
    from kafka_msgs.log.index import (
        AbortedTransaction,
        OffsetEntry,
        TimeEntry,
        read_aborted_transactions,
        read_offset_index,
        read_time_index,
        walk_aborted_transactions,
        walk_offset_index,
        walk_time_index,
    )
    from kafka_msgs.log.index_check import check_offset_index, check_time_index
    from kafka_msgs.log.partition import KRaftSnapshot, LogDirectory, Partition
    from kafka_msgs.log.scan import AnyBatch, FileScan, read_log, walk_headers, walk_log
    from kafka_msgs.log.segment import Segment
    from kafka_msgs.log.summary import LogSummary, read_summary, walk_summary
    from kafka_msgs.log.tiers import RemoteNaming, SegmentName, parse_remote_naming
    from kafka_msgs.log.transactions import IsolationLevel, TransactionIndex, find_transactions
else:
    __getattr__, __dir__ = lazy_module_attributes(
        __name__,
        {
            "AbortedTransaction": "index",
            "AnyBatch": "scan",
            "CleanShutdown": "files",
            "FileScan": "scan",
            "IsolationLevel": "transactions",
            "KRaftSnapshot": "partition",
            "LeaderEpoch": "files",
            "LogDirectory": "partition",
            "LogSummary": "summary",
            "MetaProperties": "files",
            "OffsetEntry": "index",
            "Partition": "partition",
            "PartitionMetadata": "files",
            "Segment": "segment",
            "SegmentName": "tiers",
            "RemoteNaming": "tiers",
            "TimeEntry": "index",
            "TransactionIndex": "transactions",
            "check_offset_index": "index_check",
            "check_time_index": "index_check",
            "find_transactions": "transactions",
            "parse_remote_naming": "tiers",
            "read_aborted_transactions": "index",
            "read_clean_shutdown": "files",
            "read_leader_epochs": "files",
            "read_log": "scan",
            "read_meta_properties": "files",
            "read_offset_checkpoint": "files",
            "read_offset_index": "index",
            "read_partition_metadata": "files",
            "read_producer_snapshot": "files",
            "read_quorum_state": "files",
            "read_summary": "summary",
            "read_time_index": "index",
            "walk_aborted_transactions": "index",
            "walk_headers": "scan",
            "walk_log": "scan",
            "walk_offset_index": "index",
            "walk_summary": "summary",
            "walk_time_index": "index",
        },
    )

__all__ = [
    "AbortedTransaction",
    "AnyBatch",
    "CleanShutdown",
    "FileScan",
    "IsolationLevel",
    "KRaftSnapshot",
    "LeaderEpoch",
    "LogDirectory",
    "LogSummary",
    "MetaProperties",
    "OffsetEntry",
    "Partition",
    "PartitionMetadata",
    "RemoteNaming",
    "Segment",
    "SegmentName",
    "TimeEntry",
    "TransactionIndex",
    "check_offset_index",
    "check_time_index",
    "find_transactions",
    "parse_remote_naming",
    "read_aborted_transactions",
    "read_clean_shutdown",
    "read_leader_epochs",
    "read_log",
    "read_meta_properties",
    "read_offset_checkpoint",
    "read_offset_index",
    "read_partition_metadata",
    "read_producer_snapshot",
    "read_quorum_state",
    "read_summary",
    "read_time_index",
    "walk_aborted_transactions",
    "walk_headers",
    "walk_log",
    "walk_offset_index",
    "walk_summary",
    "walk_time_index",
]
