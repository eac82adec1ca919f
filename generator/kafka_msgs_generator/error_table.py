"""The error codes of a Kafka release, read out of the release itself.

A small Java program of ours, ``ErrorTable.java``, prints the enumeration that Kafka's own clients use, so that names,
numbers and the retriable flag are those of Kafka's code and not of a page.
"""

from __future__ import annotations

import json
import subprocess
import zipfile
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypedDict

from kafka_msgs_generator.maven import SourceUnavailableError, fetch_jars

__all__ = ["KafkaError", "error_table_text", "extract_errors", "has_errors", "parse_errors"]

_ERRORS_CLASS: Final = "org/apache/kafka/common/protocol/Errors.class"
_LOGGING: Final = "org.slf4j:slf4j-api:1.7.36"
"""The one library that the enumeration needs."""


class KafkaError(TypedDict):
    """One error code: its ``name``, its number on the wire (an int16), and whether retrying may help."""

    name: str
    code: int
    retriable: bool


def has_errors(jar: Path) -> bool:
    """Whether a jar holds Kafka's error codes, as that of the clients does."""
    with zipfile.ZipFile(jar) as archive:
        return _ERRORS_CLASS in archive.namelist()


def extract_errors(jar: Path) -> list[KafkaError]:
    """Return every error code in a jar of Kafka's clients, by rising code. Needs Maven and Java 11 or newer.

    Raises ``SourceUnavailableError`` when one of them is missing or the jar cannot be used.
    """
    with TemporaryDirectory() as folder, as_file(files(__package__) / "ErrorTable.java") as program:
        fetch_jars([_LOGGING], Path(folder))
        return parse_errors(_run_java(["java", "-cp", f"{jar.resolve()}:{folder}/*", str(program)]))


def parse_errors(printed: str) -> list[KafkaError]:
    """Return the table that the Java program printed, one error per line: ``code name retriable``."""
    rows = (line.split() for line in printed.splitlines())
    errors = (KafkaError(name=name, code=int(code), retriable=flag == "true") for code, name, flag in rows)
    return sorted(errors, key=lambda error: error["code"])


def error_table_text(errors: list[KafkaError]) -> str:
    """Return the text of ``errors.json``: a list, one error per line."""
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
