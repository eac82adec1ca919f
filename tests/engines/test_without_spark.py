"""The engines of one process need no Spark, including for logs on other filesystems."""

from __future__ import annotations

import subprocess
import sys

from tests.support.recordings import LOGS

_SCRIPT = """
import sys
sys.modules["pyspark"] = None
from pathlib import Path
from pyarrow import fs
from kafka_msgs.engines import local, replicas
from kafka_msgs.engines.partition_reader import PartitionReader
from kafka_msgs.filesystems.segment_lookup import lookups_in
from kafka_msgs.log.timestamps import LogTimestamps

root = replicas.Root(Path(sys.argv[1]).parent.as_uri().replace("file://", "mock:"))
logs = fs.SubTreeFileSystem(str(Path(sys.argv[1]).parent), fs.LocalFileSystem())
from kafka_msgs.filesystems import path_resolution, resolver
opened = lambda *_: resolver.OpenedFilesystem(logs, "")
replicas.filesystem_of = path_resolution.filesystem_of = opened
files = replicas.segments_in(root, Path(sys.argv[1]).name)
(replica,) = replicas.list_replicas(root, 0, Path(sys.argv[1]).name, None, 1)
rows = sum(rows.num_rows for _, rows in PartitionReader(files))
print(replica["endOffset"], rows, LogTimestamps(lookups_in(files)).latest_timestamp() is not None)
"""


def test_logs_on_other_filesystems_are_read_without_pyspark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(LOGS / "prices-0")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    end, rows, has_time = done.stdout.split()
    assert int(end) >= int(rows) > 0
    assert has_time == "True"
