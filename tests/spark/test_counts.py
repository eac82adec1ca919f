"""``kafka-log-counts`` and ``count_records`` return the counts of the rows of ``kafka-log``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_msgs.errors import LogFileError, OptionError
from kafka_msgs.log.file_scan import read_log
from kafka_msgs.records import RecordBatch
from kafka_msgs.spark import count_records
from kafka_msgs.spark.sources.counts import KafkaLogCountsSource
from kafka_msgs.spark.sources.log import KafkaLogSource
from tests.support.recordings import GROUP_LOGS, LOGS
from tests.support.spark_tables import read

SOME = {"startingOffsets": '{"codecs": {"0": 3}}', "endingOffsets": '{"codecs": {"0": 38}}'}


def counted(path: object, **options: object) -> dict[str, tuple[int, int]]:
    """Return the number of records and of damage rows in each file."""
    found: Counter[str] = Counter()
    damage: Counter[str] = Counter()
    for row in read(KafkaLogCountsSource, path, **options):
        assert (row["topic"] is None) == (row["partition"] is None)
        found[row["file"]] += row["records"]
        damage[row["file"]] += row["damage"]
    return {file: (found[file], damage[file]) for file in found if found[file] or damage[file]}


def rows(path: object, **options: object) -> dict[str, tuple[int, int]]:
    """Return the same counts from the rows of ``kafka-log``, which decodes the records."""
    found: Counter[str] = Counter()
    damage: Counter[str] = Counter()
    for row in read(KafkaLogSource, path, columns="file,offset,batchPosition", **options):
        (damage if row.get("_error") else found)[row["file"]] += 1
    return {file: (found[file], damage[file]) for file in found | damage}


@pytest.mark.parametrize("split", ["300", "32m"])
@pytest.mark.parametrize("options", [{}, {"control": True}, {"isolation": "read_committed"}, SOME], ids=str)
def test_files_have_as_many_records_as_rows(options: dict[str, Any], split: str) -> None:
    for path in (LOGS, GROUP_LOGS) if options is not SOME else (LOGS,):
        assert counted(path, splitBytes=split, **options) == rows(path, **options) != {}


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_damage_is_counted_apart(mode: str, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    data = bytearray((LOGS / "codecs-0" / path.name).read_bytes())
    second = [batch for batch in read_log(LOGS / "codecs-0" / path.name) if isinstance(batch, RecordBatch)][1]
    data[second.position + second.size - 1] ^= 1
    path.write_bytes(data)
    assert counted(path, mode=mode) == rows(path, mode=mode)
    assert counted(path, mode=mode)[str(path)][1] == (mode == "PERMISSIVE")
    with pytest.raises(LogFileError):
        counted(path, mode="FAILFAST")


def test_what_makes_columns_is_not_an_option(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no"):
        counted(LOGS, columns="offset")


@pytest.mark.spark
def test_a_session_counts_what_the_table_has(spark: SparkSession) -> None:
    table = spark.read.format("kafka-log").option("isolation", "read_committed").load(str(LOGS))
    assert count_records(spark, str(LOGS), isolation="read_committed") == table.count() > 0
    assert count_records(spark, str(LOGS / "codecs-0"), str(LOGS / "prices-0"), control=True) > 0
    assert count_records(spark, str(LOGS), isolation="read_committed", splitBytes=300) == table.count()
    with pytest.raises(OptionError, match="there is no"):
        count_records(spark, str(LOGS), topics="nothing")


@pytest.mark.spark
def test_a_session_counts_nothing_where_there_is_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / f"{0:020}.log").touch()
    assert count_records(spark, str(tmp_path)) == 0
