"""``kafka-msgs consume``, ``produce`` and ``lag`` against real brokers."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import OffsetCommitValue
from kafka_msgs.admin import Admin
from kafka_msgs.client import TopicPartition
from tests.support.command_line import Run
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.terminal import AtTerminal

Servers = tuple[str, ...]


def lines(run: Run, *arguments: str, stdin: str | bytes | None = None) -> list[str]:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def read_back(run: Run, topic: str, servers: Servers) -> list[dict[str, Any]]:
    found = lines(run, "consume", topic, *servers, "--until-end", "--output", "jsonl")
    return [json.loads(line) for line in found]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("beginning", range(10)),
        ("end", ()),
        ("7", (7, 8, 9)),
        ("-3", (7, 8, 9)),
        ("-99", range(10)),
        ("99", ()),
        ("@6500", (7, 8, 9)),
        ("1970-01-01T00:00:07.500", (8, 9)),
        ("@1970-01-01T01:00:07.500+01:00", (8, 9)),
    ],
)
def test_consume_from_anywhere_until_the_end(
    run: Run, servers: Servers, filled: str, start: str, expected: range
) -> None:
    found = lines(run, "consume", filled, *servers, "--partition", "0", "--from", start, "--until-end")
    assert found == [str(number) for number in expected]


def test_consume_all_partitions_and_so_many(run: Run, servers: Servers, filled: str) -> None:
    every = lines(run, "consume", filled, *servers, "--until-end")
    assert sorted(every) == sorted([*map(str, range(10)), *map(str, range(5))])
    assert len(lines(run, "consume", filled, *servers, "--max-messages", "4")) == 4


def test_consume_in_a_group_goes_on_where_it_was(
    run: Run, servers: Servers, admin: Admin, filled: str, group: str
) -> None:
    member = ("consume", filled, *servers, "--group", group, "--max-messages")
    first = lines(run, *member, "7")
    again = lines(run, *member, "8")
    assert sorted(first + again) == sorted([*map(str, range(10)), *map(str, range(5))])
    assert sum(each.offset for each in admin.list_group_offsets(group).all().values()) == 15
    untouched = f"{group}-2"
    assert len(lines(run, *member[:-2], untouched, "--no-commit", "--max-messages", "15")) == 15
    assert admin.list_group_offsets(untouched).all() == {}


def test_lines_become_records_that_kafkas_consumer_prints(
    run: Run, servers: Servers, kafka_cluster: ClusterAddresses, topic: str
) -> None:
    result = run(
        "produce", topic, *servers, "--key-separator", ":", "--header", "from=tests", "--partition", "1",
        "--compression", "gzip", stdin="a:1\nb:x:y\nplain\n",
    )  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, f"3 records written to {topic}\n")
    printed = kafka_cluster.console_consumer(
        "--topic", topic, "--partition", "1", "--offset", "earliest", "--max-messages", "3",
        "--formatter-property", "print.key=true", "--formatter-property", "print.headers=true",
    )  # fmt: skip
    assert printed.splitlines() == ["from:tests\ta\t1", "from:tests\tb\tx:y", "from:tests\tnull\tplain"]


def test_objects_survive_the_way_through_a_topic(run: Run, servers: Servers, admin: Admin, topic: str) -> None:
    written: list[dict[str, Any]] = [
        {"key": "k", "value": "v", "headers": [["h", "1"], ["h", None]], "partition": 0, "timestamp": 1234},
        {"key": {"hex": "ff00"}, "value": None, "headers": [], "partition": 0, "timestamp": 1235},
        {"key": None, "value": {"hex": "fe"}, "headers": [["b", {"hex": "80"}]], "partition": 0, "timestamp": 1236},
    ]
    text = "".join(json.dumps(each) + "\n" for each in written)
    assert run("produce", topic, *servers, "--jsonl", stdin=text).exit_code == 0
    found = read_back(run, topic, servers)
    assert [{name: row[name] for name in written[0]} for row in found] == written
    again = "".join(json.dumps(row) + "\n" for row in found)
    assert run("produce", topic, *servers, "--jsonl", stdin=again).exit_code == 0
    assert [row["value"] for row in read_back(run, topic, servers)] == [each["value"] for each in written] * 2


def test_an_empty_value_can_be_null_and_other_values_are_json(run: Run, servers: Servers, topic: str) -> None:
    marked = ("produce", topic, *servers, "--key-separator", ":", "--partition", "0")
    assert run(*marked, "--empty-is-null", stdin="gone:\n").exit_code == 0
    assert run(*marked, stdin="empty:\n").exit_code == 0
    assert run("produce", topic, *servers, "--jsonl", "--partition", "0", stdin='{"value": {"a": [1]}}').exit_code == 0
    assert [row["value"] for row in read_back(run, topic, servers)] == [None, "", '{"a": [1]}']
    shown = lines(run, "consume", topic, *servers, "--until-end", "--keys", "=")
    assert shown == ["gone=<null>", "empty=", '<null>={"a": [1]}']


@pytest.mark.parametrize("acks", ["all", "1", "0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_every_way_to_write(run: Run, servers: Servers, topic: str, acks: str, compression: str) -> None:
    written = run("produce", topic, *servers, "--acks", acks, "--compression", compression, stdin="a\nb\n")
    assert (written.exit_code, written.stderr) == (0, f"2 records written to {topic}\n")
    assert sorted(lines(run, "consume", topic, *servers, "--max-messages", "2")) == ["a", "b"]


def test_a_topic_that_is_not_there(fails: Callable[..., str], servers: Servers) -> None:
    text = fails("produce", "absent-topic", *servers[:2], "--timeout", "1500", stdin="a\n")
    assert "absent-topic" in text


def test_numbers_by_decoders(run: Run, servers: Servers, topic: str) -> None:
    text = '{"key": {"hex": "0000000000000007"}, "value": {"hex": "00000009"}}'
    assert run("produce", topic, *servers, "--jsonl", stdin=text).exit_code == 0
    decoders = ("--key-decoder", "long", "--value-decoder", "integer", "--keys", "=")
    assert lines(run, "consume", topic, *servers, "--until-end", *decoders) == ["7=9"]


def test_records_of_internal_topics_are_opened(
    run: Run, servers: Servers, admin: Admin, filled: str, group: str
) -> None:
    admin.alter_group_offsets(group, {TopicPartition(filled, 1): 3}).all()
    found = [json.loads(line) for line in lines(run, "consume", "__consumer_offsets", *servers, "--until-end")]
    (commit,) = [row for row in found if row["type"] == "OffsetCommitKey" and row["key"]["group"] == group]
    assert (commit["key"]["topic"], commit["key"]["partition"]) == (filled, 1)
    assert OffsetCommitValue.from_json(commit["value"], commit["version"]).offset == 3


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{", "line 1: "),
        ("[]", "line 1: expected an object with some of topic, "),
        ('{"valu": 1}', "line 1: expected an object with some of topic, "),
        ('{"value": {"hex": "0"}}', "line 1: non-hexadecimal"),
    ],
)
def test_what_is_not_a_record_is_refused(
    fails: Callable[..., str], servers: Servers, topic: str, line: str, text: str
) -> None:
    assert text in fails("produce", topic, *servers, "--jsonl", stdin=line)


def test_wrong_calls(run: Run, fails: Callable[..., str], servers: Servers, topic: str) -> None:
    assert run("consume", topic, *servers, "--group", "g", "--from", "3").exit_code == 2
    assert run("consume", topic, *servers, "--from", "yesterday").exit_code == 2
    assert run("produce", topic, *servers, "--header", "x").exit_code == 2
    assert "there is no partition 9" in fails("consume", topic, *servers, "--partition", "9")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in fails("consume", "absent", *servers)
    assert run("lag", *servers, "--log-dirs", ".").exit_code == 2
    assert run("lag").exit_code == 2
    assert run("lag", "--log-dirs", ".", "--watch", "1").exit_code == 2
    assert fails("lag", *servers, "nobody") == "there is no group 'nobody'"


@pytest.fixture
def behind(admin: Admin, filled: str, group: str) -> str:
    """Create a group with a lag of 6 records in partition 0 and no lag in partition 1; return its name."""
    admin.alter_group_offsets(group, {TopicPartition(filled, 0): 4, TopicPartition(filled, 1): 5}).all()
    return group


def test_lag_in_records_and_in_time(run: Run, servers: Servers, filled: str, behind: str) -> None:
    rows = json.loads(run("lag", *servers, behind, "--json").stdout)
    assert [(row["topic"], row["partition"], row["lag"], row["unreadTimestamp"]) for row in rows] == [
        (filled, 0, 6, 4000),
        (filled, 1, 0, None),
    ]
    assert rows[0]["unreadTime"] == "1970-01-01T00:00:04.000Z"
    assert rows[0]["lagSeconds"] > 1_600_000_000
    assert rows[1]["lagSeconds"] == 0
    quick = json.loads(run("lag", *servers, behind, "--json", "--records-only").stdout)
    assert [(row["lag"], row["unreadTimestamp"], row["lagSeconds"]) for row in quick] == [(6, None, None), (0, None, 0)]


def test_several_groups_at_different_places_of_one_partition(
    run: Run, servers: Servers, admin: Admin, filled: str, group: str
) -> None:
    for number in range(4):
        admin.alter_group_offsets(f"{group}-{number}", {TopicPartition(filled, 0): 2 * number}).all()
    rows = json.loads(run("lag", *servers, *(f"{group}-{number}" for number in range(4)), "--json").stdout)
    assert {row["group"][-1]: row["unreadTimestamp"] for row in rows} == {"0": 0, "1": 2000, "2": 4000, "3": 6000}


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (("--max-lag", "6"), 0),
        (("--max-lag", "5"), 3),
        (("--max-seconds", "99999999999"), 0),
        (("--max-seconds", "60"), 3),
        (("--max-lag", "6", "--max-seconds", "60"), 3),
    ],
)
def test_the_exit_status_tells_scripts(run: Run, servers: Servers, behind: str, limits: Servers, status: int) -> None:
    assert run("lag", *servers, behind, *limits).exit_code == status


def test_watching_asks_again(run: Run, servers: Servers, admin: Admin, filled: str, behind: str) -> None:
    watch = ("--watch", "0.1", "--rounds", "3", "--output", "jsonl")
    rows = [json.loads(line) for line in lines(run, "lag", *servers, behind, *watch)]
    assert [row["lag"] for row in rows] == [6, 0] * 3


def test_watching_at_a_terminal_shows_the_newest_round_and_ctrl_c_ends_it(
    servers: Servers, admin: Admin, filled: str, behind: str
) -> None:
    """The exit status comes from the last round: 3, because the lag exceeds the limit."""
    with AtTerminal(["lag", *servers, behind, "--watch", "0.1", "--max-lag", "4"]) as terminal:
        terminal.until("\x1b[2J", times=3)
        terminal.until(behind)
        admin.alter_group_offsets(behind, {TopicPartition(filled, 0): 5}).all()
        seen = len(terminal.shown)
        while not re.search(rf"{behind} +{filled} +0 +5 +10 +5 ", terminal.shown[seen:]):
            terminal.until("\x1b[2J", times=terminal.shown.count("\x1b[2J") + 1)
        terminal.type("\x03")
        assert terminal.status() == 3
    *_, last = terminal.shown.split("\x1b[2J")
    assert last.count(filled) <= 2, "one round is on the screen, and no traceback"
    assert "Traceback" not in terminal.shown


@pytest.fixture
def drawn(servers: Servers, tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs a command with a terminal as standard error, and returns what it draws there."""

    def drawn(*arguments: str, patience: float = -1, stdin: bytes = b"") -> str:
        code = (
            "from kafka_msgs.cli import main; from kafka_msgs.cli.render import progress;"
            f"progress.PATIENCE_SECONDS = {patience}; main()"
        )
        master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        with (
            os.fdopen(master, "rb", buffering=0) as terminal,
            subprocess.Popen(
                [sys.executable, "-c", code, *arguments, *servers],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=slave, env=environment,
            ) as process,
        ):  # fmt: skip
            os.close(slave)
            assert process.stdin is not None
            process.stdin.write(stdin)
            process.stdin.close()
            shown = b""
            with suppress(OSError):  # Reading from a closed terminal raises OSError.
                while piece := terminal.read(4096):
                    shown += piece
            assert process.wait(120) == 0, shown
        return shown.decode()

    return drawn


def test_progress_is_shown_on_a_terminal(drawn: Callable[..., str], filled: str, behind: str) -> None:
    """The last drawing shows the final count. With a high patience threshold, nothing is drawn."""
    assert "15 records read" in drawn("consume", filled, "--until-end")
    assert "2 records written" in drawn("produce", filled, stdin=b"a\nb\n")
    assert "first unread records found" in drawn("lag", behind)
    assert drawn("consume", filled, "--until-end", patience=3600) == ""


METRIC = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)+)\} ([0-9.e+]+)')


def test_metrics_of_prometheus(run: Run, servers: Servers, filled: str, behind: str) -> None:
    printed = lines(run, "lag", *servers, behind, "--prometheus", "--cluster-name", "c1")
    found = {(m[1], m[2]): float(m[3]) for line in printed if (m := METRIC.fullmatch(line))}
    assert len(found) == sum(not line.startswith("# ") for line in printed) == 20
    labels = f'cluster="c1",group="{behind}",topic="{filled}",partition="0",client_id="",member_host=""'
    assert found["kafka_group_lag_records", labels] == 6
    assert found["kafka_group_committed_offset", labels] == 4
    assert found["kafka_group_end_offset", labels] == 10
    assert found["kafka_group_lag_seconds", labels] > 1_600_000_000
    assert found["kafka_group_lag_records_sum", f'cluster="c1",group="{behind}"'] == 6
    assert found["kafka_group_topic_lag_records_max", f'cluster="c1",group="{behind}",topic="{filled}"'] == 6
    types = {line.split()[2] for line in printed if line.startswith("# TYPE ")}
    assert types == {name for name, _ in found}


def test_lag_as_csv(run: Run, servers: Servers, behind: str, tmp_path: Path) -> None:
    rows = list(csv.DictReader(lines(run, "lag", *servers, behind, "--output", "csv")))
    assert [row["lag"] for row in rows] == ["6", "0"]
