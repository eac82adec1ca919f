"""The statistics of captures, compared with numbers that are counted one by one here, and for any cut of the rows."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from random import Random
from typing import Any

import pytest
from attrs import asdict
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.analysis.capture_report import captures_report, highest_versions
from kafka_msgs.analysis.capture_stats import CaptureStats, CaptureTables, capture_row, quantile, summarize
from kafka_msgs.capture import Exchange, FaultKind, read_exchanges
from kafka_msgs.report import BarPlot, LinePlot, Table
from tests.analysis.test_merges import reduce_ranges
from tests.support.conversations import reply, talk
from tests.support.packets import everything, pcap, segments
from tests.support.recordings import PACKETS, port_of

FILES = ("sasl.pcap", "shop.pcapng")
ITEMS = [(name, item) for name in FILES for item in read_exchanges(PACKETS / name, ports=[port_of(name)])]
EXCHANGES = [item for _, item in ITEMS if isinstance(item, Exchange)]
PROMPT = [each for each in EXCHANGES if each.api not in ("Fetch", "JoinGroup", "SyncGroup")]


def reduced(rows: list[dict[str, Any]]) -> CaptureStats:
    stats = CaptureStats()
    for row in rows:
        stats.add(row)
    return stats


@pytest.fixture
def found() -> CaptureTables:
    return reduced([capture_row(*each) for each in ITEMS]).finish()


def latencies_of(exchanges: list[Exchange]) -> list[int]:
    return [each.latency_us for each in exchanges if each.latency_us is not None]


def test_each_api_and_version(found: CaptureTables) -> None:
    assert not found.damaged
    rows = {(row["apiKey"], row["version"]): row for row in found.tables["summary"]}
    assert rows.keys() == {(each.api_key, each.version) for each in EXCHANGES}
    for (key, version), row in rows.items():
        mine = [each for each in EXCHANGES if (each.api_key, each.version) == (key, version)]
        times = sorted(latencies_of(mine))
        sizes = [each.response.size for each in mine if each.response is not None]
        assert row == {
            "apiKey": key,
            "api": mine[0].api,
            "version": version,
            "exchanges": len(mine),
            "answered": len(times),
            "p50Us": statistics.median(times) if times else None,
            "p90Us": quantile(times, 0.9),
            "p99Us": quantile(times, 0.99),
            "maxUs": max(times, default=None),
            "requestBytes": sum(each.request.size for each in mine),
            "responseBytes": sum(sizes),
            "maxRequestSize": max(each.request.size for each in mine),
            "maxResponseSize": max(sizes, default=None),
            "problems": sum(bool(each.problems) for each in mine),
            "errors": sum(len(each.errors) for each in mine),
            "clients": len({each.client_id for each in mine if each.client_id is not None}),
        }


def test_error_codes_clients_and_seconds(found: CaptureTables) -> None:
    errors = Counter((each.api, each.version, error.name) for each in EXCHANGES for error in each.errors)
    assert {(row["api"], row["version"], row["name"]): row["count"] for row in found.tables["errors"]} == errors
    clients = Counter((each.client_id, each.api, each.version) for each in EXCHANGES)
    assert {
        (row["clientId"], row["api"], row["version"]): row["exchanges"] for row in found.tables["clients"]
    } == clients
    seconds = Counter((each.request.time_us // 10**6 * 1000, each.api) for each in EXCHANGES)
    assert {(row["secondMs"], row["api"]): row["exchanges"] for row in found.tables["seconds"]} == seconds


def test_each_client_has_its_software_its_latencies_and_its_errors(found: CaptureTables) -> None:
    rows = {(row["clientId"], row["software"]): row for row in found.tables["slowClients"]}
    assert ("audit-client", "kafka-python 3.0.12") in rows
    assert ("bare", None) in rows
    assert sum(row["exchanges"] for row in rows.values()) == len(EXCHANGES)
    row = rows["billing-1", "confluent-kafka-python 2.16.1-rdkafka-2.16.0"]
    own = [each for each in EXCHANGES if each.client_id == "billing-1"]
    prompt = latencies_of([each for each in PROMPT if each.client_id == "billing-1"])
    assert (row["exchanges"], row["measured"], row["maxUs"]) == (len(own), len(prompt), max(prompt))
    assert row["p50Us"] == statistics.median(prompt)
    assert row["errors"] == sum(len(each.errors) for each in own)


@pytest.mark.parametrize("seed", range(10))
def test_ranges_of_rows(seed: int) -> None:
    dice = Random(seed)
    rows = [capture_row(*each) for each in ITEMS]
    for row in dice.sample(rows, 60):
        row.update(dice.choice(({"problem": "cut"}, {"throttleMs": 7}, {"responseSize": None, "latencyUs": None})))
    expected = reduced(rows).finish()
    states = reduce_ranges(rows, dice, lambda _: CaptureStats(), lambda s: CaptureStats.from_checkpoint(s.checkpoint()))
    assert json.loads(json.dumps(asdict(states.finish()))) == json.loads(json.dumps(asdict(expected)))
    assert captures_report(states.finish()) == captures_report(expected)
    assert expected.kinds["undecoded"][0] == sum(row["problem"] is not None and row["_error"] is None for row in rows)


def test_faults_are_counted_with_their_bytes() -> None:
    found = summarize(everything(pcap(segments([*talk(1), ("response", reply(7)), ("response", reply(8))]))))
    assert found.kinds == {FaultKind.ORPHAN: (2, len(reply(7)) + len(reply(8)))}
    assert [row["kind"] for row in found.problems] == ["orphan", "orphan"]
    assert found.damaged


def test_a_capture_without_exchanges() -> None:
    found = summarize([])
    assert (any(found.tables.values()), found.kinds, found.damaged) == (False, {}, False)
    sections = captures_report(found).sections
    assert not any(isinstance(each, BarPlot | LinePlot) or each.rows for each in sections)
    assert quantile([], 0.5) is None


def test_only_the_first_problems_are_kept_and_all_are_counted() -> None:
    rows = [capture_row(*each) | {"problem": f"{number}"} for number, each in enumerate(ITEMS * 3)]
    report = captures_report(reduced(rows).finish())
    problems = next(each for each in report.sections if isinstance(each, Table) and each.title == "Problems")
    assert (len(problems.rows), problems.total) == (50, len(rows))


@given(values=st.lists(st.integers(0, 2**40), min_size=2, max_size=30))
def test_quantiles_are_those_of_the_standard_library(values: list[int]) -> None:
    ascending = sorted(values)
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    assert [quantile(ascending, number / 10) for number in range(1, 10)] == pytest.approx(tenths)


def test_the_report_names_the_slowest_exchanges_and_old_versions(found: CaptureTables) -> None:
    tables = {each.title: each for each in captures_report(found).sections if isinstance(each, Table)}
    slowest = tables["The slowest exchanges that do not wait on purpose"]
    assert len(slowest.rows) == 30
    prompt = sorted(latencies_of(PROMPT), reverse=True)
    assert [row[0] for row in slowest.rows] == pytest.approx([each / 1_000_000 for each in prompt[:30]])
    clients = tables["Clients, the slowest first"]
    old = " ".join(row[clients.columns.index("oldVersions")] for row in clients.rows)
    named = re.findall(r"(\w+) v(\d+) of v(\d+)", old)
    assert {"Fetch", "JoinGroup"} & {api for api, _, _ in named}
    assert all(int(low) < int(high) == highest_versions()[api] for api, low, high in named)
