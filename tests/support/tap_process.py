"""``kafka-msgs tap`` as users run it: in a separate process, whose recording is read after it ends."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from kafka_msgs.capture import CaptureFault, Exchange
from kafka_msgs.capture.recording import read_recording

__all__ = ["TappedCluster"]


class TappedCluster:
    """A cluster behind the proxy, inside a ``with`` block; after ``stop``, ``exchanges`` and ``faults`` are available.

    ``recording`` is a file that does not exist yet.
    """

    def __init__(self, bootstrap_servers: str, recording: Path, *options: str, listen: str = "127.0.0.1:0") -> None:
        self.recording = recording
        self._command = [
            *(str(Path(sys.executable).with_name("kafka-msgs")), "tap", "--bootstrap-server", bootstrap_servers),
            *("--listen", listen, "--record", str(self.recording), "--output", "none", "--duration", "300", *options),
        ]
        self.exchanges: list[Exchange] = []
        self.faults: list[CaptureFault] = []
        self.bootstrap = ""
        self.report = ""

    def __enter__(self) -> TappedCluster:
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        first = self._process.stderr.readline()
        match = re.match(r"listening on (\S+) for ", first)
        assert match is not None, first + self._process.stderr.read()
        self.bootstrap = match[1]
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the proxy and read its recording."""
        if self._process.poll() is not None:
            return
        self._process.terminate()
        _, self.report = self._process.communicate(timeout=60)
        with self.recording.open("rb") as file:
            for item in read_recording(file):
                if isinstance(item, Exchange):
                    self.exchanges.append(item)
                else:
                    self.faults.append(item)

    def apis(self) -> set[str]:
        """The names of all APIs used."""
        return {exchange.api or str(exchange.api_key) for exchange in self.exchanges}

    def problems(self) -> Sequence[str]:
        """The undecodable messages, and all faults."""
        undecoded = [
            f"{exchange.api} v{exchange.version}: {problem.reason}"
            for exchange in self.exchanges
            for problem in exchange.problems
        ]
        return [*undecoded, *map(str, self.faults)]
