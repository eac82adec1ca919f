"""Log directory access by jobs on the driver."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafka_msgs.engines.plan import NO_SPLIT
from kafka_msgs.engines.replicas import JobInputs, list_replicas
from tests.support.counting_filesystem import as_bucket
from tests.support.transactional_log import History


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "bare"])
def test_the_end_of_a_remote_partition_is_found_near_it(
    indexed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "events-0"
    home.mkdir()
    history = History(home, random.Random(5), size=1000)
    history.write(segments=2, steps=200)
    last = max(home.glob("*.log"))
    if not indexed:
        last.with_suffix(".index").unlink()
    with monkeypatch.context() as patch:
        counted = as_bucket(tmp_path, patch)
        inputs = JobInputs.at(["s3://bucket/events-0"])
        (replica,) = list_replicas(inputs.roots[0], 0, inputs.directories[0].path, None, NO_SPLIT)
        assert replica["endOffset"] == history.next_offset
    assert counted.total <= (last.stat().st_size // 5 if indexed else last.stat().st_size)
