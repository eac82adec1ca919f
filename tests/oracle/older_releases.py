"""Older Kafka releases: their jars, the import of their definitions, and the oracle over their classes.

Maven fetches the jars once; they stay in ``target/`` with the imported definitions.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

from kafka_msgs.schema_compiler import compile_schemas
from kafka_msgs_generator.importer import import_path
from kafka_msgs_generator.maven import SourceUnavailableError, fetch_existing_jars
from kafka_msgs_generator.release import GROUP, ORIGINS
from tests.oracle.build import PROJECT, OracleUnavailableError, java_command
from tests.oracle.driver import Oracle
from tests.support.build_cache import made_once

__all__ = ["RELEASES", "definitions_of", "error_codes_by_java", "jars_of", "oracle_of"]

RELEASES: Final = (
    "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2", "3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2",
    "3.6.2", "3.7.2", "3.8.1", "3.9.1", "4.0.1", "4.1.1", "4.2.0", "4.3.1", "4.4.0",
)  # fmt: skip
"""The latest patch release of each minor release with definitions."""

_ARTIFACTS: Final = sorted({carrier.artifact for carriers in ORIGINS.values() for carrier in carriers})


def jars_of(release: str) -> list[Path]:
    """Return the jars of a release that contain definitions; raises ``OracleUnavailableError`` without Maven."""
    coordinates = [f"{GROUP}:{artifact}:{release}" for artifact in _ARTIFACTS]
    try:
        folder = made_once(PROJECT.target / f"jars-{release}", lambda new: fetch_existing_jars(coordinates, new))
    except SourceUnavailableError as reason:
        raise OracleUnavailableError(str(reason)) from None
    return sorted(folder.glob("*.jar"))


def definitions_of(release: str) -> Path:
    """Return the directory with the import of a release."""
    folder = jars_of(release)[0].parent
    return made_once(PROJECT.target / f"definitions-{release}", lambda new: import_path(folder, new))


def error_codes_by_java(release: str) -> list[dict[str, Any]]:
    """Return a release's error codes as printed by a Java program, in the form of ``errors.json``."""
    *command, _ = java_command(jars_of(release))
    program = Path(__file__).with_name("ErrorTable.java")
    printed = subprocess.run([*command, str(program)], check=True, capture_output=True, text=True).stdout
    rows = sorted((int(code), name, flag == "true") for code, name, flag in map(str.split, printed.splitlines()))
    return [{"name": name, "code": code, "retriable": retriable} for code, name, retriable in rows]


@cache
def oracle_of(release: str) -> Oracle:
    """Return this process's oracle over the classes of a release, 2.8 or newer."""
    classes = {cls.INFO.name: cls for cls in compile_schemas(definitions_of(release))}
    return Oracle(java_command(jars_of(release)), classes)
