"""Fetch responses without progress: the consumer reports them, as Kafka's does, instead of repeating requests."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from kafka_msgs.client import TopicPartition
from kafka_msgs.errors import NoProgressError
from kafka_msgs.messages.fetch_request import FetchRequest
from tests.support.simulated_groups import GroupCluster, User

T0 = TopicPartition("t", 0)
PARTS = {"half a batch": lambda first, second: second[:-1], "a batch before the position": lambda first, second: first}


@pytest.mark.parametrize("part", PARTS)
def test_a_response_without_a_whole_batch_at_the_position_is_an_error_after_three(part: str) -> None:
    """A15: such responses were requested thousands of times per second without an error."""
    cluster = GroupCluster({"t": 1})
    cluster.produce("t", 0, [b"1", b"2"])
    cluster.produce("t", 0, [b"3"])
    useless = PARTS[part](*cluster.batches[T0])

    def answer(node: int, request: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return None
        response: Any = cluster._fetch(request)[0]
        topics = tuple(
            evolve(topic, partitions=tuple(evolve(each, records=useless) for each in topic.partitions))
            for topic in response.responses
        )
        return evolve(response, responses=topics)

    cluster.override = answer
    user = User(cluster, group_id=None)
    user.core.set_partitions([T0])
    user.core.seek({T0: 2})
    for _ in range(2):
        before = len(fetches(cluster))
        with pytest.raises(NoProgressError, match="t-0"):
            user.poll(30.0)
        assert len(fetches(cluster)) - before == 3
    cluster.override = None
    assert user.values(1) == [b"3"]
    user.close()


def fetches(cluster: GroupCluster) -> list[Any]:
    """Return the Fetch requests with partitions."""
    return [each for each in cluster.requests if isinstance(each, FetchRequest) and each.topics]
