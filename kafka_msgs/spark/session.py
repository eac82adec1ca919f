"""What makes a session of Spark know Kafka's files and messages.

Owns the list of data sources, and the settings of filesystems that a session has. What they do is left to them,
functions to ``sql``, and the way of code to ``dependencies``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.filesystems.options import PREFIXES, FilesystemOptions
from kafka_msgs.spark.dependencies import is_classic
from kafka_msgs.spark.dependencies import ship_dependencies as ship_code
from kafka_msgs.spark.sql import register_functions

__all__ = ["register", "registered_settings", "session_settings"]

_SOURCES: Final = {
    "kafka_msgs.spark.sources.log": "KafkaLogSource",
    "kafka_msgs.spark.sources.counts": "KafkaLogCountsSource",
    "kafka_msgs.spark.sources.offsets": "KafkaOffsetsSource",
    "kafka_msgs.spark.sources.cluster_metadata": "KafkaClusterMetadataSource",
    "kafka_msgs.spark.sources.capture": "KafkaCaptureSource",
    "kafka_msgs.spark.sources.live": "KafkaLiveSource",
}
"""The data sources; one that needs an extra which is not installed is left out."""

_REGISTERED: Final[WeakKeyDictionary[SparkSession, FilesystemOptions]] = WeakKeyDictionary()
"""The settings with which sessions know the sources."""

_BY_DEFAULT: Final = ("-default.xml", "Set by Spark to default values")
"""The ends of what Hadoop names as the sources of settings that nobody made."""


def register(spark: SparkSession, *, ship: bool = True, settings: Mapping[str, str] | None = None) -> None:
    """Make a session know the data sources and the functions of SQL, and send the code to its executors.

    One call does for a session, in classic and in Connect mode. Without ``ship`` nothing is sent: the executors must
    have the package installed, with the same version.

    The sources of files take the settings of filesystems that the session has now, such as
    ``spark.hadoop.fs.s3a.endpoint``; ``settings``, without ``spark.hadoop``, have precedence. Call it again where they
    have changed: tables that are loaded later take the new ones.
    """
    if ship:
        ship_code(spark)
    known = _REGISTERED[spark] = FilesystemOptions.from_mapping(settings or {}).over(session_settings(spark))
    for module, name in _SOURCES.items():
        try:
            source = getattr(import_module(module), name)
        except MissingExtraError:
            continue
        spark.dataSource.register(_with_settings(source, known))
    register_functions(spark)


def _with_settings(source: type[Any], fs_options: FilesystemOptions) -> type[Any]:
    """Return a source with settings, as a class that goes to the workers with what it has."""
    if not fs_options.items or not hasattr(source, "fs_options"):
        return source
    return type(source.__name__, (source,), {"fs_options": fs_options, "__doc__": source.__doc__})


def registered_settings(spark: SparkSession) -> FilesystemOptions:
    """Return the settings of filesystems that the sources of a session have: its own before ``register``."""
    return _REGISTERED[spark] if spark in _REGISTERED else session_settings(spark)


def session_settings(spark: SparkSession) -> FilesystemOptions:
    """Return the settings of filesystems in the configuration of a session.

    Those of Spark have precedence. Hadoop's own are read in a classic session only. Spark Connect does not hand out
    what it takes for a secret.
    """
    of_spark = FilesystemOptions.from_spark_conf(dict(spark.conf.getAll))
    return of_spark.over(_of_hadoop(spark)) if is_classic(spark) else of_spark


def _of_hadoop(spark: Any) -> FilesystemOptions:
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    found = {
        f"{prefix}{name}": value for prefix in PREFIXES for name, value in dict(conf.getPropsWithPrefix(prefix)).items()
    }
    return FilesystemOptions.from_mapping({name: value for name, value in found.items() if _was_made(conf, name)})


def _was_made(conf: Any, name: str) -> bool:
    """Whether somebody made a setting: the others are what Hadoop has by default."""
    sources = list(conf.getPropertySources(name) or ())
    return bool(sources) and not str(sources[-1]).endswith(_BY_DEFAULT)
