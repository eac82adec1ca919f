"""``kafka-msgs groups``, ``lag`` and ``profile`` on the log directory of a real broker."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Run
from tests.support.recordings import END_OFFSETS, GROUP_LOGS

OPTION = ("--log-dirs", str(GROUP_LOGS))


def listed(run: Run, command: str, *arguments: str) -> list[dict[str, Any]]:
    result = run(command, *OPTION, *arguments, "--json")
    assert result.exit_code == 0
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def test_groups_with_their_lags(run: Run) -> None:
    rows = {row["group"]: row for row in listed(run, "groups")}
    assert {name: row["lag"] for name, row in rows.items() if row["lag"]} == {
        "audit": 12, "inspection": 10, "ledger": 8, "seasonal": 9, "settlement": 17, "watch": 2,
    }  # fmt: skip
    assert rows["audit"] == {
        "group": "audit", "kind": "classic", "protocol": "consumer", "state": "Empty", "epoch": 2, "members": 0,
        "partitions": 2, "lag": 12, "ahead": 0,
        "lastCommitTimestamp": 1795286975749, "lastCommitTime": "2026-11-21T18:49:35.749Z",
    }  # fmt: skip
    assert (rows["packing"]["kind"], rows["packing"]["lastCommitTime"]) == ("share", None)


def test_members_with_what_they_have(run: Run) -> None:
    rows = listed(run, "groups", "billing", "shipping", "totals", "--members")
    assert {row["group"] for row in rows} == {"billing", "shipping", "totals"}
    billing = [row for row in rows if row["group"] == "billing"]
    assert sorted(place for row in billing for place in row["assigned"]) == ["orders-0", "orders-1"]
    assert {tuple(row["subscribedTopics"]) for row in billing} == {("orders",)}
    shipping = [row for row in rows if row["group"] == "shipping"]
    assert sorted(place for row in shipping for place in row["target"]) == ["orders-0", "orders-1"]
    assert any(place.startswith("standby ") for row in rows for place in row["assigned"])


def test_the_partition_times_of_a_streams_application(run: Run) -> None:
    rows = listed(run, "lag", "totals", "seasonal")
    times = {(row["topic"], row["partition"]): row["partitionTime"] for row in rows if row["group"] == "totals"}
    assert times["orders", 0] == "2026-11-21T18:49:58.617Z"
    assert None not in times.values()
    assert [row["partitionTimestamp"] for row in rows if row["group"] == "seasonal"] == [None]


def test_lag_of_one_group_the_largest_first(run: Run) -> None:
    rows = listed(run, "lag", "settlement")
    assert [(row["topic"], row["partition"], row["committedOffset"], row["lag"]) for row in rows] == [
        ("orders", 0, 1, 9),
        ("orders", 1, 2, 8),
    ]
    lags = [row["lag"] for row in listed(run, "lag")]
    assert lags == sorted(lags, reverse=True)
    assert len(lags) == 20


def test_a_share_group_counts_from_where_it_begins(run: Run) -> None:
    """Its members acquired all ten records of each partition. Two of them are after the start offset."""
    assert [(row["committedOffset"], row["endOffset"], row["lag"]) for row in listed(run, "lag", "packing")] == [
        (8, 10, 0),
        (8, 10, 0),
    ]
    (packing,) = listed(run, "groups", "packing")
    assert (packing["partitions"], packing["lag"]) == (2, 0)


def test_lag_against_ends_that_kafkas_tool_printed(run: Run, tmp_path: Path) -> None:
    assert listed(run, "lag", "--end-offsets", str(END_OFFSETS)) == listed(run, "lag")
    path = tmp_path / "ends.txt"
    path.write_text("orders:0:110\n")
    lags = [row["lag"] for row in listed(run, "lag", "audit", "--end-offsets", str(path))]
    assert lags == [106, None]


def test_profile_by_topic_partition_and_hour(run: Run) -> None:
    (orders,) = listed(run, "profile", "orders")
    assert (orders["records"], orders["bytes"], orders["codecs"]) == (20, 1428, ["none"])
    assert [row["partition"] for row in listed(run, "profile", "orders", "--by", "partition")] == [0, 1]
    hours = listed(run, "profile", "orders", "--by", "hour")
    assert [row["hour"] for row in hours] == ["2026-11-21T18:00:00.000Z"] * 2
    assert sum(row["bytes"] for row in hours) == orders["bytes"]


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("command", ["groups", "lag", "profile"])
def test_a_terminal_of_any_width_shows_every_row(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, width: int
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    shown = run(command, *OPTION).stdout
    assert max(map(len, shown.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines())) <= width
    assert not {"consume", "partitio", "committe"} & set(shown.split())
    for name in {row.get("group") or row["topic"] for row in listed(run, command)}:
        assert name[:12] in shown


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("groups", "nobody", *OPTION), "there is no group 'nobody'"),
        (("lag", "nobody", *OPTION), "there is no group 'nobody'"),
        (("profile", "nothing", *OPTION), "there is no topic 'nothing'"),
        (("groups", "--log-dirs", str(GROUP_LOGS / "orders-0")), "there is no partition of __consumer_offsets in it"),
        (("profile", "--log-dirs", str(GROUP_LOGS.parents[2] / "support")), "there is no partition in it"),
    ],
)
def test_failures_are_one_line(fails: Callable[..., str], arguments: tuple[str, ...], text: str) -> None:
    assert fails(*arguments).endswith(text)


@pytest.mark.parametrize("command", ["groups", "lag", "profile"])
def test_a_missing_directory_is_a_wrong_call(run: Run, tmp_path: Path, command: str) -> None:
    assert run(command).exit_code == 2
    assert run(command, "--log-dirs", str(tmp_path / "absent")).exit_code == 2


@pytest.mark.parametrize("command", ["groups", "lag", "profile"])
def test_damage_is_reported_beside_the_rows_and_in_the_status(run: Run, tmp_path: Path, command: str) -> None:
    copy = tmp_path / "logs"
    shutil.copytree(GROUP_LOGS, copy)
    path = max(copy.glob("__consumer_offsets-*/*.log"), key=lambda each: each.stat().st_size)
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)
    result = run(command, "--log-dirs", str(copy), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)
    assert result.stderr.startswith(f"{path.parent.name}: {path} at byte 0: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["groups", "lag", "profile"])
def test_no_command_needs_spark(command: str) -> None:
    code = "import sys; sys.modules.update(pyspark=None, jinja2=None);from kafka_msgs.cli import main; main()"
    arguments = [sys.executable, "-c", code, command, *OPTION, "--output", "jsonl"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.count("\n") > 5
