"""Tables made of whole log directories by one core in Arrow, which runs in one process or in the tasks of Spark.

``record_files`` writes the records of log directories to Parquet. The other modules are jobs, which go on from an
earlier run. ``job`` is the course of a run, ``partition_task`` that of a task, ``partition_reader`` reads records from
files, ``checkpoint`` keeps what the next run needs, ``table_output`` and ``table_versions`` own what is written where.

``group_offsets`` and ``group_state`` keep the few records of a partition that count at its end (``live_records``):
``record_classification`` knows what they are, ``offset_tables`` and ``group_rows`` decode the ones that are left.
``topic_profile`` adds records up to batches (``batch_rows``, ``batch_table``), and these to ``hourly_stats``. Reports
are made by modules of their own. Needs the extra ``arrow``.
"""

from kafka_msgs.errors import MissingExtraError

try:
    import pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.pipeline", extra="arrow", package="pyarrow") from error
