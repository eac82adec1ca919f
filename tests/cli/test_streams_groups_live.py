"""``kafka-msgs streams-groups`` on a real Streams application, compared with ``kafka-streams-groups``.

The application runs once, from its first member to the deletion of its group. Both commands' output is recorded while
it runs and after it has stopped; the tests check that output.
"""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import uuid4

import pytest
from attrs import define, field
from click.testing import CliRunner, Result

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.cli.command_group import command
from kafka_msgs.client import TopicPartition
from kafka_msgs.client.producer import Producer
from tests.support.cluster_topics import make_topics, new_name
from tests.support.command_line import squeezed
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.streams_application import streams_application

_INPUT: Final = new_name("cli-orders")
_VIEWS: Final = [(*view, *verbose) for view in ((), ("--members",), ("--state",)) for verbose in ((), ("--verbose",))]


@define
class Life:
    """Recorded output for a group: of our command, of Kafka's tool, and of an admin."""

    group: str
    ours: dict[tuple[str, ...], Result] = field(factory=dict)
    refused: list[Result] = field(factory=list)
    theirs: dict[tuple[str, ...], str] = field(factory=dict)
    offsets: dict[str, dict[TopicPartition, int]] = field(factory=dict)
    topics: dict[str, set[str]] = field(factory=dict)


class _Story:
    """Runs an application's group through its stages."""

    def __init__(self, cluster: ClusterAddresses, admin: Admin, group: str) -> None:
        self._cluster, self._admin = cluster, admin
        self.life = Life(group)

    def ask(self, *arguments: str) -> Result:
        result = self.life.ours[arguments] = self.look(*arguments)
        return result

    def look(self, *arguments: str) -> Result:
        servers = ("--bootstrap-server", self._cluster.bootstrap_servers, "--timeout", "30000")
        given = ("streams-groups", *servers, "--group", self.life.group, *arguments)
        return CliRunner().invoke(command, given, catch_exceptions=False)

    def compare(self, *arguments: str) -> None:
        self.ask(*arguments)
        self.life.theirs[arguments] = self._cluster.streams_groups("--group", self.life.group, *arguments)

    def note(self, moment: str) -> None:
        offsets = self._admin.list_group_offsets(self.life.group).all()
        self.life.offsets[moment] = {place: each.offset for place, each in offsets.items()}
        self.life.topics[moment] = set(self._admin.list_topics())

    def read_all(self) -> bool:
        """Return whether the application is stable and has committed the end offsets of all its inputs."""
        rows = self.look("--describe", "--verbose", "--output", "json")
        state = self.look("--describe", "--state")
        if rows.exit_code != 0 or "Stable" not in state.stdout:
            return False
        found: list[dict[str, Any]] = json.loads(rows.stdout)
        return len(found) == 4 and all(row["lag"] == 0 and row["committedOffset"] is not None for row in found)


@pytest.fixture(scope="module")
def life(kafka_cluster: ClusterAddresses, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Record a streams group from its first member to its deletion."""
    group = f"cli-totals-{uuid4().hex[:8]}"
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        _make_input(kafka_cluster, admin)
        story = _Story(kafka_cluster, admin, group)
        directory = tmp_path_factory.mktemp("streams")
        with streams_application(kafka_cluster.bootstrap_servers, group, directory, _INPUT):
            until(story.read_all)
            for view in _VIEWS:
                story.compare("--describe", *view)
            story.note("running")
            story.life.refused += [
                story.ask("--reset-offsets", "--all-input-topics", "--to-earliest", "--execute"),
                story.ask("--delete"),
            ]
        until(lambda: "Empty" in story.look("--describe", "--state").stdout)
        _after(story)
    return story.life


def _after(story: _Story) -> None:
    """Run the commands that require an empty group."""
    story.note("empty")
    story.ask("--describe", "--offsets", "--verbose")
    reset = ("--reset-offsets", "--all-input-topics", "--to-earliest")
    story.compare(*reset, "--dry-run")
    story.note("dry run")
    story.ask(*reset, "--execute")
    story.note("reset")
    story.ask("--reset-offsets", "--input-topics", "payments", "--to-earliest", "--execute")
    story.ask("--delete-offsets", "--input-topics", _INPUT)
    story.note("offsets deleted")
    story.ask("--delete", "--internal-topics", _INPUT)
    story.ask("--delete", "--dry-run")
    story.note("delete refused")
    story.ask("--delete")
    until(lambda: not internal(story.life) & set(story._admin.list_topics()))
    story.life.topics["deleted"] = set(story._admin.list_topics())
    story.ask("--describe", "--offsets")


def _make_input(cluster: ClusterAddresses, admin: Admin) -> None:
    """Fill both partitions of the topic that the application reads."""
    make_topics(cluster, NewTopic(_INPUT, 2, 1))
    with Producer(cluster.bootstrap_servers) as producer:
        for number in range(40):
            order = json.dumps({"id": number, "item": f"item-{number}"})
            producer.send(_INPUT, order.encode(), key=str(number).encode(), partition=number % 2)


def inputs(offsets: dict[TopicPartition, int]) -> dict[int, int]:
    return {place.partition: offset for place, offset in offsets.items() if place.topic == _INPUT}


@pytest.mark.parametrize("view", _VIEWS, ids=lambda view: " ".join(view) or "offsets")
def test_i8_i9_i11_what_is_described_is_what_kafka_streams_groups_describes(life: Life, view: tuple[str, ...]) -> None:
    asked = ("--describe", *view)
    assert life.ours[asked].exit_code == 0
    theirs = [line for line in squeezed(life.theirs[asked]) if line]
    assert len(theirs) > 1
    assert sorted(squeezed(life.ours[asked].stdout)) == sorted(theirs)


def test_i19_an_active_group_is_neither_reset_nor_deleted(life: Life) -> None:
    reset, deleted = life.refused
    assert reset.exit_code == deleted.exit_code == 1
    assert f"the group '{life.group}' is active: its state is " in reset.stderr
    assert f"group {life.group} NON_EMPTY_GROUP" in squeezed(deleted.stdout)
    assert life.offsets["running"] == life.offsets["empty"]
    assert life.topics["empty"] >= internal(life) | {_INPUT}


def internal(life: Life) -> set[str]:
    return {f"{life.group}-by-item-repartition", f"{life.group}-totals-changelog"}


def test_an_empty_group_shows_its_offsets(life: Life) -> None:
    shown = life.ours["--describe", "--offsets", "--verbose"]
    assert shown.exit_code == 0
    assert shown.stderr == f"Error: Streams group '{life.group}' has no active members.\n"
    for place, offset in life.offsets["empty"].items():
        assert any(
            line.startswith(f"{life.group} {place.topic} {place.partition} {offset} ")
            for line in squeezed(shown.stdout)
        )


def test_i14_a_dry_run_plans_what_kafka_streams_groups_plans_and_commits_nothing(life: Life) -> None:
    asked = ("--reset-offsets", "--all-input-topics", "--to-earliest", "--dry-run")
    assert sorted(squeezed(life.ours[asked].stdout)) == sorted(filter(None, squeezed(life.theirs[asked])))
    assert life.offsets["dry run"] == life.offsets["empty"]


def test_i13_a_reset_moves_the_inputs_only(life: Life) -> None:
    assert inputs(life.offsets["reset"]) == {0: 0, 1: 0}
    kept = {place: offset for place, offset in life.offsets["empty"].items() if place.topic != _INPUT}
    assert {place: offset for place, offset in life.offsets["reset"].items() if place.topic != _INPUT} == kept


def test_a_topic_that_the_group_does_not_read_is_refused(life: Life) -> None:
    result = life.ours["--reset-offsets", "--input-topics", "payments", "--to-earliest", "--execute"]
    assert result.exit_code == 1
    assert result.stderr == f"Error: payments: not an input topic of the group '{life.group}', which has {_INPUT}\n"


def test_i16_offsets_of_a_topic_are_deleted_and_others_are_kept(life: Life) -> None:
    result = life.ours["--delete-offsets", "--input-topics", _INPUT]
    assert squeezed(result.stdout)[1:] == [f"{_INPUT} 0 Successful", f"{_INPUT} 1 Successful"]
    assert inputs(life.offsets["offsets deleted"]) == {}
    assert life.offsets["offsets deleted"], "those of the repartition topic"


def test_i18_a_topic_that_is_not_internal_is_refused_and_nothing_is_deleted(life: Life) -> None:
    result = life.ours["--delete", "--internal-topics", _INPUT]
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {_INPUT}: not an internal topic of '{life.group}', which has ")
    assert life.topics["delete refused"] >= internal(life) | {_INPUT}
    dry = life.ours["--delete", "--dry-run"]
    assert {line.split()[1] for line in squeezed(dry.stdout)[1:]} == {life.group} | internal(life)


def test_i17_a_deleted_group_takes_its_internal_topics_with_it(life: Life) -> None:
    result = life.ours[("--delete",)]
    assert result.exit_code == 0, result.output
    assert squeezed(result.stdout)[1:] == [f"group {life.group} Successful"] + [
        f"topic {name} Successful" for name in sorted(internal(life))
    ]
    assert not life.topics["deleted"] & internal(life)
    assert _INPUT in life.topics["deleted"]
    gone = life.ours["--describe", "--offsets"]
    assert gone.exit_code == 1
    assert "GROUP_ID_NOT_FOUND" in gone.stderr
