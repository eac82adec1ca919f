"""``kafka-msgs sql``: SQL queries over log directories."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_msgs.cli.sql import SqlQuery
from kafka_msgs.columns.log_table import LogTable
from kafka_msgs.log.partition_discovery import Progress
from kafka_msgs.records import BatchBuilder
from kafka_msgs.registry import PayloadSerializer, StaticSchemas
from tests.support.command_line import Run
from tests.support.recordings import GROUP_LOGS

ORDERS = GROUP_LOGS / "orders-0"
EVERY = ["*", "rawHeaderKeys", "timestampMs"]


def rows(run: Run, query: str) -> list[dict[str, Any]]:
    result = run("sql", query, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) n FROM {log}",
        "SELECT topic, partition, max(l.offset) AS last FROM {log} l GROUP BY ALL ORDER BY last, topic, partition",
        "SELECT l FROM {log} l WHERE topic = 'orders' ORDER BY partition, l.offset",
        "SELECT len(CAST(l AS VARCHAR)) AS size FROM {log} l ORDER BY ALL",
        'SELECT a.key FROM {log} a JOIN {log} b USING (topic, partition, "offset", KEY) ORDER BY ALL',
        "SELECT count(*) AS n FROM {log} a NATURAL JOIN {log} b",
        "SELECT a, c FROM {log} l(a, b, c) ORDER BY ALL",
        "SELECT #2, #3 FROM {log} ORDER BY ALL",
        "WITH w AS (FROM {log} WHERE CODEC <> 'zstd') SELECT topic, \"batchSize\" FROM w ORDER BY ALL",
        "SELECT column_name FROM (DESCRIBE FROM {log}) ORDER BY ALL",
        'SELECT len(headers) AS n, sum(octet_length("value")) AS bytes FROM {log} GROUP BY ALL ORDER BY ALL',
        "SELECT epoch_ms(timestamp) AS t, topic FROM {log} WHERE topic IN (SELECT topic FROM {log}) ORDER BY ALL",
    ],
)
def test_an_answer_is_that_of_a_table_with_every_column(query: str) -> None:
    """Skipping columns that a query does not use does not change its result."""
    columns = ["*"] if "DESCRIBE" in query or "SELECT l " in query or "len(CAST" in query else EVERY
    whole = pa.table(LogTable(GROUP_LOGS, columns=columns))
    with duckdb.connect() as connection:
        connection.register("whole", whole)
        expected = connection.execute(query.format(log="whole")).fetchall()
    question = SqlQuery(query.format(log=f"log('{GROUP_LOGS}')"))
    with duckdb.connect() as connection:
        connection.register("whole", pa.table(LogTable(GROUP_LOGS, columns=question.columns)))
        assert connection.execute(query.format(log="whole")).fetchall() == expected
    names, found = question.execute(Progress())
    assert len(list(found)) == len(expected) > 0
    assert names


def test_only_columns_that_a_query_may_mean_are_read() -> None:
    assert SqlQuery(f"SELECT count(*) FROM log('{ORDERS}')").columns == []
    named = SqlQuery(f"SELECT Topic, l.offset FROM log('{ORDERS}') l WHERE codec = 'zstd'")
    assert named.columns == ["topic", "offset", "codec"]
    assert SqlQuery(f"FROM log('{ORDERS}')").columns == ["*"]


def test_values_are_as_other_commands_show_them(run: Run, tmp_path: Path) -> None:
    first = rows(
        run, f"SELECT topic, l.offset, timestamp, key, value, headers FROM log('{ORDERS}') l WHERE l.offset = 0"
    )
    assert first == [
        {
            "topic": "orders",
            "offset": 0,
            "timestamp": "2026-11-21T18:49:29.249Z",
            "key": "order-1000",
            "value": '{"order":1000,"item":"green tea"}',
            "headers": [],
        }
    ]
    others = rows(
        run, "SELECT 'a'::BLOB AS b, '\\xff'::BLOB AS x, 1.5::DECIMAL(3, 1) AS d, 'inf'::DOUBLE AS i, NULL AS n"
    )
    assert others == [{"b": "a", "x": {"hex": "ff"}, "d": 1.5, "i": "inf", "n": None}]
    assert rows(run, "SELECT 1 AS a, 2 AS a") == [{"a": 1, "a:2": 2}]


def test_forms_are_those_of_every_listing(run: Run) -> None:
    query = f"SELECT topic, count(*) AS n FROM log('{GROUP_LOGS}') WHERE topic LIKE 'or%' GROUP BY topic"
    (row,) = rows(run, query)
    assert [json.loads(line) for line in run("sql", query, "--output", "jsonl").stdout.splitlines()] == [row]
    assert list(csv.reader(run("sql", query, "--output", "csv").stdout.splitlines())) == [
        ["topic", "n"],
        ["orders", str(row["n"])],
    ]
    assert f"orders  {row['n']}" in run("sql", query).stdout


def test_paths_are_told_apart_whatever_their_names(run: Run, tmp_path: Path) -> None:
    names = ["logs", "LOGS", "a.b", 'it"s', "it's"]
    for number, name in enumerate(names):
        shutil.copytree(ORDERS, tmp_path / name / f"t{number}-0")
    for number, name in enumerate(names):
        path = str(tmp_path / name).replace("'", "''")
        assert rows(run, f"SELECT DISTINCT topic FROM log('{path}')") == [{"topic": f"t{number}"}]
    both = f"SELECT DISTINCT topic FROM log('{tmp_path}/logs') UNION FROM (SELECT topic FROM log('{tmp_path}/LOGS'))"
    assert sorted(row["topic"] for row in rows(run, both)) == ["t0", "t1"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT", "the query cannot be read"),
        ("DROP TABLE x", "Only SELECT statements"),
        ("SELECT 1; SELECT 2", "a query is one statement"),
        ("", "a query is one statement"),
        ("SELECT * FROM log(1)", "log() takes one text"),
        ("SELECT * FROM log('a', 'b')", "log() takes one text"),
        ("SELECT * FROM log('nowhere')", "nowhere: is not a directory"),
        (f"SELECT nothing FROM log('{ORDERS}')", '"nothing" not found'),
        ("SELECT * FROM 'pyproject.toml'", "pyproject.toml"),
        ("SELECT * FROM read_text('pyproject.toml')", "disabled"),
    ],
)
def test_a_query_that_cannot_be_answered_is_refused(fails: Callable[..., str], query: str, words: str) -> None:
    assert words in fails("sql", query)


def test_the_extra_is_named_where_it_is_missing(fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert "kafka-msgs sql needs duckdb: pip install 'kafka-msgs[sql]'" in fails("sql", "SELECT 1")


def test_an_expression_selects_the_rows_of_a_table(run: Run) -> None:
    query = f"SELECT l.offset AS at, value FROM log('{ORDERS}') l ORDER BY ALL"
    every = rows(run, query)
    result = run("sql", query, "--where", "value.order >= 1003 and partition = 0", "--json")
    found = json.loads(result.stdout)
    assert found == [row for row in every if json.loads(row["value"])["order"] >= 1003]
    assert 0 < len(found) < len(every)
    result = run("sql", f"SELECT count(*) AS n FROM log('{ORDERS}')", "--where", "value.order >= 1003", "--json")
    assert json.loads(result.stdout) == [{"n": len(found)}]
    assert run("sql", query, "--where", "order = 1").exit_code == 2


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_expression_selects_the_exported_records(run: Run, tmp_path: Path, workers: str) -> None:
    out = tmp_path / "out"
    where = (
        "--where",
        "value.order >= 1003 and timestamp > '2020-01-01'",
        "--columns",
        "offset,key",
        "--workers",
        workers,
    )
    result = run("pipeline", "records", str(ORDERS), "--out", str(out), *where)
    assert result.exit_code == 0, result.output
    found = pq.read_table(out / "current" / "records")
    assert 0 < found.num_rows < rows(run, f"SELECT count(*) AS n FROM log('{ORDERS}')")[0]["n"]
    assert {"offset", "key"} <= {*found.column_names}
    assert "value" not in found.column_names


def test_an_expression_decodes_registry_payloads(run: Run, tmp_path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "amount", "type": "double"}]}
    listed = [{"subject": "s", "version": 1, "id": 7, "schema": json.dumps(schema)}]
    (tmp_path / "schemas.json").write_text(json.dumps(listed))
    schemas = StaticSchemas.from_file(tmp_path / "schemas.json")
    serialize = PayloadSerializer(schemas.by_id(7), schemas)
    builder = BatchBuilder()
    for number in range(5):
        builder.append(None, serialize({"amount": number / 2}), timestamp=1)
    builder.append(None, b"\0\0\0\0\7", timestamp=1)
    directory = tmp_path / "events-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(builder.build())
    query = f"SELECT l.offset AS at FROM log('{directory}') l"
    result = run("sql", query, "--where", "value.amount > 1", "--registry", str(tmp_path / "schemas.json"), "--json")
    assert json.loads(result.stdout) == [{"at": 3}, {"at": 4}]


def test_an_unreadable_file_is_an_error_in_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Any:
        raise PermissionError(13, "Permission denied", "orders.log")
        yield

    monkeypatch.setattr(LogTable, "rows_of", refuse)
    result = run("sql", f"SELECT count(*) FROM log('{ORDERS}')")
    assert (result.exit_code, result.stderr) == (1, "Error: orders.log: Permission denied\n")


def test_decimals_are_exact(run: Run) -> None:
    query = "SELECT 12345678901234567.89::DECIMAL(20, 2) AS a, 0.1::DECIMAL(3, 1) AS b, 5.00::DECIMAL(5, 2) AS c"
    assert rows(run, query) == [{"a": "12345678901234567.89", "b": 0.1, "c": 5}]
