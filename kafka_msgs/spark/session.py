"""What makes a session of Spark know Kafka's files and messages.

Owns the list of data sources. What they do is left to them, functions to ``sql``, and the way of code to ``shipping``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from pyspark.sql import SparkSession

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.spark.shipping import ship as ship_code
from kafka_msgs.spark.sql import register_functions

__all__ = ["register"]

_SOURCES: Final = {
    "kafka_msgs.spark.sources.log": "KafkaLogSource",
    "kafka_msgs.spark.sources.counts": "KafkaLogCountsSource",
    "kafka_msgs.spark.sources.offsets": "KafkaOffsetsSource",
    "kafka_msgs.spark.sources.cluster_metadata": "KafkaClusterMetadataSource",
    "kafka_msgs.spark.sources.capture": "KafkaCaptureSource",
    "kafka_msgs.spark.sources.live": "KafkaLiveSource",
}
"""The data sources; one that needs an extra which is not installed is left out."""


def register(spark: SparkSession, *, ship: bool = True) -> None:
    """Make a session know the data sources and the functions of SQL, and send the code to its executors.

    One call does for a session, in classic and in Connect mode. Without ``ship`` nothing is sent: the executors must
    have the package installed, with the same version.
    """
    if ship:
        ship_code(spark)
    for module, name in _SOURCES.items():
        try:
            source = getattr(import_module(module), name)
        except MissingExtraError:
            continue
        spark.dataSource.register(source)
    register_functions(spark)
