"""Jobs in Spark give the rows, problems and exit status that they give in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafka_msgs.cli.command_group import command
from tests.cli.test_same_answers import Rows, job, write_logs
from tests.support.recordings import GROUP_LOGS


def run(*arguments: str, **_: Any) -> Any:
    return CliRunner().invoke(command, arguments, prog_name="kafka-msgs")


def plain(tables: dict[str, Rows]) -> dict[str, list[str]]:
    return {name: sorted(str(sorted(row.items())) for row in rows) for name, rows in tables.items()}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["group-offsets", "group-state", "topic-profile"])
@pytest.mark.parametrize("damaged", [False, True], ids=["recorded", "damaged"])
def test_spark_and_one_process_write_the_same_tables(tmp_path: Path, name: str, damaged: bool) -> None:
    logs, status = (write_logs(tmp_path / "logs"), 1) if damaged else (GROUP_LOGS, 0)
    found = [
        plain(job(run, name, logs, tmp_path / engine, status=status, engine=engine)) for engine in ("local", "spark")
    ]
    assert found[0] == found[1]
    assert sum(map(len, found[0].values())) > 2
