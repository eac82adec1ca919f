"""The files of a broker's log directory.

``log_directory`` lists the partitions and their files. ``segment``, ``file_scan`` and ``indexes`` read segments and
their indexes, ``small_files`` reads the small files. ``segment`` also compares an index with its segment. ``summary``
counts the batches of a file. ``transaction_index`` finds aborted transactions. ``remote_naming`` defines the names of
segments in remote storage. ``kafka_msgs.internal_topics`` interprets the records of internal topics. Names are imported
on first use, so unused parts cost nothing. In Kafka these files belong to the package
``org.apache.kafka.storage.internals``.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy_modules import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.log.file_scan import AnyBatch, FileScan, read_log, walk_headers, walk_log
    from kafka_msgs.log.indexes import (
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
    from kafka_msgs.log.log_directory import KRaftSnapshot, LogDirectory, Partition
    from kafka_msgs.log.remote_naming import RemoteNaming, SegmentName, parse_remote_naming
    from kafka_msgs.log.segment import Segment, check_offset_index, check_time_index
    from kafka_msgs.log.small_files import (
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
    from kafka_msgs.log.summary import LogSummary, read_summary, walk_summary
    from kafka_msgs.log.transaction_index import IsolationLevel, TransactionIndex, find_transactions
else:
    _NAMES = {
        "file_scan": ("AnyBatch", "FileScan", "read_log", "walk_headers", "walk_log"),
        "indexes": (
            "AbortedTransaction",
            "OffsetEntry",
            "TimeEntry",
            "read_aborted_transactions",
            "read_offset_index",
            "read_time_index",
            "walk_aborted_transactions",
            "walk_offset_index",
            "walk_time_index",
        ),
        "log_directory": ("KRaftSnapshot", "LogDirectory", "Partition"),
        "remote_naming": ("RemoteNaming", "SegmentName", "parse_remote_naming"),
        "segment": ("Segment", "check_offset_index", "check_time_index"),
        "small_files": (
            "CleanShutdown",
            "LeaderEpoch",
            "MetaProperties",
            "PartitionMetadata",
            "read_clean_shutdown",
            "read_leader_epochs",
            "read_meta_properties",
            "read_offset_checkpoint",
            "read_partition_metadata",
            "read_producer_snapshot",
            "read_quorum_state",
        ),
        "summary": ("LogSummary", "read_summary", "walk_summary"),
        "transaction_index": ("IsolationLevel", "TransactionIndex", "find_transactions"),
    }
    __getattr__, __dir__ = lazy_module_attributes(
        __name__, {name: module for module, names in _NAMES.items() for name in names}
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
