"""``kafka-msgs broker`` as a process: its address, what it shows, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.cli.group import command

WAIT = 30


@contextmanager
def running(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command on ports that the system chooses. Yield its process and its address."""
    arguments = [sys.executable, "-m", "kafka_msgs", "broker", "--port", "0", *options]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(number: signal.Signals) -> None:
    with running("--brokers", "2", "--verbose", "--config", "num.partitions=3") as (process, servers):
        assert len(servers.split(",")) == 2
        with Admin(servers) as admin:
            admin.create_topics([NewTopic("t")])
            assert len(admin.list_topics()["t"].partitions) == 3
        process.send_signal(number)
        _, shown = process.communicate(timeout=WAIT)
        assert process.returncode == 0
    assert "CreateTopics v7" in shown
    assert "problem" not in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config", "nothing"], "does not read NAME=VALUE"),
        (["--config", "no.such=1"], "brokers have no such setting"),
        (["--as-release", "0.7"], "known are"),
    ],
)
def test_wrong_options_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(command, ["broker", "--port", "0", *options])
    assert result.exit_code != 0
    assert message in result.output
