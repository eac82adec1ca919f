"""Shared fixtures of the consumer tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.simulated_groups import GroupCluster


@pytest.fixture
def cluster() -> Iterator[GroupCluster]:
    """A cluster with six partitions of ten records, and a second topic."""
    made = GroupCluster({"t": 6, "u": 2})
    for number in range(6):
        made.produce("t", number, [b"%d-%d" % (number, each) for each in range(10)])
    yield made
    assert made.network.task_count == 0, "a piece of logic is left behind"
