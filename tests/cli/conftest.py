"""Runs the command in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from kafka_msgs.cli.group import command
from tests.support.command_line import Run


@pytest.fixture
def run() -> Run:
    """Run ``kafka-msgs`` with arguments, and ``stdin``; unexpected exceptions fail the test."""

    def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(command, arguments, input=stdin, catch_exceptions=False, prog_name="kafka-msgs")

    return run


@pytest.fixture
def fails(run: Run) -> Callable[..., str]:
    """Run a command that must fail with exit status 1; return the one line that it prints on standard error."""

    def fails(*arguments: str, stdin: str | bytes | None = None) -> str:
        result = run(*arguments, stdin=stdin)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr.removeprefix("Error: ").rstrip()

    return fails
