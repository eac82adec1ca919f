"""The Spark engine: each task of a run is a Spark task, which reads and writes files in Python.

Rows do not pass through the JVM: a Spark task receives its number, and returns counts and file names.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafka_msgs.engines.job import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_engine"]


def spark_engine(spark: SparkSession) -> Engine:
    """Return the engine that runs every task as a Spark task."""

    def run(function: Callable[[int], Any], count: int) -> Iterator[Any]:
        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch["id"].to_pylist():
                    result = dump_result(function(number))
                    yield pa.RecordBatch.from_arrays([pa.array([result], pa.binary())], names=["result"])

        frame = spark.range(0, count, 1, max(count, 1)).mapInArrow(work, "result binary")
        return (pickle.loads(row["result"]) for row in frame.collect())

    return run


class _TablePickler(pickle.Pickler):
    """Pickles tables as Arrow streams: a pickled slice would contain the buffers of its complete table."""

    def reducer_override(self, value: object) -> Any:
        """Return the reduced form of a table."""
        if not isinstance(value, pa.Table):
            return NotImplemented
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_table(value)
        return _read_table, (sink.getvalue().to_pybytes(),)


def _read_table(stream: bytes) -> pa.Table:
    return pa.ipc.open_stream(stream).read_all()


def dump_result(result: Any) -> bytes:
    """Return the pickled result of a task."""
    file = BytesIO()
    _TablePickler(file).dump(result)
    return file.getvalue()
