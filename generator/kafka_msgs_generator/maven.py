"""Fetches jars through Maven, and detects jars that do not exist.

Handles the project files for Maven and the interpretation of its output. `release` provides the list of jars to fetch.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attrs import define

from kafka_msgs.errors import KafkaMsgsError

__all__ = ["SourceUnavailableError", "fetch_existing_jars"]

_POM: Final = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafka-msgs</groupId>
  <artifactId>{name}</artifactId>
  <version>0</version>
  {content}
</project>
"""
_MODULES: Final = "<packaging>pom</packaging><modules>{modules}</modules>"
_DEPENDENCY: Final = """<dependencies>
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
      <exclusions>
        <exclusion>
          <groupId>*</groupId>
          <artifactId>*</artifactId>
        </exclusion>
      </exclusions>
    </dependency>
  </dependencies>"""
_FAILURE: Final = re.compile(r"on project definitions-(\d+): (.*)")
_ABSENT: Final = re.compile(r"Could not find artifact|was not found in|\(absent\)")


@define(kw_only=True, slots=False, repr=False)
class SourceUnavailableError(KafkaMsgsError):
    """Unavailable definitions: a missing artifact, tool, file or folder. Attribute: ``reason``."""

    reason: str

    def _text(self) -> str:
        return self.reason


def fetch_existing_jars(coordinates: Sequence[str], into: Path) -> None:
    """Copy the existing jars among ``coordinates`` to a folder, without their dependencies.

    ``coordinates`` are ``group:artifact:version``; the file is called ``artifact-version.jar``. Raises
    ``SourceUnavailableError`` if Maven is not installed, or if a jar that may exist cannot be fetched.
    """
    answer = _copy(coordinates, into)
    if answer is None:
        return
    failures = {coordinates[int(number)]: reason for number, reason in _FAILURE.findall(answer)}
    for jar, reason in failures.items():
        if not _ABSENT.search(reason):
            raise SourceUnavailableError(reason=f"Maven does not report whether {jar} exists:\n{reason}")
    if not failures:
        raise SourceUnavailableError(reason=f"Maven failed:\n{answer}")


def _copy(coordinates: Sequence[str], into: Path) -> str | None:
    """Run Maven with one module per jar, so that it reports each failure; return its output if any module failed.

    ``-U`` makes Maven retry jars that did not exist at an earlier attempt.
    """
    with TemporaryDirectory() as folder:
        modules = [_module(Path(folder), number, jar) for number, jar in enumerate(coordinates)]
        _write_pom(Path(folder), "definitions", _MODULES.format(modules="".join(modules)))
        command = ["mvn", "-q", "-B", "-U", "-fae", "-f", folder, "dependency:copy-dependencies"]
        try:
            done = subprocess.run(
                [*command, f"-DoutputDirectory={into.resolve()}"], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            reason = "importing a release needs Maven (mvn), which is not installed"
            raise SourceUnavailableError(reason=reason) from None
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip()


def _module(folder: Path, number: int, jar: str) -> str:
    group, artifact, version = jar.split(":")
    name = f"definitions-{number}"
    _write_pom(folder / name, name, _DEPENDENCY.format(group=group, artifact=artifact, version=version))
    return f"<module>{name}</module>"


def _write_pom(folder: Path, name: str, content: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "pom.xml").write_text(_POM.format(name=name, content=content), encoding="utf-8")
