"""Tables made of whole log directories by one core in Arrow, which runs in one process or in the tasks of Spark.

``records`` writes the records of log directories to Parquet. Needs the extra ``arrow``.
"""

from kafka_msgs.errors import MissingExtraError

try:
    import pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.pipeline", extra="arrow", package="pyarrow") from error
