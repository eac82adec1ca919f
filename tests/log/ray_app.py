"""Reads a log directory in Ray, with one worker on loopback; prints the number of records in a topic.

``ray_app.py LOG_DIRECTORY TOPIC``. Ray starts daemons; they end with this process.
"""

from __future__ import annotations

import sys
from tempfile import TemporaryDirectory

import pyarrow as pa
import ray
import ray.data
from ray.data.expressions import col

from kafka_msgs.columns.log_table import LogTable

STORE = 80 << 20


def main(directory: str, topic: str) -> None:
    """Count the records in Ray's own workers."""
    with TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as home:
        ray.init(
            num_cpus=1,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=STORE,
            _node_ip_address="127.0.0.1",
            _temp_dir=home,
        )
        records = ray.data.from_arrow(pa.table(LogTable(directory, columns=["topic", "offset"])))
        print(records.filter(expr=col("topic") == topic).count())
        ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
