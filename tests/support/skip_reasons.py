"""What becomes of a test that cannot run here: it is reported as not run, or fails where parity has to be proved."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

__all__ = ["not_run"]


def not_run(reason: str) -> NoReturn:
    """Skip the test that runs, or with ``KAFKA_MSGS_REQUIRE_ORACLE=1`` fail it."""
    if os.environ.get("KAFKA_MSGS_REQUIRE_ORACLE") == "1":
        pytest.fail(f"required: {reason}", pytrace=False)
    pytest.skip(f"NOT RUN: {reason}")
