"""Topics of a running broker, over Spark's own Kafka connector.

Owns where the connector is found, and the columns of live rows: they are those of ``kafka-log`` as far as a broker
tells them, so that what works on files works on a live topic. The bytes in them are for ``from_kafka`` and
``to_kafka``; offsets, checkpoints and the connection are the connector's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter

from kafka_msgs.errors import OptionError

__all__ = ["connector_packages", "read_stream", "write_stream"]

_CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_PASSED_OVER: Final = frozenset({"__consumer_offsets", "__share_group_state", "__transaction_state"})
_HEADERS: Final = "array<struct<key:string,value:binary>>"
_WRITTEN: Final = frozenset({"topic", "partition", "key", "value", "headers"})


def connector_packages(version: str = pyspark.__version__) -> str:
    """Return the connector's coordinates on Maven Central, for ``spark.jars.packages`` or ``spark-submit --packages``.

    The connector is released with Spark and under its version: by default, that of the Spark installed here. What it
    depends on (Kafka's Java client, mainly) comes with it, at the versions that it names.
    """
    return f"{_CONNECTOR}:{version}"


def read_stream(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    *,
    starting: str = "earliest",
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the records of topics as a stream of rows, raw, with names and types of ``kafka-log``.

    The columns are ``topic``, ``partition``, ``offset``, ``timestamp`` (null for a record without one),
    ``timestampType``, ``key``, ``value`` and ``headers``. ``bootstrap`` is ``host:port`` or several, with commas;
    ``topic`` a name or several, with commas. ``starting`` is where a stream without a checkpoint begins:
    ``earliest``, ``latest``, or offsets as the connector has them in JSON. ``options`` are further options of the
    connector, such as ``maxOffsetsPerTrigger`` or, for its client, ``kafka.isolation.level``.

    Raises ``OptionError`` for a topic that is internal to Kafka, as the connector passes over these without a word, and
    Spark's ``AnalysisException`` where the connector is not on the class path of the session.
    """
    for name in topic.split(","):
        if name.strip() in _PASSED_OVER:
            reason = (
                f"{name.strip()} is internal to Kafka, and Spark's connector reads no such topic; its files can be read"
            )
            raise OptionError(source="kafka", option="topic", value=topic, reason=reason)
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", starting)
        .option("includeHeaders", "true")
        .options(**(options or {}))
    )
    return reader.load().select(
        "topic",
        "partition",
        "offset",
        sf.nullif("timestamp", sf.timestamp_millis(sf.lit(-1))).alias("timestamp"),
        "timestampType",
        "key",
        "value",
        sf.coalesce("headers", sf.array().cast(_HEADERS)).alias("headers"),
    )


def write_stream(
    rows: DataFrame, bootstrap: str, *, topic: str | None = None, options: Mapping[str, str] | None = None
) -> DataStreamWriter:
    """Return a writer, to be given a checkpoint and started, that appends a stream of rows to a topic.

    Of the rows it takes the columns ``key``, ``value``, ``headers`` and ``partition`` as far as they have them, all
    but ``value`` optional, and ``topic``, which is required where the argument is not given and overridden where it is.
    Other columns are left out. ``options`` are further options of the connector. A batch that was cut short is written
    again: readers may see its records twice, as the connector has no transactions.
    """
    wanted = _WRITTEN - {"topic"} if topic is not None else _WRITTEN
    writer = (
        rows.select(*(name for name in rows.columns if name in wanted))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("includeHeaders", "true")
        .options(**(options or {}))
    )
    return writer if topic is None else writer.option("topic", topic)
