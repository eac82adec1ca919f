"""Handling of tests that cannot run here: they are skipped as not run, or fail if parity must be proved."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

__all__ = ["not_run"]


def not_run(reason: str) -> NoReturn:
    """Skip the current test, or fail it if ``KAFKA_MSGS_REQUIRE_ORACLE=1``."""
    if os.environ.get("KAFKA_MSGS_REQUIRE_ORACLE") == "1":
        pytest.fail(f"required: {reason}", pytrace=False)
    pytest.skip(f"NOT RUN: {reason}")
