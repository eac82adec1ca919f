"""The jobs, which summarize complete log directories and captures as tables and a report.

Each job has a module; ``job`` contains the shared code. This module imports none of them, so that each job loads only
its dependencies. Needs the extra ``spark``.
"""

from kafka_msgs.errors import MissingExtraError

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.spark.jobs", extra="spark", package="pyspark") from error
