"""Spark tables of Kafka's files and messages: data sources, functions and jobs.

    >>> from kafka_msgs.spark import register
    >>> register(spark)  # doctest: +SKIP
    >>> spark.read.format("kafka-log").load("kafka-logs")  # doctest: +SKIP

Needs the extra ``spark``. Submodules are imported lazily, because every Spark worker imports this package to reach the
one module that it needs.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kafka_msgs.errors import MissingExtraError

if TYPE_CHECKING:
    from kafka_msgs.spark.confluent import from_confluent
    from kafka_msgs.spark.functions import from_kafka, to_kafka
    from kafka_msgs.spark.hadoop_files import read_log_through_spark
    from kafka_msgs.spark.session import register
    from kafka_msgs.spark.sources.counts import count_records
    from kafka_msgs.spark.spark_types import schema_of
else:
    _LAZY = {
        "count_records": "sources.counts",
        "from_confluent": "confluent",
        "from_kafka": "functions",
        "read_log_through_spark": "hadoop_files",
        "register": "session",
        "schema_of": "spark_types",
        "to_kafka": "functions",
    }

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if find_spec("pyspark") is None:
            raise MissingExtraError(feature="kafka_msgs.spark", extra="spark", package="pyspark")
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)


__all__ = [
    "count_records",
    "from_confluent",
    "from_kafka",
    "read_log_through_spark",
    "register",
    "schema_of",
    "to_kafka",
]
