"""The group commands with ``--log-dirs`` on a real broker's log directory, compared with the broker's responses."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

from kafka_msgs.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kafka_msgs.messages.list_groups_response import ListGroupsResponse
from kafka_msgs.messages.streams_group_describe_response import StreamsGroupDescribeResponse
from tests.support.command_line import Run, squeezed
from tests.support.recorded_answers import answers
from tests.support.recordings import GROUP_LOGS

FILES = ("--log-dirs", str(GROUP_LOGS))
NOTE = (
    "Note: This will only show information about consumers that use the Java consumer API "
    "(non-ZooKeeper-based consumers)."
)
"""Quoted from KIP-88, like the line about active members."""


def rows(run: Run, command: str, *arguments: str) -> list[dict[str, Any]]:
    result = run(command, *FILES, *arguments, "--output", "json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def lines(run: Run, command: str, *arguments: str) -> list[str]:
    result = run(command, *FILES, *arguments)
    assert result.exit_code == 0, result.output
    return squeezed(result.stdout)


def test_each_command_lists_its_groups_and_together_they_list_what_the_broker_listed(run: Run) -> None:
    found = {
        row["group"]: (row["type"].lower(), row["state"])
        for command in ("consumer-groups", "streams-groups", "share-groups")
        for row in rows(run, command, "--list")
    }
    (said,) = answers(ListGroupsResponse)
    assert found == {each.group_id: (each.group_type, each.group_state) for each in said.groups}


def test_i7_states_are_shown_and_choose(run: Run) -> None:
    assert lines(run, "streams-groups", "--list") == ["totals"]
    assert lines(run, "streams-groups", "--list", "--state") == ["GROUP STATE", "totals Stable"]
    assert lines(run, "streams-groups", "--list", "--state", "Not Ready,EMPTY") == ["GROUP STATE"]
    empty = rows(run, "consumer-groups", "--list", "--state", "empty")
    assert {row["group"] for row in empty} == {"audit", "inspection", "ledger", "seasonal", "settlement"}


@pytest.mark.parametrize("state", ["Empt", "PreparingRebalance", "Unknown", "Empty,,Stable"])
def test_i7_states_that_streams_groups_do_not_have_are_refused(run: Run, state: str) -> None:
    result = run("streams-groups", *FILES, "--list", "--state", state)
    assert result.exit_code == 2
    assert "expected some of Empty, NotReady, Reconciling, Assigning, Stable, Dead" in result.stderr


def test_types_are_shown_and_choose(run: Run) -> None:
    consumer = rows(run, "consumer-groups", "--list", "--type", "consumer")
    assert {row["group"] for row in consumer} == {"inspection", "shipping", "watch"}
    assert lines(run, "consumer-groups", "--list", "--type")[0] == "GROUP TYPE"
    assert run("consumer-groups", *FILES, "--list", "--type", "share").exit_code == 2


def test_b6_y2_y24_an_empty_group_shows_its_offsets_and_no_consumer(run: Run) -> None:
    result = run("consumer-groups", *FILES, "--describe", "--group", "audit")
    assert result.exit_code == 0
    assert squeezed(result.stdout) == [
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID",
        "audit orders 0 4 10 6 - - -",
        "audit orders 1 4 10 6 - - -",
    ]
    (first, _) = rows(run, "consumer-groups", "--describe", "--group", "audit")
    assert (first["memberId"], first["lag"]) == (None, 6)


def test_b7_the_warning_names_the_group_on_standard_error(run: Run) -> None:
    result = run("consumer-groups", *FILES, "--describe", "--group", "audit")
    assert result.stderr == "Error: Consumer group 'audit' has no active members.\n"
    assert "active members" not in result.stdout
    assert run("consumer-groups", *FILES, "--describe", "--group", "billing").stderr == ""


def test_b8_b11_the_output_from_before_kip_88(run: Run) -> None:
    result = run("consumer-groups", *FILES, "--describe", "--group", "audit", "--old-output")
    assert result.stdout.splitlines()[0] == NOTE
    assert "orders" not in result.stdout
    assert result.stderr == "Error: Consumer group 'audit' has no active members.\n"
    live = run("consumer-groups", *FILES, "--describe", "--group", "billing", "--old-output")
    assert live.stdout.startswith(NOTE)
    assert [line.split()[:3] for line in live.stdout.splitlines()[2:]] == [
        ["billing", "orders", "0"],
        ["billing", "orders", "1"],
    ]
    assert NOTE not in run("consumer-groups", *FILES, "--describe", "--group", "audit").output


def test_b9_a_stable_group_shows_who_has_what(run: Run) -> None:
    found = rows(run, "consumer-groups", "--describe", "--group", "shipping")
    described = next(
        group
        for response in answers(ConsumerGroupDescribeResponse)
        for group in response.groups
        if group.group_id == "shipping"
    )
    assert {(row["topic"], row["partition"], row["memberId"]) for row in found} == {
        (topic.topic_name, partition, member.member_id)
        for member in described.members
        for topic in member.assignment.topic_partitions
        for partition in topic.partitions
    }
    assert all(row["committedOffset"] == row["endOffset"] == 10 and row["lag"] == 0 for row in found)


def test_members_with_their_assignments_and_targets(run: Run) -> None:
    head, *found = lines(run, "consumer-groups", "--describe", "--group", "shipping", "--members", "--verbose")
    assert head == (
        "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT"
    )
    assert sorted(line.split()[4:] for line in found) == [
        ["1", "3", "orders:0", "3", "orders:0"],
        ["1", "3", "orders:1", "3", "orders:1"],
    ]


def test_a_static_member_adds_a_column(run: Run) -> None:
    head, *found = lines(run, "consumer-groups", "--describe", "--group", "billing", "--members")
    assert head.split()[2] == "GROUP-INSTANCE-ID"
    assert sum(line.split()[2] != "-" for line in found) == 1


@pytest.mark.parametrize("wanted", ["packing", "totals"])
def test_a_group_of_another_type_is_refused(run: Run, wanted: str) -> None:
    result = run("consumer-groups", *FILES, "--describe", "--group", wanted)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: '{wanted}' is a s")
    assert result.stderr.rstrip().endswith("group, not a consumer group")


def test_an_unknown_group_is_a_failure(run: Run) -> None:
    result = run("consumer-groups", *FILES, "--describe", "--group", "nobody")
    assert (result.exit_code, result.stderr) == (1, "Error: there is no group 'nobody'\n")


def test_i8_the_inputs_of_a_streams_group_with_their_lag(run: Run) -> None:
    assert lines(run, "streams-groups", "--describe", "--group", "totals") == [
        "GROUP TOPIC PARTITION OFFSET-LAG",
        "totals orders 0 0",
        "totals orders 1 0",
        "totals totals-by-item-repartition 0 0",
        "totals totals-by-item-repartition 1 0",
    ]


def test_i9_members_and_state_have_a_row_of_headings(run: Run) -> None:
    members = lines(run, "streams-groups", "--describe", "--group", "totals", "--members")
    assert members[0] == "GROUP MEMBER PROCESS CLIENT-ID ASSIGNMENTS"
    assert len(members) == 3
    state = lines(run, "streams-groups", "--describe", "--group", "totals", "--state")
    assert state == ["GROUP COORDINATOR (ID) ASSIGNOR STATE #MEMBERS", "totals - - Stable 2"]


def test_i11_verbose_adds_epochs_and_targets(run: Run) -> None:
    def head(*view: str) -> str:
        return lines(run, "streams-groups", "--describe", "--group", "totals", *view, "--verbose")[0]

    offsets = "GROUP TOPIC PARTITION CURRENT-OFFSET LEADER-EPOCH LOG-END-OFFSET OFFSET-LAG"
    assert head() == head("--offsets") == offsets
    assert head("--state") == "GROUP COORDINATOR (ID) ASSIGNOR STATE GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH #MEMBERS"
    assert head("--members") == (
        "GROUP TARGET-ASSIGNMENT-EPOCH TOPOLOGY-EPOCH MEMBER MEMBER-PROTOCOL MEMBER-EPOCH PROCESS CLIENT-ID ASSIGNMENTS"
    )


def test_i11_members_of_a_streams_group_as_the_broker_described_them(run: Run) -> None:
    described = next(
        group
        for response in answers(StreamsGroupDescribeResponse)
        for group in response.groups
        if group.group_id == "totals"
    )
    found = {
        row["memberId"]: row for row in rows(run, "streams-groups", "--describe", "--group", "totals", "--members")
    }
    for member in described.members:
        row = found.pop(member.member_id)
        assert (row["epoch"], row["targetEpoch"], row["topologyEpoch"], row["processId"], row["clientId"]) == (
            member.member_epoch, described.assignment_epoch, member.topology_epoch, member.process_id, member.client_id,
        )  # fmt: skip
        assert row["protocol"] == "streams"
        for task in member.assignment.active_tasks:
            assert f"{task.subtopology_id}:[{','.join(map(str, task.partitions))}];" in row["allAssignments"]
        assert "TARGET-ACTIVE: " in row["allAssignments"]
        assert "TARGET-STANDBY: " in row["allAssignments"]
    assert not found


def test_share_groups_show_their_members(run: Run) -> None:
    (member,) = rows(run, "share-groups", "--describe", "--group", "packing", "--members")
    assert (member["assignment"], member["partitions"]) == ("orders:0,1", 2)


def test_share_groups_show_where_they_begin(run: Run) -> None:
    """The members acquired all ten records of each partition, and acknowledged the two after the start offset."""
    found = rows(run, "share-groups", "--describe", "--group", "packing")
    assert [(each["topic"], each["partition"], each["committedOffset"], each["lag"]) for each in found] == [
        ("orders", 0, 8, 0),
        ("orders", 1, 8, 0),
    ]


def test_csv_has_names_and_empty_fields(run: Run) -> None:
    result = run("consumer-groups", *FILES, "--describe", "--group", "audit", "--output", "csv")
    head, first, _ = csv.reader(result.stdout.splitlines())
    assert dict(zip(head, first, strict=True)) == {
        "group": "audit", "topic": "orders", "partition": "0", "leaderEpoch": "0", "committedOffset": "4",
        "endOffset": "10", "lag": "6", "memberId": "", "clientHost": "", "clientId": "",
    }  # fmt: skip
