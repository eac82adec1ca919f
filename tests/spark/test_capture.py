"""The source ``kafka-capture`` returns the exchanges of ``read_exchanges``, one row per exchange."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from kafka_msgs.capture import CaptureFault, Exchange, read_exchanges
from tests.support.recordings import PACKETS, port_of

SHOP = PACKETS / "shop.pcapng"
SASL = PACKETS / "sasl.pcap"
PORTS = ",".join(str(port_of(path.name)) for path in (SHOP, SASL))


def read(spark: SparkSession, *paths: Path, **options: Any) -> DataFrame:
    given = {"ports": PORTS, **options}
    return spark.read.format("kafka-capture").options(**given).load([str(path) for path in paths])


def items(path: Path) -> list[Exchange | CaptureFault]:
    return list(read_exchanges(path, ports=[port_of(path.name)]))


def moment(micros: int) -> datetime:
    """Return the time as Spark returns it to Python: in the local time zone, without naming it."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).astimezone().replace(tzinfo=None)


def expected(path: Path, exchange: Exchange) -> dict[str, Any]:
    connection, response = exchange.connection, exchange.response
    return {
        "file": str(path),
        "connection": connection.number,
        "clientHost": connection.client.host,
        "clientPort": connection.client.port,
        "serverHost": connection.server.host,
        "serverPort": connection.server.port,
        "apiKey": exchange.api_key,
        "api": exchange.api,
        "version": exchange.version,
        "correlationId": exchange.correlation_id,
        "clientId": exchange.client_id,
        "requestAt": moment(exchange.request.time_us),
        "responseAt": response and moment(response.time_us),
        "latencyUs": exchange.latency_us,
        "requestSize": exchange.request.size,
        "responseSize": response and response.size,
        "errors": [Row(path=each.path, code=each.code, name=each.name) for each in exchange.errors],
        "problem": "; ".join(each.reason for each in exchange.problems) or None,
        "request": exchange.request.payload,
        "response": response and response.payload,
        "_error": None,
        "_errorKind": None,
        "_errorBytes": None,
    }


def test_a_row_for_each_exchange(spark: SparkSession) -> None:
    rows = [row.asDict() for row in read(spark, SHOP).collect()]
    exchanges = [each for each in items(SHOP) if isinstance(each, Exchange)]
    for row, exchange in zip(rows, exchanges, strict=True):
        bodies = {name: row.pop(name) for name in ("requestJson", "responseJson")}
        row = {name: bytes(value) if isinstance(value, bytearray) else value for name, value in row.items()}
        assert row == expected(SHOP, exchange)
        assert json.loads(bodies["requestJson"]) == exchange.request_message.to_json(exchange.version)
        if exchange.response_message is None:
            assert bodies["responseJson"] is None
        else:
            assert json.loads(bodies["responseJson"]) == exchange.response_message.to_json(exchange.response_version)


def test_the_numbers_of_times_are_there_if_they_are_named(spark: SparkSession) -> None:
    assert not {"requestAtUs", "responseAtUs"} & set(read(spark, SHOP).columns)
    rows = read(spark, SHOP, columns="requestAt,requestAtUs,responseAtUs").collect()
    exchanges = [each for each in items(SHOP) if isinstance(each, Exchange)]
    assert [(row["requestAt"], row["requestAtUs"], row["responseAtUs"]) for row in rows] == [
        (moment(each.request.time_us), each.request.time_us, each.response and each.response.time_us)
        for each in exchanges
    ]


def test_a_row_for_each_fault(spark: SparkSession) -> None:
    (row,) = read(spark, SASL).where("_error is not null").collect()
    (fault,) = (each for each in items(SASL) if isinstance(each, CaptureFault))
    assert (row["_error"], row["_errorKind"], row["_errorBytes"]) == (str(fault), "sasl", fault.size)
    assert (row["api"], row["clientPort"]) == (None, fault.connection.client.port)  # type: ignore[union-attr]


def test_columns_that_are_asked_for(spark: SparkSession) -> None:
    rows = read(spark, SHOP, columns="latencyUs, api")
    assert rows.columns == ["api", "latencyUs", "_error"]
    assert rows.where("api = 'Fetch'").count() > 0


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with both captures, one of them truncated, and a file that is not a capture."""
    shutil.copy(SASL, tmp_path / "whole.pcap")
    (tmp_path / "cut.pcapng").write_bytes(SHOP.read_bytes()[:20_000])
    (tmp_path / "notes.txt").write_text("no capture")
    return tmp_path


def test_a_directory_is_the_captures_in_it_each_a_split(spark: SparkSession, directory: Path) -> None:
    rows = read(spark, directory, columns="file,api")
    assert rows.rdd.getNumPartitions() == 2
    assert {Path(row["file"]).name for row in rows.select("file").distinct().collect()} == {"whole.pcap", "cut.pcapng"}


def test_damage_by_mode(spark: SparkSession, directory: Path) -> None:
    kinds = {row["_errorKind"] for row in read(spark, directory, columns="_errorKind").distinct().collect()}
    assert kinds == {None, "sasl", "file"}
    kept = read(spark, directory, mode="DROPMALFORMED", columns="api")
    assert kept.columns == ["api"]
    assert kept.where("api is null").count() == 0
    with pytest.raises(PySparkException, match=r"CaptureError: .*cut\.pcapng: at byte [0-9]+: a block ends after"):
        read(spark, directory, mode="FAILFAST").count()
    assert read(spark, SASL, mode="FAILFAST").count() == 12


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"ports": "many"}, "OptionError.*ports or any are needed"),
        ({"columns": "latency"}, "UnknownColumnError.*similar: latencyUs"),
        ({"port": "9092"}, "OptionError.*did you mean ports"),
    ],
)
def test_options_that_mean_nothing_are_refused(spark: SparkSession, options: dict[str, str], reason: str) -> None:
    with pytest.raises(PySparkException, match=reason):
        read(spark, SHOP, **options).count()


def test_any_port(spark: SparkSession) -> None:
    assert read(spark, SHOP, ports="any", columns="api").count() == len(items(SHOP))
