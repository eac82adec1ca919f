"""Filter expressions: random ones have the result of DuckDB, mistakes have their position, and work is bounded."""

from __future__ import annotations

import json
import pickle
import time
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_msgs.errors import ExpressionError
from kafka_msgs.records import ConsumerRecord
from kafka_msgs.records.where import Resolve, Where, parse_where, resolve_fields
from kafka_msgs.records.where_values import milliseconds
from kafka_msgs.registry import PayloadSerializer, RecordFilter, StaticSchemas

duckdb = pytest.importorskip("duckdb")

RECORD: dict[str, Any] = {
    "topic": "orders", "partition": 3, "offset": 42, "timestamp": 1_769_860_800_000, "key": "k-17",
    "headers": {"source": "web", "trace-id": "7"},
    "value": {
        "amount": 12, "price": 2.5, "exact": "10.50", "large": "9007199254740993", "name": "100% wool", "paid": True,
        "note": None, "tags": ["new", "red"], "customer": {"city": "Ulm", "in": 1},
    },
}  # fmt: skip
"""A record as a source resolves it."""


def resolve(path: tuple[str, ...]) -> Any:
    return resolve_fields(RECORD, path)


def matches(expression: str) -> bool:
    return parse_where(expression).matches(resolve)


@pytest.mark.parametrize(
    "expression",
    [
        "value.amount > 10",
        "value.amount > 10 and value.customer.city = 'Ulm'",
        "value.amount == 12 AND NOT value.amount <> 12",
        "value.price between 2.5 and 3 and offset in (1, 42)",
        "value.name like '100\u0025%l' and value.name like '%wo_l' and not value.name like 'wool%'",
        "value.name contains '% w' and value.tags contains 'red' and not value.tags contains 'blue'",
        "value.note is null and value.absent is null and value.amount is not null",
        "value.paid and not (not value.paid)",
        "value.exact > 10.4 and value.exact = 10.5 and value.large = 9007199254740993",
        "headers.\"trace-id\" = 7 and headers.source = 'web'",
        'value.customer.in = 1 and "offset" = 42',
        "timestamp >= '2026-01-31T12:00:00Z' and timestamp < '2026-01-31T13:00:01+01:00' and timestamp > 0",
        "key = 'k-17' and key not in ('a', 'b') or false",
        "'it''s' = 'it''s'",
        "-1 < +1 and 1.5e1 = 15 and .5 < 1.",
    ],
)
def test_a_record_matches(expression: str) -> None:
    assert matches(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "value.note = 1",
        "not value.note = 1",
        "value.note != 1",
        "value.absent.deeper > 1",
        "value.amount > 'many'",
        "value.paid = 1",
        "value.customer = 'Ulm'",
        "value.amount",
        "value.note or false",
        "value.amount in (1, null)",
        "value.amount not in (1, null)",
        "headers.absent like '%'",
        "null",
    ],
)
def test_an_unknown_result_is_no_match(expression: str) -> None:
    assert not matches(expression)


@pytest.mark.parametrize(
    ("expression", "position", "reason"),
    [
        ("", 0, "a column, a number or a text in quotes is expected"),
        ("value.amount >", 14, "a column, a number or a text"),
        ("value.amount > 10 value", 18, "AND, OR or the end"),
        ("amount > 10", 0, "a path begins with topic, partition"),
        ("offset.x = 1", 7, "offset has no fields"),
        ("value.amount > ;", 15, "no name, number, text or operator"),
        ("key = 'open", 6, "no name, number, text or operator"),
        ("(key = 'a'", 10, ") is expected"),
        ("key is 5", 7, "NULL is expected"),
        ("key not = 5", 8, "IN, LIKE, CONTAINS or BETWEEN is expected after NOT"),
        ("key like 5", 9, "a pattern in quotes"),
        ("key in 5", 7, "( is expected"),
        ("timestamp > 'soon'", 12, "a time is expected"),
        ("5", 1, "an operator is expected"),
        ("headers = 'a'", 8, "a name is expected: headers.name"),
        ("value. = 1", 7, "a name is expected after the point"),
        ("__import__('os')", 0, "a path begins with"),
        ("value.x(1)", 7, "AND, OR or the end"),
        ("(" * 60 + "true" + ")" * 60, 50, "more than 50 levels"),
        ("not " * 60 + "true", 200, "more than 50 levels"),
        ("key = '" + "a" * 10_000 + "'", 10_000, "more than 10,000 characters"),
        ("offset = " + "1" * 100, 89, "AND, OR or the end"),
    ],
)
def test_a_mistake_has_its_position(expression: str, position: int, reason: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse_where(expression)
    assert reason in raised.value.reason
    assert raised.value.position == position
    assert f"at character {position + 1}: " in str(raised.value)


@pytest.mark.parametrize("value", [b"\xff", b"not JSON", b'{"b": 1}', b"{}", None])
def test_only_known_nulls_are_null(value: bytes | None) -> None:
    """A tombstone is null. Binary data are not null, and it is unknown whether a field of undecodable data is."""
    headers = (("h", b"\xfe"),)
    record = ConsumerRecord(topic="t", partition=0, offset=0, timestamp=0, key=b"k", value=value, headers=headers)

    def selects(expression: str) -> bool:
        return RecordFilter(expression).matches(record)

    decodable = value is None or value.startswith(b"{")
    assert selects("value is null") == (value is None)
    assert selects("value is not null") == (value is not None)
    assert selects("value.a is null") == decodable
    assert not selects("value.a is not null")
    assert not selects("not value.a is null")
    assert selects("headers.h is not null and headers.x is null and key is not null")
    assert not any(
        map(selects, ("headers.h = 'a'", "headers.h <> 'a'", "headers.h like '%'", "'a' contains headers.h"))
    )


def test_a_key_without_a_schema_is_compared_as_text(tmp_path: Path) -> None:
    """Keys are often plain text next to values with schemas."""
    listed = [{"subject": "s", "version": 1, "id": 7, "schema": '{"type": "record", "name": "r", "fields": []}'}]
    path = tmp_path / "schemas.json"
    path.write_text(json.dumps(listed))
    schemas = StaticSchemas.from_file(path)
    value = PayloadSerializer(schemas.by_id(7), schemas)({})
    record = ConsumerRecord(topic="t", partition=0, offset=0, timestamp=0, key=b"k-1", value=value, headers=())
    assert RecordFilter("key = 'k-1' and key like 'k%' and value is not null", schemas).matches(record)
    assert not RecordFilter("key.a is null", schemas).matches(record)


@given(st.text("() <>=!'\".,kvaluenotidr%_0159-", max_size=60))
def test_no_text_ends_in_another_error(text: str) -> None:
    with suppress(ExpressionError):
        parse_where(text).matches(resolve)


def test_a_pattern_takes_linear_work() -> None:
    matcher = parse_where("key like '" + "%a" * 200 + "%b'")
    started = time.process_time()
    assert not matcher.matches(lambda path: "a" * 100_000)
    assert time.process_time() - started < 5


def test_an_expression_knows_its_columns_and_can_be_pickled() -> None:
    where = parse_where("value.a = 1 or headers.b = '2'")
    assert where.columns == {"value", "headers"}
    again = pickle.loads(pickle.dumps(where))
    assert isinstance(again, Where)
    assert (again.text, again.columns) == (where.text, where.columns)


# Random expressions against DuckDB

NUMBERS, TEXTS, FLAGS, LISTS = "numbers", "texts", "flags", "lists"
FIELDS = {
    "value.amount": (NUMBERS, "BIGINT", st.none() | st.integers(-5, 5)),
    "value.nested.depth": (NUMBERS, "INTEGER", st.none() | st.integers(-5, 5)),
    "value.price": (NUMBERS, "DOUBLE", st.none() | st.sampled_from([-1.5, 0.0, 0.1, 2.0, 3.25])),
    '"offset"': (NUMBERS, "BIGINT", st.integers(-5, 5)),
    "value.name": (TEXTS, "VARCHAR", st.none() | st.text("ab%_'é", max_size=4)),
    "key": (TEXTS, "VARCHAR", st.none() | st.text("ab%_", max_size=4)),
    "value.paid": (FLAGS, "BOOLEAN", st.none() | st.booleans()),
    'value."a b"': (FLAGS, "BOOLEAN", st.none() | st.booleans()),
    "value.tags": (LISTS, "VARCHAR[]", st.none() | st.lists(st.none() | st.text("ab", max_size=2), max_size=3)),
}


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


CONSTANTS = {
    NUMBERS: st.integers(-5, 5).map(str) | st.sampled_from(["0.1", "2.5", "-1.50", "2e0", "NULL"]),
    TEXTS: st.text("ab%_'é", max_size=3).map(quoted) | st.just("NULL"),
    FLAGS: st.sampled_from(["TRUE", "FALSE", "NULL"]),
}


def operands(kind: str) -> st.SearchStrategy[str]:
    paths = st.sampled_from([name for name, (each, _, _) in FIELDS.items() if each == kind])
    return paths | paths | CONSTANTS[kind]


Pair = tuple[str, str]
"""An expression, and the same one in DuckDB's SQL."""


@st.composite
def predicates(draw: st.DrawFn) -> Pair:
    kind = draw(st.sampled_from([NUMBERS, TEXTS, FLAGS]))
    left, form = draw(operands(kind)), draw(st.integers(0, 6))
    negation = draw(st.sampled_from(["", "NOT "]))
    same: str | None = None
    if form == 0:
        same = f"{left} {draw(st.sampled_from(['=', '==', '!=', '<>', '<', '<=', '>', '>=']))} {draw(operands(kind))}"
    elif form == 1:
        same = f"{left} {negation}IN ({', '.join(draw(st.lists(operands(kind), min_size=1, max_size=3)))})"
    elif form == 2:
        same = f"{left} IS {negation}NULL"
    elif form == 3 and kind != FLAGS:
        same = f"{left} {negation}BETWEEN {draw(operands(kind))} AND {draw(operands(kind))}"
    elif form == 4 and kind == TEXTS:
        same = f"{left} {negation}LIKE {quoted(draw(st.text('ab%_é', max_size=5)))}"
    elif form == 5:
        whole, part = draw(st.sampled_from(["value.name", "key", "value.tags"])), draw(operands(TEXTS))
        # DuckDB has a result for null in an empty list.
        known = f"CASE WHEN {part} IS NOT NULL THEN contains({whole}, {part}::VARCHAR) END"
        return f"{whole} {negation}CONTAINS {part}", f"{negation}({known})"
    same = same or draw(operands(FLAGS))
    return same, same


def combined(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def both(joint: str, left: Pair, right: Pair) -> Pair:
        return f"{left[0]} {joint} {right[0]}", f"{left[1]} {joint} {right[1]}"

    return (
        st.builds(both, st.sampled_from(["AND", "OR", "and", "Or"]), inner, inner)
        | inner.map(lambda each: (f"({each[0]})", f"({each[1]})"))
        | inner.map(lambda each: (f"NOT ({each[0]})", f"NOT ({each[1]})"))
    )


def literal(value: Any, type_: str) -> str:
    if isinstance(value, list):
        return f"[{', '.join(literal(each, 'VARCHAR') for each in value)}]::VARCHAR[]"
    text = "NULL" if value is None else quoted(value) if isinstance(value, str) else str(value)
    return f"{text}::{type_}"


@settings(max_examples=60)
@given(
    st.recursive(predicates(), combined, max_leaves=6),
    st.lists(st.fixed_dictionaries({name: values for name, (_, _, values) in FIELDS.items()}), min_size=1, max_size=8),
)
def test_a_random_expression_has_the_result_of_duckdb(pair: Pair, rows: list[dict[str, Any]]) -> None:
    expression, sql = pair
    tables = []
    for row in rows:
        one = {name: literal(value, FIELDS[name][1]) for name, value in row.items()}
        value = ", ".join(
            f"{name.removeprefix('value.')}: {text}"
            for name, text in one.items()
            if name.startswith("value.") and name != "value.nested.depth"
        )
        inner = f"nested: {{depth: {one['value.nested.depth']}}}"
        offset = one['"offset"']
        tables.append(f'SELECT {one["key"]} AS key, {offset} AS "offset", {{{value}, {inner}}} AS value')
    with duckdb.connect() as connection:
        expected = connection.execute(f"SELECT ({sql}) FROM ({' UNION ALL '.join(tables)})").fetchall()
    where = parse_where(expression)
    found = [where.matches(_resolver(row)) for row in rows]
    assert found == [result is True for (result,) in expected], expression


def _resolver(row: dict[str, Any]) -> Resolve:
    return lambda path: row[".".join(map(_name, path))]


def _name(name: str) -> str:
    return {"offset": '"offset"', "a b": '"a b"'}.get(name, name)


def test_decimals_and_floats_are_compared_as_floats() -> None:
    assert parse_where("value.x = 0.1").matches(lambda path: 0.1)
    assert parse_where("value.x = 0.1").matches(lambda path: Decimal("0.10"))


@given(st.datetimes().map(lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000)))
@example(
    datetime(2004, 2, 18, 11, 27, 38, 245_000)
)  # Its seconds since the epoch, times 1000, are a fraction too small.
def test_times_are_exact(moment: datetime) -> None:
    assert datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds(moment.isoformat())) == moment
