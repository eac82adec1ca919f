"""The files of a broker's log directory.

``log_directory`` lists the partitions and their files. ``segment``, ``file_scan`` and ``indexes`` read segments and
their indexes, ``small_files`` reads the small files. ``summary`` counts the batches of a file. ``index_check`` compares
an index with its segment. ``transaction_index`` finds aborted transactions. ``remote_naming`` defines the names of
segments in remote storage. ``kafka_msgs.internal_topics`` interprets the records of internal topics. Names are imported
on first use, so unused parts cost nothing. In Kafka these files belong to the package
``org.apache.kafka.storage.internals``.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy_modules import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.log.file_scan import AnyBatch, FileScan, read_log, walk_headers, walk_log
    from kafka_msgs.log.index_check import check_offset_index, check_time_index
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
    from kafka_msgs.log.segment import Segment
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
    __getattr__, __dir__ = lazy_module_attributes(
        __name__,
        {
            "AbortedTransaction": "indexes",
            "AnyBatch": "file_scan",
            "CleanShutdown": "small_files",
            "FileScan": "file_scan",
            "IsolationLevel": "transaction_index",
            "KRaftSnapshot": "log_directory",
            "LeaderEpoch": "small_files",
            "LogDirectory": "log_directory",
            "LogSummary": "summary",
            "MetaProperties": "small_files",
            "OffsetEntry": "indexes",
            "Partition": "log_directory",
            "PartitionMetadata": "small_files",
            "Segment": "segment",
            "SegmentName": "remote_naming",
            "RemoteNaming": "remote_naming",
            "TimeEntry": "indexes",
            "TransactionIndex": "transaction_index",
            "check_offset_index": "index_check",
            "check_time_index": "index_check",
            "find_transactions": "transaction_index",
            "parse_remote_naming": "remote_naming",
            "read_aborted_transactions": "indexes",
            "read_clean_shutdown": "small_files",
            "read_leader_epochs": "small_files",
            "read_log": "file_scan",
            "read_meta_properties": "small_files",
            "read_offset_checkpoint": "small_files",
            "read_offset_index": "indexes",
            "read_partition_metadata": "small_files",
            "read_producer_snapshot": "small_files",
            "read_quorum_state": "small_files",
            "read_summary": "summary",
            "read_time_index": "indexes",
            "walk_aborted_transactions": "indexes",
            "walk_headers": "file_scan",
            "walk_log": "file_scan",
            "walk_offset_index": "indexes",
            "walk_summary": "summary",
            "walk_time_index": "indexes",
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
