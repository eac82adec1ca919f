"""The error codes of a Kafka release, read out of the release itself.

A small Java program of ours, ``ErrorTable.java``, prints the enumeration that Kafka's own clients use, so that names,
numbers and the retriable flag are what Kafka does and not what a page says.
"""

from __future__ import annotations

import json
import subprocess
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypedDict

from kafka_msgs_generator.release import SourceUnavailableError, fetch_jars

__all__ = ["KafkaError", "error_table_text", "extract_errors", "parse_errors"]


class KafkaError(TypedDict):
    """One error code: its ``name``, its number on the wire (an int16), and whether retrying may help."""

    name: str
    code: int
    retriable: bool


def extract_errors(release: str) -> list[KafkaError]:
    """Return every error code of a Kafka release, by rising code. Needs Maven and Java 11 or newer.

    Raises ``SourceUnavailableError`` when one of them is missing or the release cannot be fetched.
    """
    with TemporaryDirectory() as folder, as_file(files(__package__) / "ErrorTable.java") as program:
        fetch_jars(release, ("kafka-clients",), Path(folder), dependencies=True)
        return parse_errors(_run_java(["java", "-cp", f"{folder}/*", str(program)]))


def parse_errors(printed: str) -> list[KafkaError]:
    """Return the table that the Java program printed: a line an error, ``code name retriable``."""
    rows = (line.split() for line in printed.splitlines())
    errors = (KafkaError(name=name, code=int(code), retriable=flag == "true") for code, name, flag in rows)
    return sorted(errors, key=lambda error: error["code"])


def error_table_text(errors: list[KafkaError]) -> str:
    """Return the text of ``errors.json``: a list, one error a line."""
    lines = ",\n".join(f"  {json.dumps(error)}" for error in errors)
    return f"[\n{lines}\n]\n"


def _run_java(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        reason = "reading a release's error codes needs Java (java), which is not installed"
        raise SourceUnavailableError(reason=reason) from None
    if done.returncode != 0:
        raise SourceUnavailableError(reason=f"the program that prints the error codes failed:\n{done.stderr.strip()}")
    return done.stdout
