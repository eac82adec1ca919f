"""The Spark session that all tests share: two cores, quiet, with all extensions registered and shipped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_msgs.spark import register
from tests.support.counting_filesystem import BUCKET, as_bucket

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c: %m%n
"""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A classic session whose workers run this Python and have only the shipped copy of the project."""
    home = tmp_path_factory.mktemp("spark")
    logging = home / "log4j2.properties"
    logging.write_text(_LOGGING)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder: Any = (
        SparkSession.builder.master("local[2]")
        .appName("kafka-msgs tests")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging} -Dderby.system.home={home}")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        # Otherwise workers would import modules from the JVM's start directory, which may be the project's.
        .config("spark.executorEnv.PYTHONSAFEPATH", "1")
    )
    session: SparkSession = builder.getOrCreate()
    register(session)
    yield session
    session.stop()


@pytest.fixture(params=["here", "elsewhere"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The prefix for directory names in ``tmp_path``: a local path or a bucket."""
    if request.param == "here":
        return f"{tmp_path}/"
    as_bucket(tmp_path, monkeypatch)
    return f"{BUCKET}/"
