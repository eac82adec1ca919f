"""Engines: what runs a job over log directories, in this process, in a pool of processes, or in Spark tasks.

``job`` controls a run. ``replicas`` lists the inputs and chooses one replica per partition, ``plan`` cuts partitions
into ranges and packs them into tasks, and ``partition_task`` is the work of a task. It reads records with
``partition_reader`` into the reducer of the job, with ``partition_pass``, and saves states with ``checkpoint``.
``local`` and ``spark`` only call tasks. ``frames`` returns the tables of jobs as lazy DataFrames. ``record_files``
writes the records of log directories to Parquet.

``kafka_msgs.analysis`` defines the jobs, and ``kafka_msgs.tables`` commits the output of a run. Needs the extra
``arrow``.
"""

from kafka_msgs.errors import MissingExtraError

try:
    import pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.engines", extra="arrow", package="pyarrow") from error
