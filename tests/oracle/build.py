"""Says how the oracle's Java program is started; building it is the business of ``tests.support.maven``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.maven import JavaProject, OracleUnavailableError

__all__ = ["OracleUnavailableError", "java_command"]

PROJECT: Final = JavaProject(Path(__file__).resolve().parent, "oracle.Oracle")


def java_command() -> list[str]:
    """Return the command that starts the oracle, building it first where needed.

    Raises ``OracleUnavailableError`` where it cannot be built or run.
    """
    return PROJECT.command()
