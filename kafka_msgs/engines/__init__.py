"""Tables built from complete log directories. The same Arrow code runs in one process or in Spark tasks.

``record_files`` writes the records of log directories to Parquet. The other modules implement jobs that run
incrementally. ``job`` controls a run and ``partition_task`` a task. ``partition_reader`` reads records from files,
``checkpoint`` saves the state for the next run, and ``table_versions`` publishes tables in other formats.
``kafka_msgs.tables`` commits the output of a run.

``group_offsets`` and ``group_state`` keep only the records that determine the final state of a partition
(``live_records``). ``record_classification`` determines the role of each record; ``offset_tables`` and ``group_rows``
decode the remaining records. ``topic_profile`` aggregates records into batches (``batch_rows``, ``batch_table``), and
batches into ``hourly_stats``. Reports have separate modules. Needs the extra ``arrow``.
"""

from kafka_msgs.errors import MissingExtraError

try:
    import pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.engines", extra="arrow", package="pyarrow") from error
