"""Log directories as Ray datasets, once and in a separate process, since Ray starts daemons."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.columns.log_table import LogTable
from tests.support.recordings import GROUP_LOGS

APPLICATION = Path(__file__).parent / "ray_app.py"
SECONDS = 240


def test_ray_counts_the_records_of_a_topic() -> None:
    done = subprocess.run(
        ["timeout", "--kill-after=10", str(SECONDS), sys.executable, str(APPLICATION), str(GROUP_LOGS), "orders"],
        env=os.environ | {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    orders = pc.equal(pa.table(LogTable(GROUP_LOGS, columns=["topic"]))["topic"], "orders")
    assert int(done.stdout.split()[-1]) == pc.sum(orders).as_py() > 0
