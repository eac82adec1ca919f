"""Differential fuzzing on Spark: equal executors produce no mismatch, and a broken executor is detected."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_msgs import iter_message_classes
from kafka_msgs._backend import BACKENDS
from kafka_msgs.codec.error_explanation import CodecFunctions, Executor
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import Plan
from kafka_msgs.errors import UnknownNameError
from kafka_msgs.spark.jobs.wire_compat import fuzz_units, wire_compat

MESSAGES = ("HeartbeatRequest", "OffsetCommitValue")
SEEDS = range(3, 5)


def broken() -> Executor:
    """Return the Python executor, but with a wrong last byte in each heartbeat.

    The class is local to a function so that it is pickled as code, not by name: the workers do not have the tests.
    """

    def executor(plan: Plan, options: CodecOptions) -> CodecFunctions:
        made = EXECUTORS["python"](plan, options)
        if plan.name != "HeartbeatRequest":
            return made
        return made._replace(encode=lambda message: made.encode(message)[:-1] + b"\x2a")

    return executor


def rows(spark: SparkSession, table: str, executors: Any = None) -> list[dict[str, Any]]:
    units = fuzz_units(spark, SEEDS, MESSAGES, slices=1)
    found = wire_compat(units, executors)[table].collect()
    return sorted((row.asDict(recursive=True) for row in found), key=repr)


def test_executors_agree_on_every_version(spark: SparkSession) -> None:
    runs = rows(spark, "runs")
    versions = {
        (cls.INFO.name, v) for cls in iter_message_classes() if cls.INFO.name in MESSAGES for v in versions_of(cls)
    }
    assert {(run["message"], run["version"]) for run in runs} == versions
    assert len(runs) == len(versions) * len(SEEDS)
    assert all(set(run["backends"]) == {*BACKENDS} - {"reference"} for run in runs)
    assert all(run["checks"] == 6 * len(run["backends"]) and run["differences"] == [] for run in runs)


def versions_of(cls: Any) -> range:
    return range(cls.INFO.versions.lowest, cls.INFO.versions.highest + 1)


def test_broken_executor_leaves_rows_that_repeat_the_fault(spark: SparkSession) -> None:
    found = rows(spark, "mismatches", {"broken": broken()})
    assert {(row["message"], row["backend"], row["action"]) for row in found} == {
        ("HeartbeatRequest", "broken", "encode")
    }
    assert {row["seed"] for row in found} == {*SEEDS}
    assert all(row["found"] == row["expected"][:-2] + "2a" for row in found)
    assert found == rows(spark, "mismatches", {"broken": broken()})


def test_misspelt_message_is_refused_before_anything_runs(spark: SparkSession) -> None:
    with pytest.raises(UnknownNameError, match="HeartbeatRequest"):
        fuzz_units(spark, SEEDS, ["HeartbeatReqest"])
