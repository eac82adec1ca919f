"""Avro, Protobuf and Jackson for Java, under Confluent's deserializers; ``RegistryOracle.java`` lists the commands."""

from __future__ import annotations

from pathlib import Path

from tests.support.java_oracle import JavaOracle
from tests.support.maven import JavaProject

__all__ = ["RegistryOracle"]


class RegistryOracle(JavaOracle):
    """The Java libraries of the payload formats."""

    PROJECT = JavaProject(Path(__file__).resolve().parent, "registry.RegistryOracle")
