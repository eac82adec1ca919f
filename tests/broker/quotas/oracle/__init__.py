"""Kafka's own quota managers; ``QuotaOracle.java`` lists the commands."""

from __future__ import annotations

from pathlib import Path

from tests.support.java_oracle import JavaOracle
from tests.support.maven import JavaProject

__all__ = ["QuotaOracle"]


class QuotaOracle(JavaOracle):
    """Kafka's ``ClientQuotaManager`` and related classes. An ``open`` command creates new instances."""

    PROJECT = JavaProject(Path(__file__).resolve().parent, "org.apache.kafka.server.quota.QuotaOracle")
