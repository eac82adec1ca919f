"""Registration of data sources and functions with a Spark session.

Defines the list of data sources, and the filesystem options of a session. ``sql`` registers the functions, and
``dependencies`` ships the code.
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

_LOG_SOURCE: Final = "kafka_msgs.spark.sources.log"
_SOURCES: Final = {
    _LOG_SOURCE: "KafkaLogSource",
    "kafka_msgs.spark.sources.counts": "KafkaLogCountsSource",
    "kafka_msgs.spark.sources.offsets": "KafkaOffsetsSource",
    "kafka_msgs.spark.sources.cluster_metadata": "KafkaClusterMetadataSource",
    "kafka_msgs.spark.sources.capture": "KafkaCaptureSource",
    "kafka_msgs.spark.sources.live": "KafkaLiveSource",
}
"""The data sources. Sources whose extra is not installed are omitted."""

_REGISTERED: Final[WeakKeyDictionary[SparkSession, FilesystemOptions]] = WeakKeyDictionary()
"""The filesystem options with which the sources were registered, by session."""

_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_BY_DEFAULT: Final = ("-default.xml", "Set by Spark to default values")
"""The suffixes of Hadoop's source names for default settings."""


def register(spark: SparkSession, *, ship: bool = True, settings: Mapping[str, str] | None = None) -> None:
    """Register the data sources and SQL functions with a session, and ship the code to its executors.

    Call it once per session, in classic or Connect mode. With ``ship=False``, the executors must have the same version
    of the package installed.

    The file sources use the session's current filesystem options, such as ``spark.hadoop.fs.s3a.endpoint``;
    ``settings``, without the prefix ``spark.hadoop``, take precedence. Call it again after a change of options: tables
    loaded later use the new ones.
    """
    if ship:
        ship_code(spark)
    known = _REGISTERED[spark] = FilesystemOptions.from_mapping(settings or {}, "register").over(
        session_settings(spark)
    )
    observed = {_LOG_SOURCE: "ObservedLogSource"} if spark.conf.get(_PUSHDOWN, "false") == "true" else {}
    for module, name in (_SOURCES | observed).items():
        try:
            source = getattr(import_module(module), name)
        except MissingExtraError:
            continue
        spark.dataSource.register(_with_settings(source, known))
    register_functions(spark)


def _with_settings(source: type[Any], fs_options: FilesystemOptions) -> type[Any]:
    """Return a source class with the filesystem options of a session, which is sent to the workers with them."""
    same = source.fs_options == fs_options
    return source if same else type(source.__name__, (source,), {"fs_options": fs_options, "__doc__": source.__doc__})


def registered_settings(spark: SparkSession) -> FilesystemOptions:
    """Return the filesystem options of a session's sources, or of the session itself before ``register``."""
    return _REGISTERED[spark] if spark in _REGISTERED else session_settings(spark)


def session_settings(spark: SparkSession) -> FilesystemOptions:
    """Return the filesystem options in the configuration of a session.

    Spark's settings take precedence. Hadoop's own settings are read only in a classic session. Spark Connect does not
    return settings that it considers secret.
    """
    of_spark = FilesystemOptions.from_spark_conf(dict(spark.conf.getAll))
    return of_spark.over(_of_hadoop(spark)) if is_classic(spark) else of_spark


def _of_hadoop(spark: Any) -> FilesystemOptions:
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    found = {
        f"{prefix}{name}": value for prefix in PREFIXES for name, value in dict(conf.getPropsWithPrefix(prefix)).items()
    }
    return FilesystemOptions.select({name: value for name, value in found.items() if _was_made(conf, name)})


def _was_made(conf: Any, name: str) -> bool:
    """Return whether a setting was set explicitly, and is not one of Hadoop's defaults."""
    sources = list(conf.getPropertySources(name) or ())
    return bool(sources) and not str(sources[-1]).endswith(_BY_DEFAULT)
