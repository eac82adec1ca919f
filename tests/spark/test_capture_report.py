"""The job ``capture-report`` returns the counts that plain Python finds in the same captures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_msgs.analysis.capture_report import captures_report
from kafka_msgs.analysis.capture_stats import TABLES, CaptureStats, CaptureTables, capture_row
from kafka_msgs.capture import CaptureFault, Exchange, read_exchanges
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
def expected() -> CaptureTables:
    """The tables that one process computes, whose numbers tests/analysis compares with plain counts."""
    stats = CaptureStats()
    for name in FILES:
        for item in read_exchanges(PACKETS / name, ports=PORTS):
            stats.add(capture_row(str(PACKETS / name), item))
    return stats.finish()


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_those_of_one_process(
    tables: dict[str, list[dict[str, Any]]], expected: CaptureTables, table: str
) -> None:
    found = [{name: value for name, value in row.items() if name != "second"} for row in tables[table]]
    assert found == expected.tables[table] != []


def test_exchanges_by_second(tables: dict[str, list[dict[str, Any]]]) -> None:
    assert {(row["secondMs"], row["api"]): row["exchanges"] for row in tables["seconds"]} == Counter(
        (each.request.time_us // 10**6 * 1000, each.api) for each in items() if isinstance(each, Exchange)
    )
    assert all(row["second"].timestamp() * 1000 == row["secondMs"] for row in tables["seconds"])


def test_nothing_is_dropped_silently(tables: dict[str, list[dict[str, Any]]], expected: CaptureTables) -> None:
    kinds = Counter(row["kind"] for row in tables["problems"])
    assert kinds == {kind: count for kind, (count, _) in expected.kinds.items()}
    assert len(tables["facts"]) == len(items())


def test_a_run_leaves_tables_and_a_page(exchanges: DataFrame, expected: CaptureTables, tmp_path: Path) -> None:
    outcome = run(JOB, {"exchanges": exchanges}, str(tmp_path / "out"))
    names = {path.name for path in outcome.files}
    assert {"report.html", "report.json", "report.prom", "latency.svg", "exchanges.svg", "clients.svg"} == names
    assert {step.name for step in JOB.steps} <= {path.name for path in (tmp_path / "out").iterdir()}
    bars, _ = (each for each in outcome.report.sections if isinstance(each, BarPlot))
    (lines,) = (each for each in outcome.report.sections if isinstance(each, LinePlot))
    assert len(bars.labels) == min(12, len([row for row in expected.tables["summary"] if row["answered"]]))
    counts = Counter(each.api for each in items() if isinstance(each, Exchange))
    assert {name: sum(filter(None, values)) for name, values in lines.series.items()} == {
        name: counts[name] for name in lines.series
    }


def test_the_report_is_that_of_one_process(exchanges: DataFrame, expected: CaptureTables) -> None:
    assert JOB.report(JOB.tables({"exchanges": exchanges})) == captures_report(expected)


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
