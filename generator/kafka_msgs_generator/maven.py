"""Fetches jars through Maven, and finds out which of them do not exist.

Owns the project file that Maven reads and what Maven's answers mean. Which jars are needed is `release`'s and
`error_table`'s.
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

__all__ = ["SourceUnavailableError", "fetch_existing_jars", "fetch_jars"]

_POM: Final = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafka-msgs</groupId>
  <artifactId>definitions</artifactId>
  <version>0</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY: Final = """
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
    </dependency>"""
_ABSENT: Final = re.compile(r"Could not find artifact|was not found in|\(absent\)")


@define(kw_only=True, slots=False, repr=False)
class SourceUnavailableError(KafkaMsgsError):
    """Definitions that cannot be had: a missing artifact, tool, file or folder. Attribute: ``reason``."""

    reason: str

    def _text(self) -> str:
        return self.reason


def fetch_jars(coordinates: Sequence[str], into: Path) -> None:
    """Copy jars into a folder, each alone and without what it depends on.

    ``coordinates`` are ``group:artifact:version``; the file is called ``artifact-version.jar``. Raises
    ``SourceUnavailableError`` when Maven is not there, or naming what it cannot find.
    """
    answer = _copy(coordinates, into)
    if answer is None:
        return
    missing = _unresolved(answer, coordinates)
    if missing:
        raise SourceUnavailableError(reason=f"Maven cannot find {', '.join(missing)}")
    raise SourceUnavailableError(reason=f"Maven failed:\n{answer}")


def fetch_existing_jars(coordinates: Sequence[str], into: Path) -> None:
    """Copy those of the jars that exist into a folder; what does not exist is not there afterwards.

    Raises ``SourceUnavailableError`` when Maven is not installed, and when it does not report whether a jar exists.
    """
    answer = _copy(coordinates, into)
    if answer is None:
        return
    absent = _absent(answer, coordinates, into)
    existing = [each for each in coordinates if each not in absent]
    if existing:
        fetch_jars(existing, into)


def _absent(answer: str, coordinates: Sequence[str], into: Path) -> set[str]:
    """Return what does not exist: Maven gives the reason of one failure only, so each jar is asked for alone."""
    unresolved = _unresolved(answer, coordinates)
    if not unresolved:
        raise SourceUnavailableError(reason=f"Maven failed:\n{answer}")
    answers = {each: _copy([each], into) for each in unresolved}
    for each, alone in answers.items():
        if alone is not None and not _ABSENT.search(alone):
            raise SourceUnavailableError(reason=f"Maven does not report whether {each} exists:\n{alone}")
    return {each for each, alone in answers.items() if alone is not None}


def _unresolved(answer: str, coordinates: Sequence[str]) -> list[str]:
    return [each for each in coordinates if ":jar:".join(each.rsplit(":", 1)) in answer]


def _copy(coordinates: Sequence[str], into: Path) -> str | None:
    """Run Maven; return its output when it fails. ``-U`` makes it try again what it did not find before."""
    with TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(_POM.format(dependencies="".join(_dependency(each) for each in coordinates)), encoding="utf-8")
        command = ["mvn", "-q", "-B", "-U", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={into}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            reason = "importing a release needs Maven (mvn), which is not installed"
            raise SourceUnavailableError(reason=reason) from None
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip()


def _dependency(coordinates: str) -> str:
    group, artifact, version = coordinates.split(":")
    return _DEPENDENCY.format(group=group, artifact=artifact, version=version)
