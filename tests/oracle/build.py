"""Builds the oracle's Java program with Maven, once for each state of its sources.

Owns ``target/``: compiled classes, the class path, and a stamp of the sources and releases they were made from.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.releases import maven_releases

HERE: Final = Path(__file__).resolve().parent
TARGET: Final = HERE / "target"
BUILD_SECONDS: Final = 540
"""How long Maven may take, downloads included."""


class OracleUnavailableError(RuntimeError):
    """The oracle cannot run on this machine; the text says why."""


def java_command() -> list[str]:
    """Return the command that starts the oracle, building it first where needed.

    Raises ``OracleUnavailableError`` without Java, or without Maven when a build is needed, or when the build fails.
    """
    java = shutil.which("java")
    if java is None:
        raise OracleUnavailableError("Java not found")
    with _build_lock():
        class_path = _built_class_path() or _build()
    heap = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError"]
    return [java, *heap, "-cp", class_path, "oracle.Oracle"]


def _fingerprint() -> str:
    digest = hashlib.sha256(" ".join(maven_releases()).encode())
    for path in [HERE / "pom.xml", *sorted(HERE.glob("src/**/*.java"))]:
        digest.update(f"{path.relative_to(HERE)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def _build_lock() -> Iterator[None]:
    """Hold off other processes: test runs side by side share one ``target/``."""
    TARGET.mkdir(exist_ok=True)
    with (TARGET / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _built_class_path() -> str | None:
    """Return the class path of an earlier build of these very sources, or None."""
    stamp, listing = TARGET / "stamp", TARGET / "classpath.txt"
    if not (stamp.exists() and listing.exists() and stamp.read_text() == _fingerprint()):
        return None
    jars = listing.read_text().strip()
    if not all(Path(jar).exists() for jar in jars.split(os.pathsep)):
        return None
    return os.pathsep.join([str(TARGET / "classes"), jars])


def _build() -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise OracleUnavailableError("Maven not found")
    (TARGET / "stamp").unlink(missing_ok=True)
    shutil.rmtree(TARGET / "classes", ignore_errors=True)
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={TARGET / 'classpath.txt'}"]
    command = [maven, "-q", "-B", "-f", str(HERE / "pom.xml"), *maven_releases(), *goals]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise OracleUnavailableError(f"Maven was not done after {BUILD_SECONDS} s") from None
    if done.returncode:
        raise OracleUnavailableError(f"Maven could not build the oracle:\n{done.stdout}{done.stderr}".rstrip())
    (TARGET / "stamp").write_text(_fingerprint())
    class_path = _built_class_path()
    if class_path is None:
        raise OracleUnavailableError("Maven reported success but left no class path")
    return class_path
