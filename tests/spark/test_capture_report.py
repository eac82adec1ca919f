"""The job ``capture-report`` returns the counts that plain Python finds in the same captures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_msgs.analysis.capture_clients import ClientTally
from kafka_msgs.capture import CaptureFault, Exchange, read_exchanges
from kafka_msgs.capture.summary import CaptureSummary, summarize
from kafka_msgs.report import BarPlot, LinePlot, Table
from kafka_msgs.spark.jobs.capture_report import COLUMNS, JOB, capture_report
from kafka_msgs.spark.jobs.job import run
from tests.support.recordings import PACKETS, port_of

FILES = ("sasl.pcap", "shop.pcapng")
PORTS = [port_of(name) for name in FILES]


@pytest.fixture(scope="module")
def exchanges(spark: SparkSession) -> DataFrame:
    options = {"ports": ",".join(map(str, PORTS)), "columns": ",".join(COLUMNS)}
    return spark.read.format("kafka-capture").options(**options).load([str(PACKETS / name) for name in FILES])


def items() -> list[Exchange | CaptureFault]:
    return [item for name in FILES for item in read_exchanges(PACKETS / name, ports=PORTS)]


def rows(table: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in table.collect()]


@pytest.fixture(scope="module")
def tables(exchanges: DataFrame) -> dict[str, list[dict[str, Any]]]:
    return {name: rows(table) for name, table in capture_report(exchanges).items()}


@pytest.fixture(scope="module")
def expected() -> CaptureSummary:
    return summarize(items())


def test_figures_of_every_api(tables: dict[str, list[dict[str, Any]]], expected: CaptureSummary) -> None:
    found = {(row["apiKey"], row["version"]): row for row in tables["summary"]}
    assert found.keys() == {(api.api_key, api.version) for api in expected.apis}
    for api in expected.apis:
        row = found[api.api_key, api.version]
        assert (row["p50Us"], row["p90Us"], row["p99Us"]) == pytest.approx(api.latencies)
        assert {name: row[name] for name in ("api", "exchanges", "answered", "maxUs", "problems")} == {
            "api": api.api,
            "exchanges": api.exchanges,
            "answered": api.answered,
            "maxUs": api.longest,
            "problems": api.problems,
        }
        assert (row["requestBytes"], row["responseBytes"]) == (api.request_bytes, api.response_bytes)
        assert (row["errors"], row["clients"]) == (sum(api.errors.values()), len(api.clients))


def test_error_codes_by_name(tables: dict[str, list[dict[str, Any]]], expected: CaptureSummary) -> None:
    assert {(row["apiKey"], row["version"], row["name"]): row["count"] for row in tables["errors"]} == {
        (api.api_key, api.version, name): count for api in expected.apis for name, count in api.errors.items()
    }


def test_clients(tables: dict[str, list[dict[str, Any]]], expected: CaptureSummary) -> None:
    assert {(row["clientId"], row["apiKey"], row["version"]): row["exchanges"] for row in tables["clients"]} == {
        (client, api.api_key, api.version): count for api in expected.apis for client, count in api.clients.items()
    }


def test_exchanges_by_second(tables: dict[str, list[dict[str, Any]]]) -> None:
    assert {(row["secondMs"], row["api"]): row["exchanges"] for row in tables["seconds"]} == Counter(
        (each.request.time_us // 10**6 * 1000, each.api) for each in items() if isinstance(each, Exchange)
    )
    assert all(row["second"].timestamp() * 1000 == row["secondMs"] for row in tables["seconds"])


def test_nothing_is_dropped_silently(tables: dict[str, list[dict[str, Any]]], expected: CaptureSummary) -> None:
    kinds = Counter(row["kind"] for row in tables["problems"])
    counts = Counter[str](expected.faults)
    counts["undecoded"] = sum(api.problems for api in expected.apis)
    assert kinds == counts
    assert len(tables["facts"]) == len(items())


def test_a_run_leaves_tables_and_a_page(exchanges: DataFrame, expected: CaptureSummary, tmp_path: Path) -> None:
    outcome = run(JOB, {"exchanges": exchanges}, str(tmp_path / "out"))
    names = {path.name for path in outcome.files}
    assert {"report.html", "report.json", "report.prom", "latency.svg", "exchanges.svg", "clients.svg"} == names
    assert {step.name for step in JOB.steps} <= {path.name for path in (tmp_path / "out").iterdir()}
    bars, _ = (each for each in outcome.report.sections if isinstance(each, BarPlot))
    (lines,) = (each for each in outcome.report.sections if isinstance(each, LinePlot))
    assert len(bars.labels) == min(12, len([api for api in expected.apis if api.answered]))
    counts = Counter(each.api for each in items() if isinstance(each, Exchange))
    assert {name: sum(filter(None, values)) for name, values in lines.series.items()} == {
        name: counts[name] for name in lines.series
    }


def test_slow_clients_have_the_figures_that_one_process_counts(tables: dict[str, list[dict[str, Any]]]) -> None:
    tally = ClientTally()
    for name in FILES:
        for item in read_exchanges(PACKETS / name, ports=PORTS):
            tally.add(name, item)
    found = {(row["clientId"], row["software"]): row for row in tables["slowClients"]}
    expected = {(row["clientId"], row["software"]): row for row in tally.rows()}
    assert found.keys() == expected.keys()
    assert all(found[each] == pytest.approx(row) for each, row in expected.items())


def test_the_report_shows_quantiles_of_enough_answers_only(
    tables: dict[str, list[dict[str, Any]]], exchanges: DataFrame
) -> None:
    report = JOB.report({"exchanges": exchanges, **capture_report(exchanges)})
    shown = next(each for each in report.sections if isinstance(each, Table))
    found = [dict(zip(shown.columns, row, strict=True)) for row in shown.rows]
    answered = {(row["apiKey"], row["version"]): row for row in tables["summary"]}
    assert {row["answered"] >= 10 for row in found} == {True, False}
    for row in found:
        known = answered[row["apiKey"], row["version"]]
        for name, fewest in (("p50Us", 10), ("p90Us", 10), ("p99Us", 100)):
            assert row[name] == (known[name] if row["answered"] >= fewest else None)
        assert row["maxUs"] == known["maxUs"]


def test_latencies_have_the_same_unit_in_table_and_plot(exchanges: DataFrame) -> None:
    report = JOB.report({"exchanges": exchanges, **capture_report(exchanges)})
    shown = next(each for each in report.sections if isinstance(each, Table))
    bars = next(each for each in report.sections if isinstance(each, BarPlot))
    longest = [row[shown.columns.index("maxUs")] for row in shown.rows if row[shown.columns.index("answered")]]
    assert (bars.unit, list(bars.series["max"])) == ("latency in microseconds", longest[:12])


def test_a_capture_without_exchanges(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes((PACKETS / "sasl.pcap").read_bytes()[:24])
    found = spark.read.format("kafka-capture").option("columns", ",".join(COLUMNS)).load(str(path))
    report = JOB.report({"exchanges": found, **capture_report(found)})
    assert not any(isinstance(each, BarPlot | LinePlot) or each.rows for each in report.sections)
