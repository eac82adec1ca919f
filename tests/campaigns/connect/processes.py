"""Java programs of Kafka Connect, each with its configuration and its output in files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

from tests.recorders.broker import java_program, project_classpath
from tests.support.eventually import until
from tests.support.kafka_storage import write_properties

__all__ = ["JavaProcess", "bounded", "eventually"]

_PROJECT: Final = Path(__file__).with_name("connect.xml")
_RELEASE: Final = "4.3.1"
_LIFETIME_SECONDS: Final = 900
_STOP_SECONDS: Final = 60
_PATIENCE_SECONDS: Final = 300
_OUTPUT_SHOWN: Final = 4000


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; workers take long to find each other on a busy machine. Fail after five minutes."""
    until(condition, _PATIENCE_SECONDS)


def bounded(seconds: int) -> list[str]:
    """Return the start of a command that ends with this process, and after a time."""
    return ["setpriv", "--pdeathsig", "TERM", "timeout", "--kill-after=10", str(seconds)]


class JavaProcess:
    """A program of ``connect.xml`` that runs inside a ``with`` block, for at most 15 minutes.

    Each of ``properties`` becomes a file, whose path is an argument of the program.
    """

    def __init__(self, class_name: str, home: Path, *properties: Mapping[str, str]) -> None:
        home.mkdir(exist_ok=True)
        files = [home / f"{number}.properties" for number in range(len(properties))]
        for file, settings in zip(files, properties, strict=True):
            write_properties(file, settings)
        path = project_classpath(_PROJECT, _RELEASE, [f"-Dkafka.connect.version={_RELEASE}"])
        java = java_program(class_name, [str(file) for file in files], path, heap_mb=256)
        self._log = home / "output.txt"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*bounded(_LIFETIME_SECONDS), *java],
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        """The end of the output so far."""
        return self._log.read_text(errors="replace")[-_OUTPUT_SHOWN:]

    def is_running(self) -> bool:
        """Return whether the program runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the program in an orderly way."""
        self._process.terminate()
        self._process.wait(_STOP_SECONDS)

    def kill(self) -> None:
        """Kill the program, whose parent ``timeout`` then ends."""
        if self.is_running():
            for child in Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split():
                subprocess.run(["kill", "-KILL", child], check=False)
            self._process.wait(_STOP_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        self.kill()
        if failure is not None:
            print(self.output, file=sys.stderr)
