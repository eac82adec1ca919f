"""Schema Registry payloads as Spark columns, compared with the column readers."""

from __future__ import annotations

import datetime
import json
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from kafka_msgs.errors import RegisteredSchemaError
from kafka_msgs.registry import RegisteredSchema, StaticSchemas
from kafka_msgs.spark import from_confluent

OLD: dict[str, Any] = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
NEW: dict[str, Any] = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}, "default": 0},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 0},
        {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "string"}}, "default": {}},
        {"name": "what", "type": ["string", "boolean"], "default": ""},
    ],
}
MESSAGE = """
syntax = "proto3";
import "google/protobuf/duration.proto";
message M { uint64 id = 1; google.protobuf.Duration took = 2; map<string, uint32> counts = 3; repeated M2 more = 4; }
message M2 { float f = 1; }
"""
SCHEMAS = StaticSchemas(
    [
        RegisteredSchema(1, "AVRO", json.dumps(OLD), (), "r-value", 1),
        RegisteredSchema(2, "AVRO", json.dumps(NEW), (), "r-value", 2),
        RegisteredSchema(3, "AVRO", '"string"', (), "r-key", 1),
        RegisteredSchema(4, "PROTOBUF", MESSAGE, (), "m-value", 1),
    ],
    source="a test",
)


def avro(schema_id: int, value: object) -> bytes:
    stream = BytesIO()
    schemaless_writer(stream, parse_schema(json.loads(SCHEMAS.by_id(schema_id).text)), value)
    return bytes(1) + schema_id.to_bytes(4) + stream.getvalue()


def test_payloads_become_columns(spark: SparkSession) -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.UTC)
    local = at.replace(tzinfo=None)
    value = {"n": 2**40, "at": at, "local": local, "day": at.date(), "tags": {"t": ["x"]}, "what": True}
    message = b"\0\0\0\0\4\0" + bytes.fromhex("08ffffffffffffffffff01 12020805 1a050a01611003 22050d0000003f")
    rows = [
        (0, avro(3, "k"), avro(1, {"n": 5}), message),
        (1, avro(3, "l"), avro(2, value), b"\0\0\0\0\4\0\xff"),
        (2, None, None, None),
        (3, b"", avro(2, value)[:-1], b"\0\0\0\0\5\0"),
    ]
    frame = spark.createDataFrame(rows, "number int, key binary, value binary, message binary").repartition(2)
    made = frame.select(
        "number",
        from_confluent("key", SCHEMAS.latest("r-key"), SCHEMAS).alias("key"),
        from_confluent("value", SCHEMAS.latest("r-value"), SCHEMAS).alias("value"),
        from_confluent("message", SCHEMAS.latest("m-value"), SCHEMAS, message="M", mode="DROPMALFORMED").alias("m"),
    )
    found = [row.asDict(recursive=True) for row in made.orderBy("number").collect()]
    assert [row["key"] for row in found] == [
        {"value": "k", "_error": None},
        {"value": "l", "_error": None},
        None,
        {"value": None, "_error": "payload: it does not start with the header of a schema registry: "},
    ]
    assert found[0]["value"] == {
        "n": 5,
        "at": None,
        "local": datetime.datetime(1970, 1, 1),
        "day": datetime.date(1970, 1, 1),
        "tags": {},
        "what": {"member0": "", "member1": None},
        "_error": None,
    }
    shown = found[1]["value"]
    assert shown.pop("at").timestamp() == at.timestamp()
    assert shown == {name: value[name] for name in ("n", "local", "day", "tags")} | {
        "what": {"member0": None, "member1": True},
        "_error": None,
    }
    assert found[2]["value"] is None
    assert "end within the value" in found[3]["value"]["_error"]
    assert [row["m"] for row in found] == [
        {
            "id": 2**64 - 1,
            "took": datetime.timedelta(seconds=5),
            "counts": {"a": 3},
            "more": [{"f": 0.5}],
        },
        None,
        None,
        None,
    ]
    failing = frame.select(from_confluent("value", SCHEMAS.latest("r-value"), SCHEMAS, mode="FAILFAST"))
    with pytest.raises(PythonException, match=r"of schema 2: its [0-9]+ bytes end within the value"):
        failing.collect()


def test_a_target_that_cannot_become_a_column_is_refused_before_the_query(spark: SparkSession) -> None:
    recursive = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}
    target = RegisteredSchema(9, "AVRO", json.dumps(recursive))
    with pytest.raises(RegisteredSchemaError, match="R contains itself"):
        from_confluent("value", target, SCHEMAS)
