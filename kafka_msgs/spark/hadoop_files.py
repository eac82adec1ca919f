"""Logs on filesystems that only Spark's JVM can read, fetched as complete files by the source ``binaryFile``.

An alternative to ``kafka-log``, whose driver and executors read files in Python. Here every file is one task and is
held in memory, so each core needs memory of about the size of a segment.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.path_resolution import file_from_uri
from kafka_msgs.spark.sources.log import log_reading
from kafka_msgs.spark.sources.log_rows import PartRows, RowOptions
from kafka_msgs.spark.sources.options import Options, option_texts
from kafka_msgs.spark.sources.splits import FilePart
from kafka_msgs.spark.spark_types import arrow_schema

__all__ = ["read_log_through_spark"]


def read_log_through_spark(spark: SparkSession, *paths: str, **options: Any) -> DataFrame:
    """Return the rows of ``kafka-log`` for segments that Spark fetches, from any Hadoop filesystem.

    ``paths`` are paths for ``spark.read.load``: files, directories (with all segments below them), or wildcards. Below
    a directory, Spark skips names that start with an underscore. For internal topics, list the partitions, as in
    ``logs/__consumer_offsets-*``.

    ``options`` are the ``kafka-log`` options that choose the content of rows, such as ``columns``, ``mode`` or
    ``valueMessage``. Files are read completely, and transactions are not tracked across files. So options that choose
    files, partitions, offsets, times or the isolation level are refused. Raises ``OptionError`` and
    ``UnknownColumnError``.
    """
    given = Options("read_log_through_spark", option_texts(options))
    reading = log_reading(given)
    given.done()
    if not paths:
        raise OptionError(source="read_log_through_spark", option="paths", value=None, reason="a path is needed")
    files = spark.read.format("binaryFile").option("pathGlobFilter", "*.log").option("recursiveFileLookup", "true")
    found = files.load(list(paths)).select("path", "content")
    return found.mapInArrow(partial(_rows, reading), reading.schema)


def _rows(reading: RowOptions, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for uri, content in zip(batch.column("path"), batch.column("content"), strict=True):
            yield from _of_file(uri.as_py(), content.as_buffer(), reading)
    yield pa.RecordBatch.from_pylist([], arrow_schema(reading.schema))


def _of_file(uri: str, content: pa.Buffer, reading: RowOptions) -> Iterator[pa.RecordBatch]:
    file = file_from_uri(uri, content.size)
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-") as directory:
        path = Path(directory) / PurePosixPath(file.path).name
        with path.open("wb") as written:
            written.write(content)
        yield from PartRows(FilePart(file, 0, file.size), reading).run(path)
