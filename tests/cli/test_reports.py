"""Reports of ``kafka-msgs lag``, ``groups`` and ``profile`` on the log directory of a real broker."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.command_line import Run
from tests.support.recordings import GROUP_LOGS, PACKETS

OPTION = ("--log-dirs", str(GROUP_LOGS))


def tables(directory: Path) -> dict[str, list[dict[str, Any]]]:
    data = json.loads((directory / "report.json").read_bytes())
    return {
        each["title"]: [dict(zip([column["name"] for column in each["columns"]], row, strict=True))
                        for row in each["rows"]]
        for each in data["sections"]
        if each["type"] == "table"
    }  # fmt: skip


def samples(directory: Path) -> dict[str, list[Any]]:
    text = (directory / "report.prom").read_text(encoding="utf-8")
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


@pytest.fixture
def groups(run: Run, tmp_path: Path) -> Path:
    directory = tmp_path / "new"
    result = run("lag", *OPTION, "--report", str(directory))
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        str(directory / name) for name in ("report.html", "report.json", "report.prom", "lag-time.svg")
    ]
    return directory


def test_the_report_on_groups_has_the_lags_that_the_command_prints(run: Run, groups: Path) -> None:
    printed = {
        (row["group"], row["topic"], row["partition"]): row["lag"]
        for row in json.loads(run("lag", *OPTION, "--json").stdout)
    }
    shown = {
        (row["group"], row["topic"], row["topicPartition"]): row["lag"]
        for row in tables(groups)["Lag in time and trend, the longest first"]
    }
    scraped = {
        (each.labels["group"], each.labels["topic"], int(each.labels["partition"])): each.value
        for each in samples(groups)["kafka_group_lag_records"]
    }
    assert printed == shown == scraped
    page = (groups / "report.html").read_text(encoding="utf-8")
    assert all(f"<td>{group}</td>" in page for group, _, _ in printed)


def test_records_that_wait_have_an_age_and_all_read_partitions_have_none(groups: Path) -> None:
    ages = {
        (each.labels["group"], each.labels["topic"], each.labels["partition"]): each.value
        for each in samples(groups)["kafka_group_lag_seconds"]
    }
    assert ages["billing", "orders", "0"] == 0
    assert 20 < ages["audit", "orders", "0"] < ages["settlement", "orders", "0"] < 40


def test_partition_times_of_the_streams_application_are_shown(groups: Path) -> None:
    rows = tables(groups)["Partition times of Kafka Streams"]
    assert {row["group"] for row in rows} == {"totals"}
    assert len(rows) == 4


def test_members_of_groups_share_evenly(run: Run, tmp_path: Path) -> None:
    assert run("groups", *OPTION, "totals", "watch", "--report", str(tmp_path)).exit_code == 0
    found = {row["group"]: row for row in tables(tmp_path)["Skew between members of a group"]}
    assert (found["totals"]["members"], found["totals"]["assigned"], found["totals"]["skew"]) == (2, 6, 1.0)
    assert found["watch"]["members"] == 1


def test_the_report_on_topics_has_sizes_retention_and_brokers(run: Run, tmp_path: Path) -> None:
    assert run("profile", *OPTION, "--report", str(tmp_path)).exit_code == 0
    found = tables(tmp_path)
    topics = {row["topic"]: row for row in found["Size and retention of topics"]}
    assert topics["__consumer_offsets"]["cleanup.policy"] == "compact"
    size = sum(path.stat().st_size for path in GROUP_LOGS.glob("orders-*/*.log"))
    assert (topics["orders"]["bytes"], topics["orders"]["partitions"], topics["orders"]["segments"]) == (size, 2, 8)
    (broker,) = found["Skew between brokers"]
    assert (broker["broker"], broker["replicas"], broker["preferred"]) == (1, 13, 13)
    (sample,) = samples(tmp_path)["kafka_broker_replica_bytes"]
    assert sample.labels == {"cluster": "a2Fma2EtbXNncy1jYXB0dQ", "broker": "1"}
    types = re.findall("^# TYPE (.*) gauge$", (tmp_path / "report.prom").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(types) == len(set(types)) > 10
    info = samples(tmp_path)["kafka_msgs_report_info"][0].labels
    assert (info["input"], info["cluster"]) == (str(GROUP_LOGS), "a2Fma2EtbXNncy1jYXB0dQ")


def test_the_report_on_captures_has_the_clients(run: Run, tmp_path: Path) -> None:
    capture = PACKETS / "shop.pcapng"
    result = run("capture", str(capture), "--any-port", "--summary", "--json", "--report", str(tmp_path))
    printed = json.loads(result.stdout)["summary"]
    counted = samples(tmp_path)["kafka_client_exchanges"]
    assert sum(each.value for each in counted) == printed["exchanges"]
    assert "kafka-python 3.0.12" in {each.labels["software"] for each in counted}
    assert (tmp_path / "clients.svg").is_file()


@pytest.mark.parametrize("command", ["lag", "groups"])
def test_a_report_needs_files(run: Run, tmp_path: Path, command: str) -> None:
    result = run(command, "--bootstrap-server", "localhost:1", "--report", str(tmp_path))
    assert result.exit_code == 2
    assert "--report needs --log-dirs" in result.stderr
