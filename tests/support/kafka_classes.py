"""Runs Kafka's own command-line classes, and Java source files, to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tests.recorders.broker import BrokerError, Jars, java_command

__all__ = ["run_kafka_class"]


def run_kafka_class(
    class_name: str, arguments: Sequence[str], *, stdin: str = "", timeout: float = 60, jars: Jars = Jars.TOOLS
) -> str:
    """Run a Kafka class, or a Java source file, to its end and return what it printed.

    Raises :class:`~tests.recorders.broker.BrokerError` when it fails, and ``subprocess.TimeoutExpired``.
    """
    done = subprocess.run(
        java_command(class_name, arguments, heap_mb=128, jars=jars),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        raise BrokerError(f"{class_name} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
