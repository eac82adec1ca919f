"""A job that is killed before any of its changes: readers see one whole run, and the next run completes the tables.

``python -m tests.campaigns.killed_jobs`` kills runs before every change, also on HDFS.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.killed_runs import Output, check_steps
from tests.support.s3_server import s3_process

SOME = {"parquet": range(0, 200, 17), "delta": range(0, 200, 23), "iceberg": range(0, 200, 37)}
"""The changes before which runs are killed."""


@pytest.mark.parametrize("form", SOME)
def test_readers_see_whole_runs_on_disk(tmp_path: Path, form: str) -> None:
    assert set(check_steps(tmp_path, Output(str(tmp_path / "out"), form=form), SOME[form])) == {"old", "new"}


@pytest.mark.slow
def test_readers_see_whole_runs_on_s3(tmp_path: Path) -> None:
    with s3_process() as server:
        server.store().create_dir("bucket")
        output = Output("s3a://bucket/out", server.settings)
        assert "old" in set(check_steps(tmp_path, output, range(3, 100, 31)))
