"""Programs in other languages, such as clients that run to completion; each state of their sources is built once.

A program is a folder, built in its ``target`` subfolder. Build dependencies come from the ordinary client of their
package registry, at the versions that the project's own files pin. If a tool or a registry is unavailable, the tests
are reported as not run.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from tests.recorders.broker import Jars, classpath, java_command
from tests.support.file_locks import lock_file

__all__ = ["AZURE", "GCS", "GO", "NODE", "Program", "ProgramUnavailableError", "java", "lines_of"]

_TESTS: Final = Path(__file__).parents[1]
_CLIENTS: Final = _TESTS / "broker" / "clients"
_STORES: Final = _TESTS / "filesystems" / "stores"
_BUILD_SECONDS: Final = 540
_RUN_SECONDS: Final = 540


class ProgramUnavailableError(RuntimeError):
    """A program cannot be built on this machine; the text gives the reason."""


@frozen
class Program:
    """A folder with sources. ``fetch`` downloads dependencies, ``build`` builds the program; both run in a copy."""

    folder: Path
    tools: tuple[str, ...]
    fetch: tuple[str, ...]
    build: tuple[str, ...]
    run: tuple[str, ...]

    def command(self) -> list[str]:
        """Return the command that starts the program; build it first if needed. Raises as ``built``."""
        home = self.built()
        return [part.replace("HOME", str(home)) for part in self.run]

    def built(self) -> Path:
        """Return the folder of the built program.

        Raises ``ProgramUnavailableError`` if its tools or dependencies are unavailable, and ``CalledProcessError`` if
        its sources do not compile.
        """
        for tool in self.tools:
            if shutil.which(tool) is None:
                raise ProgramUnavailableError(f"nothing of {self.folder.name}: {tool} not found")
        home = self._target / f"{self.folder.name}-{self._fingerprint()}"
        with self._build_lock():
            if not (home / "built").exists():
                self._make(home)
        return home

    @property
    def _target(self) -> Path:
        return self.folder.parent / "target"

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.fetch, self.build)).encode())
        for path in sorted(self.folder.iterdir()):
            digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()[:12]

    @contextmanager
    def _build_lock(self) -> Iterator[None]:
        """Lock out other processes: parallel test runs share one build."""
        self._target.mkdir(exist_ok=True)
        with (self._target / f"{self.folder.name}.lock").open("w") as lock:
            lock_file(lock)
            yield

    def _make(self, home: Path) -> None:
        for old in self._target.glob(f"{self.folder.name}-*"):
            shutil.rmtree(old)
        shutil.copytree(self.folder, home)
        if self.fetch and subprocess.run(self.fetch, cwd=home, timeout=_BUILD_SECONDS, check=False).returncode:
            raise ProgramUnavailableError(f"nothing of {self.folder.name}: {self.fetch[0]} could not get what it needs")
        if self.build:
            subprocess.run(self.build, cwd=home, check=True, timeout=_BUILD_SECONDS)
        (home / "built").touch()


GO: Final = Program(
    _CLIENTS / "go", ("go",), ("go", "mod", "download"), ("go", "build", "-o", "sessions", "."), ("HOME/sessions",)
)
NODE: Final = Program(_CLIENTS / "node", ("node", "npm"), ("npm", "ci", "--silent"), (), ("node", "HOME/session.js"))
AZURE: Final = Program(
    _STORES / "azure",
    ("node", "npm"),
    ("npm", "install", "--silent", "--no-package-lock", "--no-audit", "--no-fund"),
    (),
    ("node", "HOME/node_modules/azurite/dist/src/blob/main.js"),
)
"""Azurite, an Azure Blob Storage server."""
_GCS: Final = "github.com/fsouza/fake-gcs-server"
GCS: Final = Program(
    _STORES / "gcs",
    ("go",),
    ("go", "get", f"{_GCS}@v1.52.3"),
    ("go", "build", "-o", "server", _GCS),
    ("HOME/server",),
)
"""A Google Cloud Storage server."""


def java(main_class: str, folder: str = "java", jars: Jars = Jars.NODE, options: Sequence[str] = ()) -> list[str]:
    """Return the command that starts a Java program from the folder ``java``, with the release's Kafka clients.

    ``options`` are for the virtual machine. Raises as ``Program.built``, and ``CalledProcessError`` if Maven fails.
    """
    if shutil.which("mvn") is None:
        raise ProgramUnavailableError(f"nothing of {folder}: mvn not found")
    path = classpath(jars)
    sources = sorted(each.name for each in (_CLIENTS / folder).glob("*.java"))
    home = Program(_CLIENTS / folder, ("java", "javac"), (), ("javac", "-cp", path, *sources), ()).built()
    command = java_command(main_class, (), heap_mb=192, jars=jars, options=options)
    return [os.pathsep.join((str(home), path)) if part == path else part for part in command]


def lines_of(command: Sequence[str], stdin: str = "") -> list[Mapping[str, Any]]:
    """Run a program to completion, and return the JSON lines that it printed.

    Raises ``CalledProcessError`` if it fails, and ``TimeoutExpired``.
    """
    done = subprocess.run(command, input=stdin, check=True, stdout=subprocess.PIPE, text=True, timeout=_RUN_SECONDS)
    return [json.loads(line) for line in done.stdout.splitlines()]
