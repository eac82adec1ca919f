"""Tables made of whole log directories by one core in Arrow, which runs in one process or in the tasks of Spark.

``records`` writes the records of log directories to Parquet. The other modules are jobs, which go on from an earlier
run. ``job`` is the course of a run, ``partition`` that of a task, ``logs`` reads records from files, ``state`` keeps
what the next run needs, ``output`` and ``versions`` own what is written where.

``group_offsets`` and ``group_state`` keep the few records of a partition that count at its end (``survivors``):
``commits`` knows what they are, ``answers`` and ``group_rows`` decode the ones that are left. ``topic_profile`` adds
records up to batches (``batch_rows``, ``batch_log``), and these to ``figures``. Reports are made by modules of their
own. Needs the extra ``arrow``.
"""

from kafka_msgs.errors import MissingExtraError

try:
    import pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.pipeline", extra="arrow", package="pyarrow") from error
