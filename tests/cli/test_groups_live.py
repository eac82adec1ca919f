"""The group commands against real brokers, compared with Kafka's own tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.admin import Admin
from kafka_msgs.client import TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.errors import BrokerError
from tests.support.command_line import Run, squeezed
from tests.support.kafka_cluster import ClusterAddresses

Servers = tuple[str, ...]


@pytest.fixture
def empty(admin: Admin, filled: str, group: str) -> str:
    """Create a group without members, at offset 4 of partition 0 and offset 1 of partition 1; return its name."""
    admin.alter_group_offsets(group, {TopicPartition(filled, 0): 4, TopicPartition(filled, 1): 1}).all()
    return group


def committed(admin: Admin, group: str) -> dict[int, int]:
    return {place.partition: each.offset for place, each in admin.list_group_offsets(group).all().items()}


def rows(run: Run, *arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments, "--output", "json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def of_tool(printed: str) -> list[str]:
    """Return the lines that Kafka's tool printed, without its warnings."""
    return sorted(line for line in squeezed(printed) if line and not line.startswith("Warn: "))


@pytest.mark.parametrize("view", [(), ("--members",)], ids=["offsets", "members"])
@pytest.mark.parametrize("verbose", [(), ("--verbose",)], ids=["plain", "verbose"])
def test_b6_an_empty_group_line_by_line_as_kafka_consumer_groups(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses, empty: str, view: Servers, verbose: Servers
) -> None:
    asked = ("--describe", "--group", empty, *view, *verbose)
    result = run("consumer-groups", *servers, *asked)
    assert result.exit_code == 0
    assert sorted(squeezed(result.stdout)) == of_tool(kafka_cluster.consumer_groups(*asked))
    assert result.stderr == f"Error: Consumer group '{empty}' has no active members.\n"


def test_the_state_of_an_empty_group_as_kafka_consumer_groups(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses, empty: str
) -> None:
    asked = ("--describe", "--group", empty, "--state", "--verbose")
    ours = run("consumer-groups", *servers, *asked).stdout
    assert sorted(squeezed(ours)) == of_tool(kafka_cluster.consumer_groups(*asked))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_b9_members_and_stored_offsets_as_kafka_consumer_groups(
    run: Run,
    servers: Servers,
    kafka_cluster: ClusterAddresses,
    admin: Admin,
    filled: str,
    unread: str,
    group: str,
    protocol: Any,
) -> None:
    """Partition 0 of another topic has a committed offset, but no consumer."""
    admin.alter_group_offsets(group, {TopicPartition(unread, 0): 0}).all()
    options = {"group_id": group, "group_protocol": protocol, "auto_offset_reset": "earliest"}
    with Consumer(kafka_cluster.bootstrap_servers, **options) as consumer:
        consumer.subscribe([filled])
        while len(consumer.assignment) < 2:
            consumer.poll(0.5)
        while sum(map(consumer.position, consumer.assignment)) < 15:
            consumer.poll(0.5)
        consumer.commit()
        for view in ((), ("--members",), ("--state",), ("--members", "--verbose"), ("--state", "--verbose")):
            asked = ("--describe", "--group", group, *view)
            ours = run("consumer-groups", *servers, *asked)
            assert ours.exit_code == 0, ours.output
            assert ours.stderr == ""
            consumer.poll(0.1)
            theirs = kafka_cluster.consumer_groups(*asked)
            consumer.poll(0.1)
            assert sorted(squeezed(ours.stdout)) == of_tool(theirs)
        found = rows(run, "consumer-groups", *servers, "--describe", "--group", group)
        owned = {(row["topic"], row["partition"]): row["memberId"] for row in found}
        assert owned == {
            (filled, 0): consumer.member_id, (filled, 1): consumer.member_id, (unread, 0): None
        }  # fmt: skip


def test_the_files_of_a_broker_answer_the_same(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses, empty: str
) -> None:
    asked = ("consumer-groups", "--describe", "--group", empty)
    live = rows(run, *asked, *servers)
    for node in kafka_cluster.nodes:
        assert rows(run, *asked, "--log-dirs", str(kafka_cluster.log_dir(node))) == live


def test_i1_y20_groups_of_one_type(run: Run, servers: Servers, empty: str) -> None:
    kinds = {row["group"]: row["kind"] for row in rows(run, "groups", *servers)}
    assert kinds[empty] == "classic"
    streams = {row["group"] for row in rows(run, "groups", *servers, "--streams")}
    assert streams == {name for name, kind in kinds.items() if kind == "streams"}
    assert streams == {row["group"] for row in rows(run, "groups", *servers, "--group-type", "Streams")}
    assert empty in {row["group"] for row in rows(run, "groups", *servers, "--consumer", "--list")}
    assert rows(run, "groups", *servers, "--protocol", "connect") == []


def test_groups_have_their_lag(run: Run, servers: Servers, empty: str) -> None:
    (row,) = rows(run, "groups", *servers, empty)
    assert (row["lag"], row["partitions"], row["members"], row["state"]) == (10, 2, 0, "Empty")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (("--to-earliest",), {0: 0, 1: 0}),
        (("--to-latest",), {0: 10, 1: 5}),
        (("--to-offset", "7"), {0: 7, 1: 5}),
        (("--shift-by", "-2"), {0: 2, 1: 0}),
        (("--shift-by", "100"), {0: 10, 1: 5}),
        (("--to-current",), {0: 4, 1: 1}),
        (("--to-datetime", "1970-01-01T00:00:02.500"), {0: 3, 1: 3}),
        (("--to-datetime", "1970-01-01T00:00:06.000"), {0: 6, 1: 5}),
        (("--by-duration", "PT1H"), {0: 10, 1: 5}),
    ],
    ids=str,
)
def test_i14_i15_resets_as_planned_by_kafka_consumer_groups(
    run: Run,
    servers: Servers,
    kafka_cluster: ClusterAddresses,
    admin: Admin,
    filled: str,
    empty: str,
    spec: Servers,
    expected: dict[int, int],
) -> None:
    asked = ("--reset-offsets", "--group", empty, "--topic", filled, *spec)
    planned = run("consumer-groups", *servers, *asked, "--dry-run")
    assert planned.exit_code == 0, planned.output
    assert sorted(squeezed(planned.stdout)) == of_tool(kafka_cluster.consumer_groups(*asked, "--dry-run"))
    assert committed(admin, empty) == {0: 4, 1: 1}, "a dry run commits nothing"
    done = run("consumer-groups", *servers, *asked, "--execute")
    assert done.exit_code == 0, done.output
    assert done.stdout == planned.stdout
    assert committed(admin, empty) == expected


def test_a_plan_is_a_file_that_can_be_executed(
    run: Run, servers: Servers, admin: Admin, filled: str, empty: str, tmp_path: Path
) -> None:
    reset = ("consumer-groups", *servers, "--reset-offsets", "--group", empty)
    plan = run(*reset, "--topic", f"{filled}:1", "--to-latest", "--dry-run", "--output", "csv")
    path = tmp_path / "plan.csv"
    path.write_text(plan.stdout)
    assert run(*reset, "--from-file", str(path), "--execute").exit_code == 0
    assert committed(admin, empty) == {0: 4, 1: 5}


def test_all_topics_are_those_that_the_group_has_offsets_for(
    run: Run, servers: Servers, admin: Admin, empty: str
) -> None:
    reset = ("consumer-groups", *servers, "--reset-offsets", "--group", empty, "--all-topics")
    assert run(*reset, "--to-earliest", "--execute").exit_code == 0
    assert committed(admin, empty) == {0: 0, 1: 0}


def test_a_reset_can_make_a_group(run: Run, servers: Servers, admin: Admin, filled: str, group: str) -> None:
    reset = ("consumer-groups", *servers, "--reset-offsets", "--group", group, "--topic", filled)
    assert run(*reset, "--to-offset", "3", "--execute").exit_code == 0
    assert committed(admin, group) == {0: 3, 1: 3}


def test_a_partition_without_an_offset_cannot_be_shifted_and_nothing_is_changed(
    run: Run, servers: Servers, admin: Admin, filled: str, group: str
) -> None:
    admin.alter_group_offsets(group, {TopicPartition(filled, 0): 4}).all()
    reset = ("consumer-groups", *servers, "--reset-offsets", "--group", group, "--topic", filled)
    result = run(*reset, "--shift-by", "1", "--execute")
    assert result.exit_code == 1
    assert f"('{filled}', 1)" in result.stderr or f"{filled}" in result.stderr
    assert committed(admin, group) == {0: 4}


def test_i16_offsets_of_topics_are_deleted_and_others_are_kept(
    run: Run, servers: Servers, admin: Admin, filled: str, empty: str
) -> None:
    admin.alter_group_offsets(empty, {TopicPartition("__consumer_offsets", 0): 0}).all()
    result = run("consumer-groups", *servers, "--delete-offsets", "--group", empty, "--topic", filled)
    assert result.exit_code == 0, result.output
    assert squeezed(result.stdout) == [
        "TOPIC PARTITION STATUS", f"{filled} 0 Successful", f"{filled} 1 Successful"
    ]  # fmt: skip
    assert [place.topic for place in admin.list_group_offsets(empty).all()] == ["__consumer_offsets"]


def test_i19_an_active_group_is_refused(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses, filled: str, group: str, fails: Callable[..., str]
) -> None:
    options = {"group_id": group, "auto_offset_reset": "earliest"}
    with Consumer(kafka_cluster.bootstrap_servers, **options) as consumer:  # type: ignore[arg-type]
        consumer.subscribe([filled])
        while not consumer.assignment:
            consumer.poll(0.5)
        consumer.commit()
        reset = ("consumer-groups", *servers, "--reset-offsets", "--group", group, "--topic", filled, "--to-latest")
        assert f"the group '{group}' is active: its state is " in fails(*reset, "--execute")
        dry = run(*reset, "--dry-run")
        assert dry.exit_code == 0
        assert "--execute would be refused" in dry.stderr
        deleted = run("consumer-groups", *servers, "--delete", "--group", group)
        assert deleted.exit_code == 1
        assert f"group {group} NON_EMPTY_GROUP" in squeezed(deleted.stdout)


def test_i17_a_deleted_group_is_gone(run: Run, servers: Servers, admin: Admin, empty: str) -> None:
    dry = run("consumer-groups", *servers, "--delete", "--group", empty, "--dry-run")
    assert squeezed(dry.stdout) == ["KIND NAME STATUS", f"group {empty} Planned"]
    assert committed(admin, empty), "a dry run deletes nothing"
    result = run("consumer-groups", *servers, "--delete", "--group", empty)
    assert squeezed(result.stdout) == ["KIND NAME STATUS", f"group {empty} Successful"]
    assert committed(admin, empty) == {}
    with pytest.raises(BrokerError):
        admin.describe_groups([empty]).all()


def test_a_group_that_cannot_be_deleted_hides_no_other(run: Run, servers: Servers, admin: Admin, empty: str) -> None:
    asked = ("consumer-groups", *servers, "--delete", "--group", "nobody", "--group", empty)
    for options, status in ((("--dry-run",), "Planned"), ((), "Successful")):
        result = run(*asked, *options)
        assert result.exit_code == 1
        assert squeezed(result.stdout)[1:] == ["group nobody GROUP_ID_NOT_FOUND", f"group {empty} {status}"]
        assert result.stderr.count("GROUP_ID_NOT_FOUND") == 1
    assert committed(admin, empty) == {}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--describe", "--group", "nobody"), "GROUP_ID_NOT_FOUND"),
        (("--delete", "--group", "nobody"), "GROUP_ID_NOT_FOUND"),
        (("--reset-offsets", "--group", "nobody", "--all-topics", "--to-latest", "--dry-run"), "has no offsets"),
        (("--delete-offsets", "--group", "nobody", "--topic", "x"), "has no offsets for these topics"),
        (("--reset-offsets", "--group", "g", "--topic", "absent", "--to-latest", "--dry-run"), "UNKNOWN_TOPIC"),
    ],
)
def test_failures_are_one_line(
    fails: Callable[..., str], servers: Servers, arguments: tuple[str, ...], text: str
) -> None:
    assert text in fails("consumer-groups", *servers, *arguments)


def test_a_partition_that_a_topic_does_not_have(
    fails: Callable[..., str], servers: Servers, filled: str, tmp_path: Path
) -> None:
    wanted = tmp_path / "offsets.csv"
    wanted.write_text(f"{filled},7,1")
    from_file = ("--reset-offsets", "--group", "g", "--from-file", str(wanted), "--dry-run")
    said = fails("consumer-groups", *servers, *from_file)
    assert said.startswith(f"Metadata: UNKNOWN_TOPIC_OR_PARTITION (3) for {filled}-7")
    reset = ("--reset-offsets", "--group", "g", "--topic", f"{filled}:0,7", "--to-latest", "--dry-run")
    assert fails("consumer-groups", *servers, *reset) == f"the topic '{filled}' has no partition 7"
