"""Writing with ``kafka-live``: rows of a table or of a stream become records of topics.

Each task has a producer. With a ``transactionalId`` each task of a stream writes in one transaction, which also stores
the batch number, so that a repeated Spark batch is not written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from attrs import frozen
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafka_msgs.client import Client, ClientConfig, Producer, TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.client.producer import Delivery, ProducerConfig
from kafka_msgs.errors import InternalError
from kafka_msgs.spark.sources.live_properties import choose, keywords
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.sink_rows import DATA, WHOLE, records_in, sink_topic

__all__ = ["LiveCommitMessage", "LiveStreamWriter", "LiveWriter"]

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": ("string",),
    "partition": WHOLE,
    "timestamp": ("timestamp",),
    "key": DATA,
    "value": DATA,
    "headers": ("array",),
}
"""The writable columns and their accepted types."""
_ACKS: Final[Mapping[str, Any]] = {"all": -1, "1": 1, "0": 0}
_OF_SPARK: Final = ("checkpointLocation", "path", "queryName")
"""Options for Spark itself, which it also passes to the sink."""
_BATCH: Final = "streaming.sql.batchId"
"""The task property with the batch number (Spark's ``MicroBatchExecution``)."""


@frozen
class LiveCommitMessage(WriterCommitMessage):
    """The number of records that a task has written."""

    records: int


class LiveSink:
    """Writes rows to topics. Raises ``OptionError``, including for a column that cannot be written."""

    def __init__(self, options: Options, schema: StructType) -> None:
        for name in _OF_SPARK:
            options.text(name)
        self.topic = sink_topic(options, schema, _COLUMNS)
        self.properties = options.properties("kafka.")
        self.producer = producer = keywords(options, self.properties, "producer")
        acks = _ACKS.get(options.choice("acks", tuple(_ACKS), ""))
        producer["acks"] = choose(options, "acks", producer.get("acks"), acks, _ACKS["all"])
        compression = options.text("compression")
        producer["compression"] = choose(options, "compression", producer.get("compression"), compression, None)
        ProducerConfig(**producer)
        self.transactional_id = options.text("transactionalId")
        if self.transactional_id is not None and self.topic is None:
            options.refuse("topic", "it is needed with a transactionalId")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task, and wait for their delivery. Raises the error of the first undelivered record."""
        with Producer(ClientConfig.from_properties(self.properties), **self.producer) as producer:
            return LiveCommitMessage(self._send(producer, iterator))

    def _send(self, producer: Producer, batches: Iterable[pa.RecordBatch]) -> int:
        count = 0
        waiting: list[Delivery] = []
        for batch in batches:
            waiting = _unfinished(waiting)
            for record in records_in(batch):
                topic = record.pop("topic", None)
                waiting.append(producer.send(self.topic or topic, **record))
                count += 1
        producer.flush()
        if _unfinished(waiting):
            raise InternalError(reason="records are on their way after a flush")
        return count


def _unfinished(deliveries: list[Delivery]) -> list[Delivery]:
    """Return the unfinished deliveries. Raises the error of a failed delivery."""
    left = []
    for delivery in deliveries:
        if not delivery.done:
            left.append(delivery)
        elif delivery.error is not None:
            raise delivery.error
    return left


class LiveWriter(LiveSink, DataSourceArrowWriter):
    """Writes a table. A repeated Spark task writes its records again."""


class LiveStreamWriter(LiveSink, DataSourceStreamArrowWriter):
    """Writes a stream. With a ``transactionalId`` the rows of a batch are written exactly once, else at least once.

    Spark's commit of a batch has nothing to do, because the records are already written.
    """

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task."""
        if self.transactional_id is None:
            return super().write(iterator)
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty(_BATCH)
        if context is None or batch is None:
            raise InternalError(reason="Spark does not say which batch a task belongs to")
        return self.write_once(iterator, context.partitionId(), int(batch))

    def write_once(self, batches: Iterable[pa.RecordBatch], task: int, batch: int) -> LiveCommitMessage:
        """Write the rows of a task in one transaction, unless an earlier attempt has written them.

        The transaction commits the batch number as the offset of a group that belongs to the task.
        """
        name = f"{self.transactional_id}-{task}"
        place = TopicPartition(self.topic or "", 0)
        client = Client(ClientConfig.from_properties(self.properties))
        with client, Producer(client, transactional_id=name, **self.producer) as producer:
            producer.init_transactions()
            if self._next_batch(client, name, place) > batch:
                return LiveCommitMessage(0)
            with producer.transaction():
                count = self._send(producer, batches)
                producer.send_offsets_to_transaction({place: batch + 1}, name)
            return LiveCommitMessage(count)

    def _next_batch(self, client: Client, group: str, place: TopicPartition) -> int:
        """Return the number of the task's next batch."""
        with Consumer(client, group_id=group) as consumer:
            found = consumer.committed([place]).get(place)
        return 0 if found is None else found.offset
