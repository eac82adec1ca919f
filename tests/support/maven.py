"""Builds the Java test programs with Maven, once for each state of their sources.

Uses the directory ``target/`` next to ``pom.xml``: compiled classes, the class path, and a stamp of the sources and
releases used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import frozen

from tests.support.file_locks import lock_file
from tests.support.releases import maven_releases

__all__ = ["JavaProject", "OracleUnavailableError"]

BUILD_SECONDS: Final = 540
"""Maximum Maven run time in seconds, including downloads."""

_MACHINE: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")


class OracleUnavailableError(RuntimeError):
    """The oracle cannot run on this machine; the text gives the reason."""


@frozen
class JavaProject:
    """A directory with a ``pom.xml`` and Java sources under ``src/``."""

    home: Path
    main_class: str

    @property
    def target(self) -> Path:
        """The build directory."""
        return self.home / "target"

    def command(self, *properties: str) -> list[str]:
        """Return the command that starts the program, building it first if needed.

        ``properties`` are further options of the Java virtual machine. Raises ``OracleUnavailableError`` if Java is not
        installed, if a build is needed and Maven is not installed, or if the build fails.
        """
        java = shutil.which("java")
        if java is None:
            raise OracleUnavailableError("Java not found")
        with self._build_lock():
            class_path = self._built_class_path() or self._build()
        return [java, *_MACHINE, *properties, "-cp", class_path, self.main_class]

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(" ".join(maven_releases()).encode())
        for path in [self.home / "pom.xml", *sorted(self.home.glob("src/**/*.java"))]:
            digest.update(f"{path.relative_to(self.home)}\0".encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()

    @contextmanager
    def _build_lock(self) -> Iterator[None]:
        """Lock out other processes: parallel test runs share one ``target/``."""
        self.target.mkdir(exist_ok=True)
        with (self.target / "lock").open("w") as lock:
            lock_file(lock)
            yield

    def _built_class_path(self) -> str | None:
        """Return the class path of an earlier build of exactly these sources, or None."""
        stamp, listing = self.target / "stamp", self.target / "classpath.txt"
        if not (stamp.exists() and listing.exists() and stamp.read_text() == self._fingerprint()):
            return None
        jars = listing.read_text().strip()
        if not all(Path(jar).exists() for jar in jars.split(os.pathsep)):
            return None
        return os.pathsep.join([str(self.target / "classes"), jars])

    def _build(self) -> str:
        maven = shutil.which("mvn")
        if maven is None:
            raise OracleUnavailableError("Maven not found")
        (self.target / "stamp").unlink(missing_ok=True)
        shutil.rmtree(self.target / "classes", ignore_errors=True)
        goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={self.target / 'classpath.txt'}"]
        command = [maven, "-q", "-B", "-f", str(self.home / "pom.xml"), *maven_releases(), *goals]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise OracleUnavailableError(f"Maven was not done after {BUILD_SECONDS} s") from None
        if done.returncode:
            raise OracleUnavailableError(f"Maven could not build the oracle:\n{done.stdout}{done.stderr}".rstrip())
        (self.target / "stamp").write_text(self._fingerprint())
        class_path = self._built_class_path()
        if class_path is None:
            raise OracleUnavailableError("Maven reported success but left no class path")
        return class_path
