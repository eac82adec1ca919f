"""``kafka-msgs share-groups`` compared with ``kafka-share-groups``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from click import ClickException

from kafka_msgs import ApiKey, ShareGroupHeartbeatRequest
from kafka_msgs.admin import Admin
from kafka_msgs.cli.frame_recorder import RecordingNetwork
from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
from kafka_msgs.cli.group_commands.file_groups import FileGroups
from kafka_msgs.cli.group_commands.group_source import Offsets
from kafka_msgs.client import Client, ClientConfig, TopicPartition
from kafka_msgs.client.core import ClientCore
from tests.support.command_line import Run, squeezed
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses

Servers = tuple[str, ...]

ROWS = {
    "groups": ("group", "kind", "state", "epoch", "members", "partitions", "lag"),
    "lag": ("group", "state", "topic", "partition", "committedOffset", "endOffset", "lag", "leaderEpoch", "metadata"),
}
"""The columns that are equal for a broker and its files. Files also contain commit times, and brokers record
timestamps."""


@pytest.fixture
def shared(admin: Admin, filled: str, group: str) -> str:
    """Create a share group without members; return its name."""
    member = str(uuid4())
    for epoch, topics in ((0, (filled,)), (-1, None)):
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
        )
        assert admin.client.call(request).error_code == 0
    return group


def test_a_share_group_from_its_description_to_its_end(
    run: Run, fails: Callable[..., str], servers: Servers, kafka_cluster: ClusterAddresses, filled: str, shared: str
) -> None:
    asked = ("--group", shared)
    reset = (*asked, "--reset-offsets", "--topic", filled, "--to-earliest")
    planned = run("share-groups", *servers, *reset, "--dry-run")
    assert squeezed(planned.stdout)[1:] == [f"{shared} {filled} 0 0", f"{shared} {filled} 1 0"]
    assert run("share-groups", *servers, *reset, "--execute").exit_code == 0
    for view in ((), ("--verbose",), ("--state",), ("--state", "--verbose")):
        ours = run("share-groups", *servers, *asked, "--describe", *view)
        assert ours.exit_code == 0, ours.output
        assert ours.stderr == f"Error: Share group '{shared}' has no active members.\n"
        theirs = filter(None, squeezed(kafka_cluster.share_groups(*asked, "--describe", *view)))
        assert sorted(squeezed(ours.stdout)) == sorted(theirs)
    (row,) = json.loads(run("groups", *servers, shared, "--json").stdout)
    assert (row["kind"], row["partitions"]) == ("share", 2)
    deleted = run("share-groups", *servers, *asked, "--delete-offsets", "--topic", filled)
    assert squeezed(deleted.stdout)[1:] == [f"{filled} 0 Successful", f"{filled} 1 Successful"]
    assert "not a consumer group" in fails("consumer-groups", *servers, *asked, "--describe")
    assert run("share-groups", *servers, *asked, "--delete").exit_code == 0
    assert "GROUP_ID_NOT_FOUND" in fails("share-groups", *servers, *asked, "--describe")


def test_offsets_are_in_the_files_of_each_broker(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses, admin: Admin, filled: str, shared: str
) -> None:
    """The files contain the coordinator's values: the start offset, the leader epoch and the lag."""
    reset = ("--group", shared, "--reset-offsets", "--topic", filled, "--to-earliest", "--execute")
    assert run("share-groups", *servers, *reset).exit_code == 0
    said = BrokerGroups(admin).group_offsets([shared], share=True)
    assert {place.partition: each.lag for place, each in said[shared].items()} == {0: 10, 1: 5}
    rows = {command: _rows(run, command, shared, *servers) for command in ROWS}
    for node in kafka_cluster.nodes:
        directory = kafka_cluster.log_dir(node)
        until(partial(_says, [directory], shared, said))
        for command, row in rows.items():
            assert _rows(run, command, shared, "--log-dirs", str(directory)) == row


def _rows(run: Run, command: str, *arguments: str) -> list[dict[str, object]]:
    """Return the values that a broker and its files have in common."""
    result = run(command, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return [{name: row[name] for name in ROWS[command]} for row in json.loads(result.stdout)]


def _says(log_dirs: list[Path], group: str, said: Mapping[str, Offsets]) -> bool:
    """Return whether files contain the offsets. A node that lags behind gets them later."""
    try:
        return FileGroups(log_dirs).group_offsets([group], share=True) == said
    except ClickException:
        return False


@pytest.mark.parametrize("partitions", [1, 2])
def test_b10_one_question_for_the_offsets_of_a_group(
    kafka_cluster: ClusterAddresses, admin: Admin, filled: str, group: str, partitions: int
) -> None:
    admin.alter_group_offsets(group, {TopicPartition(filled, number): 1 for number in range(partitions)}).all()
    client = Client(kafka_cluster.bootstrap_servers)
    network = RecordingNetwork()
    client.network, client.core = (
        network,
        ClientCore(ClientConfig(bootstrap_servers=kafka_cluster.bootstrap_servers), network),
    )
    with client:
        found = BrokerGroups(Admin(client)).group_offsets([group])
    assert {place.partition: each.offset for place, each in found[group].items()} == dict.fromkeys(range(partitions), 1)
    assert len(list(network.exchanges(ApiKey.OFFSET_FETCH))) == 1
