"""Valid combinations of options of the group commands, and parsing of option values, without a broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from kafka_msgs import __version__
from kafka_msgs.admin.offset_resets import OffsetTarget
from kafka_msgs.cli.broker_options import ClusterOptions
from kafka_msgs.cli.group_commands import read_actions
from kafka_msgs.cli.group_commands.option_rules import GroupCommandOptions
from kafka_msgs.cli.group_commands.reset_targets import offsets_in, target_of
from kafka_msgs.cli.group_commands.specs import GroupCommandSpec
from kafka_msgs.cli.group_commands.topic_scope import TopicSelection
from kafka_msgs.client.cluster_metadata import TopicPartition
from tests.support.command_line import Run

BROKER = ("--bootstrap-server", "localhost:9092")
RESET = ("--reset-offsets", "--group", "S1", "--dry-run")
ALL = "--all-input-topics"

Parse = Callable[..., GroupCommandOptions]
Refuse = Callable[..., str]


@pytest.fixture
def parse(run: Run, monkeypatch: pytest.MonkeyPatch) -> Parse:
    """Return a function that returns the parsed options of ``streams-groups`` without running it."""
    seen: list[GroupCommandOptions] = []

    def note(kind: GroupCommandSpec, asked: GroupCommandOptions, cluster: ClusterOptions, form: str) -> None:
        seen.append(asked)

    monkeypatch.setattr(read_actions, "run_action", note)

    def parse(*arguments: str) -> GroupCommandOptions:
        result = run("streams-groups", *BROKER, *arguments)
        assert result.exit_code == 0, result.output
        return seen.pop()

    return parse


@pytest.fixture
def refuse(run: Run) -> Refuse:
    """Return a function that returns the last line of standard error of an invalid ``streams-groups`` call."""

    def refuse(*arguments: str) -> str:
        result = run("streams-groups", *arguments)
        assert result.exit_code == 2, result.output
        return result.stderr.splitlines()[-1]

    return refuse


def test_i2_a_broker_is_required(refuse: Refuse) -> None:
    assert refuse("--list") == "Error: expected --bootstrap-server or --log-dirs"


def test_i2_not_two_sources(refuse: Refuse, tmp_path: Path) -> None:
    assert refuse("--list", *BROKER, "--log-dirs", str(tmp_path)).endswith("or --log-dirs, not both")


@pytest.mark.parametrize("command", ["consumer-groups", "streams-groups", "share-groups"])
def test_i3_version_and_help(run: Run, command: str) -> None:
    assert __version__ in run(command, "--version").stdout
    assert "--describe" in run(command, "--help").stdout
    assert run(command, "--version").exit_code == run(command, "--help").exit_code == 0


def test_i5_the_timeout_is_5000_ms_by_default(run: Run, refuse: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(read_actions, "run_action", lambda kind, asked, cluster, form: seen.append(cluster.timeout))
    for options in ((), ("--timeout", "250"), ("--timeout", "2m")):
        assert run("streams-groups", *BROKER, "--list", *options).exit_code == 0
    assert seen == [5.0, 0.25, 120.0]
    assert "--timeout" in refuse("--list", *BROKER, "--timeout", "0")


@pytest.mark.parametrize("action", ["--reset-offsets", "--delete-offsets"])
def test_i6_one_group_at_a_time(refuse: Refuse, action: str) -> None:
    given = (*BROKER, action, "--group", "a", "--group", "b", ALL)
    assert refuse(*given) == f"Error: {action} takes one --group at a time"


def test_i6_many_groups_can_be_described_and_deleted(parse: Parse, refuse: Refuse) -> None:
    assert parse("--describe", "--group", "a", "--group", "b").group == ("a", "b")
    assert parse("--delete", "--group", "a", "--group", "b").group == ("a", "b")
    assert refuse(*BROKER, "--delete") == "Error: --delete needs --group"
    assert refuse(*BROKER, "--list", "--group", "a").startswith("Error: --group goes with --describe or ")


def test_i7_list_takes_states(parse: Parse) -> None:
    assert parse("--list").state is None
    assert parse("--list", "--state").state == ""
    assert parse("--list", "--state", "Empty,Not Ready").state == "Empty,Not Ready"


def test_i8_offsets_are_the_default_view(parse: Parse) -> None:
    plain = parse("--describe", "--group", "g")
    assert plain.view == parse("--describe", "--group", "g", "--offsets").view == "offsets"


def test_i9_members_and_state_are_views(parse: Parse) -> None:
    assert parse("--describe", "--group", "g", "--members").view == "members"
    assert parse("--describe", "--group", "g", "--state").view == "state"


@pytest.mark.parametrize("option", ["--offsets", "--members"])
def test_i10_views_go_with_describe_only(refuse: Refuse, option: str) -> None:
    assert refuse(*BROKER, "--list", option) == f"Error: {option} goes with --describe only"
    assert refuse(*BROKER, "--delete", "--group", "g", option) == f"Error: {option} goes with --describe only"


def test_i10_one_view_at_a_time(refuse: Refuse) -> None:
    both = refuse(*BROKER, "--describe", "--group", "g", "--members", "--state")
    assert both == "Error: expected one of --members, --state"
    assert "with --list only" in refuse(*BROKER, "--describe", "--group", "g", "--state", "Empty")


def test_one_action_at_a_time(refuse: Refuse) -> None:
    assert refuse(*BROKER) == ("Error: expected one of --list, --describe, --reset-offsets, --delete-offsets, --delete")
    assert refuse(*BROKER, "--list", "--delete", "--group", "g") == "Error: expected only one of --list, --delete"


SPECS = [
    ("--to-datetime", "2024-01-01T00:00:00.000"),
    ("--by-duration", "P1D"),
    ("--to-earliest",),
    ("--to-latest",),
    ("--shift-by", "0"),
    ("--from-file", __file__),
    ("--to-current",),
    ("--to-offset", "0"),
]


def test_i12_y22_a_reset_needs_one_specification(refuse: Refuse) -> None:
    missing = refuse(*BROKER, *RESET, ALL)
    assert missing == f"Error: expected one of {', '.join(spec[0] for spec in SPECS)}"


@pytest.mark.parametrize("second", [spec for spec in SPECS if spec[0] != "--to-earliest"], ids=lambda spec: spec[0])
def test_i12_a_reset_takes_no_two_specifications(refuse: Refuse, second: tuple[str, ...]) -> None:
    scope = () if second[0] == "--from-file" else (ALL,)
    text = refuse(*BROKER, *RESET, *scope, "--to-earliest", *second)
    assert text.startswith("Error: expected only one of ")
    assert {"--to-earliest", second[0]} == set(text.removeprefix("Error: expected only one of ").split(", "))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec[0])
def test_i12_y21_each_specification_alone_is_enough(parse: Parse, spec: tuple[str, ...]) -> None:
    scope = () if spec[0] == "--from-file" else (ALL,)
    assert parse(*RESET, *scope, *spec).reset_offsets


def test_i13_a_scope_is_required_unless_a_file_gives_it(refuse: Refuse, tmp_path: Path) -> None:
    neither = refuse(*BROKER, *RESET, "--to-earliest")
    assert neither == "Error: expected one of --all-input-topics, --input-topics"
    both = refuse(*BROKER, *RESET, "--to-earliest", ALL, "--input-topics", "orders")
    assert both == "Error: expected only one of --all-input-topics, --input-topics"
    extra = refuse(*BROKER, *RESET, "--from-file", __file__, ALL)
    assert extra == "Error: --from-file names the partitions itself, without --all-input-topics"


def test_i14_a_reset_is_decided(refuse: Refuse) -> None:
    asked = (*BROKER, "--reset-offsets", "--group", "S1", ALL, "--to-earliest")
    assert refuse(*asked) == "Error: expected one of --dry-run, --execute"
    assert refuse(*asked, "--dry-run", "--execute") == "Error: expected only one of --dry-run, --execute"
    assert refuse(*BROKER, "--list", "--execute") == "Error: --execute goes with --reset-offsets only"


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (("--to-offset", "7"), OffsetTarget.offset(7)),
        (("--to-offset", "0"), OffsetTarget.offset(0)),
        (("--to-latest",), OffsetTarget.latest()),
        (("--to-earliest",), OffsetTarget.earliest()),
        (("--to-current",), OffsetTarget.current()),
        (("--shift-by", "-5"), OffsetTarget.shift(-5)),
        (("--shift-by", "0"), OffsetTarget.shift(0)),
        (("--to-datetime", "1999-12-31T23:57:00.000"), OffsetTarget.timestamp(946_684_620_000)),
        (("--to-datetime", "1999-12-31T23:57:00.250"), OffsetTarget.timestamp(946_684_620_250)),
        (("--to-datetime", "2000-01-01T01:57:00.000+02:00"), OffsetTarget.timestamp(946_684_620_000)),
        (("--to-datetime", "1970-01-01T00:00:00.000"), OffsetTarget.timestamp(0)),
    ],
    ids=str,
)
def test_i15_specifications_become_targets(parse: Parse, arguments: tuple[str, ...], target: OffsetTarget) -> None:
    assert target_of(parse(*RESET, "--input-topics", "orders", *arguments)) == target


NOW = datetime(2024, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("P1D", timedelta(days=1)),
        ("PT6H", timedelta(hours=6)),
        ("PT6H30M", timedelta(hours=6, minutes=30)),
        ("P2DT3H4M5S", timedelta(days=2, hours=3, minutes=4, seconds=5)),
        ("PT0.5S", timedelta(seconds=0.5)),
        ("PT0S", timedelta()),
        ("pt1m", timedelta(minutes=1)),
    ],
)
def test_i15_durations_count_back_from_now(parse: Parse, text: str, before: timedelta) -> None:
    asked = parse(*RESET, ALL, "--by-duration", text)
    moment = NOW - before
    assert target_of(asked, NOW) == OffsetTarget.timestamp(int(moment.timestamp() * 1000))


def test_a_duration_longer_than_all_time_ends_at_the_epoch(parse: Parse) -> None:
    """Negative numbers would have other meanings: -1 is the latest offset, and -2 the earliest."""
    assert target_of(parse(*RESET, ALL, "--by-duration", "P99999D"), NOW) == OffsetTarget.timestamp(0)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        *(("--by-duration", text) for text in ("", "P", "PT", "1D", "P1H", "PT1D", "P-1D", "P1DT", "P99999999D")),
        *(("--to-datetime", text) for text in ("", "yesterday", "1999-12-31T24:57:00.000", "1969-12-31T23:59:59.999")),
        ("--to-offset", "-1"),
        ("--to-offset", "x"),
        ("--shift-by", "1.5"),
        ("--input-topics", "orders:x"),
        ("--input-topics", "a,,b"),
        ("--from-file", "absent.csv"),
    ],
)
def test_i15_values_that_do_not_read_are_wrong_calls(refuse: Refuse, option: str, text: str) -> None:
    assert option in refuse(*BROKER, *RESET, option, text)


def test_topics_and_partitions_of_topics(parse: Parse) -> None:
    asked = parse(*RESET, "--to-earliest", "--input-topics", "a,b", "--input-topic", "c:0,2")
    assert asked.wanted_topics == TopicSelection(partitions={"a": None, "b": None, "c": (0, 2)})
    assert asked.wanted_topics is not None
    assert asked.wanted_topics.has(TopicPartition("a", 9))
    assert [n for n in range(4) if asked.wanted_topics.has(TopicPartition("c", n))] == [0, 2]
    assert not asked.wanted_topics.has(TopicPartition("d", 0))


@pytest.mark.parametrize(
    "text",
    [
        "orders,0,7\norders,1,8\n",
        "S1,orders,0,7\nother,orders,0,1\nS1,orders,1,8\n",
        "group,topic,partition,newOffset,committedOffset\nS1,orders,0,7,3\nS1,orders,1,8,\n",
        "\ntopic,partition,offset\norders,0,7\n\norders,1,8",
    ],
    ids=["Kafka's lines", "with groups", "what a dry run printed", "with names and empty lines"],
)
def test_i15_files_of_offsets(tmp_path: Path, text: str) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(text)
    assert offsets_in(path, "S1") == {TopicPartition("orders", 0): 7, TopicPartition("orders", 1): 8}


def test_a_topic_may_be_called_topic(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("topic,0,7\n")
    assert offsets_in(path, "group") == {TopicPartition("topic", 0): 7}
    path.write_text("group,topic,0,7\n")
    assert offsets_in(path, "group") == {TopicPartition("topic", 0): 7}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("orders,0\n", "line 1: expected topic,partition,offset or group,topic,partition,offset"),
        ("orders,0,1\norders,0,x\n", "line 2: expected "),
        ("orders,-1,1\n", "line 1: expected "),
        ("orders,0,1,2,3\n", "line 1: expected "),
        ("topic,partition,offset\norders,0,1,2\n", "line 2: expected "),
        ("topic,partition\norders,0\n", "line 2: expected "),
        ("orders,0,-1\n", "line 1: expected "),
        ("orders,0,1\norders,0,2\n", "line 2: orders-0 is there twice"),
        ("other,orders,0,1\n", "there is no offset for the group 'S1' in it"),
        ("", "there is no offset for the group 'S1' in it"),
        ("\udcff,0,1\n", "invalid start byte"),
    ],
)
def test_files_that_hold_something_else_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "offsets.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(click.ClickException, match=reason):
        offsets_in(path, "S1")


def test_i16_deleting_offsets_has_the_same_scopes(parse: Parse, refuse: Refuse) -> None:
    assert parse("--delete-offsets", "--group", "S1", ALL).all_topics
    assert parse("--delete-offsets", "--group", "S1", "--input-topics", "a").wanted_topics is not None
    assert refuse(*BROKER, "--delete-offsets", "--group", "S1").startswith("Error: expected one of --all-input-topics")


def test_i18_y23_internal_topics_go_with_delete_only(parse: Parse, refuse: Refuse) -> None:
    assert parse("--delete", "--group", "S1", "--internal-topics", "a,b", "--dry-run").internal_topics
    assert "--internal-topics goes with --delete only" in refuse(*BROKER, "--list", "--internal-topics", "a")


@pytest.mark.parametrize(
    "example",
    [
        "--list",
        "--group S1 --delete",
        "--group S1 --delete-offsets --all-input-topics",
        "--group S1 --reset-offsets --all-input-topics --to-datetime 1999-12-31T23:57:00.000 --execute",
    ],
)
def test_i20_the_examples_of_kip_1071_are_understood(parse: Parse, example: str) -> None:
    asked = parse(*example.split())
    assert asked.bootstrap_server == "localhost:9092"
    assert asked.action == example.replace("--group S1 ", "").split()[0].removeprefix("--").replace("-", "_")


def test_what_changes_groups_needs_a_broker(refuse: Refuse, tmp_path: Path) -> None:
    given = ("--log-dirs", str(tmp_path), "--delete", "--group", "S1")
    assert refuse(*given) == "Error: --log-dirs goes with --list or --describe only"


@pytest.mark.parametrize("command", ["streams-groups", "consume", "produce", "lag", "call", "groups"])
def test_no_client_is_imported_for_help(command: str) -> None:
    code = (
        "import sys; from kafka_msgs.cli.command_group import command\n"
        f"command([{command!r}, '--help'], standalone_mode=False)\n"
        "loaded = [name for name in sys.modules if name.startswith(('kafka_msgs.client', 'kafka_msgs.admin'))]\n"
        "sys.exit(', '.join(loaded) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--bootstrap-server" in done.stdout
