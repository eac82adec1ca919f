"""Tables made of whole log directories by one core in Arrow, which runs in one process or in the tasks of Spark.

``records`` writes the records of log directories to Parquet. The other modules are the job ``group-offsets``:
``survivors`` reduces the records of a partition to the few that count at its end. ``logs`` reads records from files,
``commits`` knows what they are, ``answers`` decodes the ones that are left. ``state`` keeps them for the next run.
``group_offsets`` puts this together, and ``output`` owns what is written where. Needs the extra ``arrow``.
"""

from kafka_msgs.errors import MissingExtraError

try:
    import pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.pipeline", extra="arrow", package="pyarrow") from error
