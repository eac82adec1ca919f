"""The start command of the oracle's Java program; ``tests.support.maven`` builds it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.support.maven import JavaProject, OracleUnavailableError

__all__ = ["OracleUnavailableError", "java_command"]

PROJECT: Final = JavaProject(Path(__file__).resolve().parent, "oracle.Oracle")
_KAFKAS: Final = "/org/apache/kafka/"


def java_command(jars: Iterable[Path] = ()) -> list[str]:
    """Return the command that starts the oracle, building it first if needed.

    ``jars`` of another Kafka release replace the pinned release. Raises ``OracleUnavailableError`` if the oracle cannot
    be built or run.
    """
    *command, class_path, main_class = PROJECT.command()
    others = [str(jar) for jar in jars]
    kept = [each for each in class_path.split(os.pathsep) if not (others and _KAFKAS in Path(each).as_posix())]
    return [*command, os.pathsep.join([*others, *kept]), main_class]
