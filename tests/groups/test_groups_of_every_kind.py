"""ListGroups and DeleteGroups for each group type. Kafka's coordinator wrote the same records."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kafka_msgs.groups.compat.quirks import Quirks
from tests.coordinator.oracle import Command
from tests.coordinator.player import play
from tests.coordinator.transcripts import read

START: Final[Command] = {"op": "start", "now": 1000, "config": {"offsets.topic.num.partitions": "1"}}


def _request(api: str, version: int, body: dict[str, Any]) -> Command:
    return {"op": "request", "api": api, "version": version, "body": body}


def _heartbeat(epoch: int, topics: list[str] | None) -> Command:
    body = {"groupId": "g", "memberId": "A", "memberEpoch": epoch, "rackId": None, "subscribedTopicNames": topics}
    return _request("ShareGroupHeartbeat", 1, body)


def test_the_state_of_a_share_group_is_deleted_before_the_group() -> None:
    *_, result = play(
        [
            START,
            {"op": "topics", "brokers": [{"id": 0}], "create": [{"name": "in", "partitions": 2}]},
            _heartbeat(0, ["in"]),
            _heartbeat(-1, None),
            _request("DeleteGroups", 2, {"groupsNames": ["g"]}),
        ]
    )
    state, *tombstones = result["records"]

    assert state["type"] == "ShareGroupStatePartitionMetadata"
    assert state["value"]["initializedTopics"] == state["value"]["initializingTopics"] == []
    assert [topic["topicName"] for topic in state["value"]["deletingTopics"]] == ["in"]
    assert all(record["value"] is None and record["batch"] == state["batch"] + 1 for record in tombstones)
    assert result["answers"][0]["body"]["results"] == [{"groupId": "g", "errorCode": 0}]


@pytest.mark.parametrize(
    ("quirks", "finds"), [(Quirks(), "NotReady"), (Quirks.from_release(), "not_ready")], ids=["ours", "release"]
)
def test_streams_groups_that_are_not_ready_are_found_by_their_state(quirks: Quirks, finds: str) -> None:
    commands, _ = read("streams-no-plugin")
    join = next(each for each in commands if each.get("api") == "StreamsGroupHeartbeat")
    filters = ["NotReady", "not_ready", "Stable"]
    lists = [_request("ListGroups", 5, {"statesFilter": [name], "typesFilter": []}) for name in filters]
    _, _, *found = play([commands[0], join, *lists], quirks)

    shown = {
        name: [group["groupState"] for group in result["answers"][0]["body"]["groups"]]
        for name, result in zip(filters, found, strict=True)
    }
    assert shown == {name: ["NotReady"] if name == finds else [] for name in filters}
