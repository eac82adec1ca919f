"""Topics of a running broker, through Spark's own Kafka connector.

Defines the coordinates of the connector, and the columns of live rows. These are the ``kafka-log`` columns that a
broker provides, so that code for files also works on live topics. Use ``from_kafka`` and ``to_kafka`` for the bytes in
them. The connector manages offsets, checkpoints and the connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_msgs.errors import MissingExtraError, OptionError

try:
    import pyspark
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as sf
    from pyspark.sql.streaming.readwriter import DataStreamWriter
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.spark", extra="spark", package="pyspark") from error

__all__ = ["connector_packages", "read_stream", "write_stream"]

_CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_PASSED_OVER: Final = frozenset({"__consumer_offsets", "__share_group_state", "__transaction_state"})
_HEADERS: Final = "array<struct<key:string,value:binary>>"
_WRITTEN: Final = frozenset({"topic", "partition", "key", "value", "headers"})


def connector_packages(version: str = pyspark.__version__) -> str:
    """Return the connector's coordinates on Maven Central, for ``spark.jars.packages`` or ``spark-submit --packages``.

    The connector is released with Spark and has its version, by default the version of the installed Spark. It brings
    its dependencies (mainly Kafka's Java client) in matching versions.
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
    """Return the raw records of topics as a stream of rows, with the names and types of ``kafka-log``.

    The columns are ``topic``, ``partition``, ``offset``, ``timestamp`` (null for a record without one),
    ``timestampType``, ``key``, ``value`` and ``headers``. ``bootstrap`` is one ``host:port`` or several, separated by
    commas; ``topic`` is one name or several, separated by commas. ``starting`` is the start of a stream without a
    checkpoint: ``earliest``, ``latest``, or offsets in the connector's JSON format. ``options`` are further options of
    the connector, such as ``maxOffsetsPerTrigger``, or ``kafka.isolation.level`` for its client.

    Raises ``OptionError`` for an internal topic of Kafka, because the connector silently skips these, and Spark's
    ``AnalysisException`` if the connector is not on the class path of the session.
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
    """Return a writer that appends a stream of rows to a topic. The caller sets a checkpoint and starts it.

    It writes the columns ``value`` (required), ``key``, ``headers`` and ``partition`` (optional), and ``topic``, which
    is required without the argument and overridden by it. Other columns are ignored. ``options`` are further options of
    the connector. An interrupted batch is written again, so readers may see its records twice: the connector does not
    support transactions.
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
