"""Tables of Spark's catalog over log directories: created and read with SQL alone."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support.recordings import GROUP_LOGS, LOGS

pytestmark = pytest.mark.spark


def test_a_table_of_the_catalog_is_read_with_the_options_of_its_creation(spark: SparkSession) -> None:
    options = f"OPTIONS (path '{LOGS}', columns 'topic,offset')"
    spark.sql(f"CREATE TABLE prices_log USING `kafka-log` {options}")
    spark.sql(f"CREATE TABLE located_log USING `kafka-log` LOCATION '{LOGS}'")
    expected = spark.read.format("kafka-log").option("columns", "topic,offset").load(str(LOGS))
    try:
        assert sorted(spark.sql("SELECT * FROM prices_log").collect(), key=str) == sorted(expected.collect(), key=str)
        assert spark.sql("SELECT topic, offset FROM located_log").count() == expected.count()
        one = spark.sql("SELECT * FROM prices_log WITH (topics = 'prices')")
        assert {row.topic for row in one.collect()} == {"prices"}
        spark.sql(f"CREATE TABLE given_log (topic STRING) USING `kafka-log` {options}")
        with pytest.raises(AnalysisException, match="without columns"):
            spark.sql("SELECT * FROM given_log").collect()
    finally:
        for name in ("prices_log", "located_log", "given_log"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_other_sources_of_files_are_tables_of_the_catalog(spark: SparkSession) -> None:
    spark.sql(f"CREATE TABLE commits USING `kafka-offsets` OPTIONS (path '{GROUP_LOGS}', recordType 'OffsetCommit')")
    try:
        expected = spark.read.format("kafka-offsets").option("recordType", "OffsetCommit").load(str(GROUP_LOGS))
        found = spark.sql("SELECT group, committedOffset FROM commits").collect()
        assert sorted(found, key=repr) == sorted(expected.select("group", "committedOffset").collect(), key=repr)
        assert found
    finally:
        spark.sql("DROP TABLE IF EXISTS commits")
