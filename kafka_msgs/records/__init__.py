"""Read and write records as Kafka stores and sends them: batches of magic 2, and message sets of magic 0 and 1.

    >>> from kafka_msgs.records import BatchBuilder, BatchHeader, read_batches
    >>> builder = BatchBuilder(BatchHeader(base_offset=40))
    >>> builder.append(b"k", b"v", timestamp=1_700_000_000_000)
    True
    >>> [(record.offset, record.value) for batch in read_batches(builder.build()) for record in batch]
    [(40, b'v')]

Keys and values are bytes; this package does not interpret them. snappy, lz4 and zstd need the extra ``compression``,
gzip does not. The sources are Kafka's package ``org.apache.kafka.common.record.internal`` (before 4.3:
``org.apache.kafka.common.record``), and the protocol guide, section "Record Batch".
"""

from kafka_msgs.records.batch import BatchReader, RecordBatch, read_batches, walk_batches
from kafka_msgs.records.batch_base import Batch, TimestampType
from kafka_msgs.records.builder import BatchBuilder, BatchHeader, MessageSetBuilder
from kafka_msgs.records.compression import CompressionType
from kafka_msgs.records.control_records import ControlRecord, ControlType
from kafka_msgs.records.legacy import LegacyBatch
from kafka_msgs.records.options import DEFAULT_READ_OPTIONS, ReadOptions
from kafka_msgs.records.record import NO_TIMESTAMP, ConsumerRecord, Header, Headers, Payload, Record

__all__ = [
    "DEFAULT_READ_OPTIONS",
    "NO_TIMESTAMP",
    "Batch",
    "BatchBuilder",
    "BatchHeader",
    "BatchReader",
    "CompressionType",
    "ConsumerRecord",
    "ControlRecord",
    "ControlType",
    "Header",
    "Headers",
    "LegacyBatch",
    "MessageSetBuilder",
    "Payload",
    "ReadOptions",
    "Record",
    "RecordBatch",
    "TimestampType",
    "read_batches",
    "walk_batches",
]
