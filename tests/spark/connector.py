"""Fetches the jars of Spark's Kafka connector with Maven, once per version of the pom."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

__all__ = ["connector_jars"]

_HERE: Final = Path(__file__).parent
_POM: Final = _HERE / "pom.xml"
_LISTING: Final = _HERE / "target" / "classpath.txt"
_SECONDS: Final = 300


def connector_jars() -> list[str]:
    """Return the paths of the jars in the pom; raises ``subprocess.CalledProcessError`` if Maven fails."""
    if not _LISTING.exists() or _LISTING.stat().st_mtime < _POM.stat().st_mtime:
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={_LISTING}", "-DincludeScope=runtime"]
        subprocess.run(["mvn", "-q", "-B", *goal], cwd=_HERE, check=True, timeout=_SECONDS)
    return _LISTING.read_text().strip().split(os.pathsep)
