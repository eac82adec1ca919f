"""A cassette: it records what clients ask a real cluster, or plays that back. It needs no test runner.

The file is a recording, as ``kafka-msgs tap --record`` writes it and ``kafka-msgs capture`` shows it. So what was
recorded with the command can be played too.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

from kafka_msgs.capture.connections import Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.recording import read_recording, recording_line, recording_start
from kafka_msgs.errors import CassetteError
from kafka_msgs.redaction import RedactKind, Redactor
from kafka_msgs.tap import Tap
from kafka_msgs.testing.cassettes.player import Player
from kafka_msgs.testing.cassettes.recorded_exchanges import RecordedExchanges
from kafka_msgs.validators import check_choice

if TYPE_CHECKING:
    import ssl

__all__ = ["MODES", "Cassette", "Mode"]

Mode: TypeAlias = Literal["once", "none", "all"]
MODES: Final = ("once", "none", "all")
_LAST_PORT: Final = 65535
_MOST_MISSES: Final = 100


class Cassette:
    """Stands for a cluster inside a ``with`` block: clients connect to ``bootstrap_servers``.

    ``path`` is the file. ``mode`` is as in VCR: ``once`` plays the file, or records it if it is not there; ``none``
    only plays; ``all`` records it anew. ``cluster`` has the addresses of the real brokers (host:port, with commas
    between), or is a function that returns them; it is not looked at to play. ``tls`` is for connections with them;
    clients connect to a cassette without TLS. With ``recorded_pace`` answers take as long as they took when they were
    recorded; otherwise they come at once.

    A recording is written at the end of the block, unless that ends with an exception. What a client asked and the
    file does not have is in ``misses``, and is raised as ``CassetteError`` at the end of the block. The same error is
    raised at the start for a file that is missing, and if there is no ``cluster`` to record. Passwords and tokens are
    not recorded.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        cluster: str | Callable[[], str] | None = None,
        *,
        mode: Mode = "once",
        tls: ssl.SSLContext | None = None,
        recorded_pace: bool = False,
    ) -> None:
        check_choice("Cassette", "mode", mode, MODES)
        self.path = Path(path)
        self.mode = mode
        self.misses: list[str] = []
        self._cluster = cluster
        self._tls = tls
        self._recorded_pace = recorded_pace
        self._seen: list[Item] = []
        self._tape: RecordedExchanges | None = None

    @property
    def recording(self) -> bool:
        """Whether the real cluster is asked."""
        return self._tape is None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect: host:port."""
        return self._address

    @property
    def unplayed(self) -> list[str]:
        """While a file is played: what it says was written, and was not written again so far."""
        return [] if self._tape is None else self._tape.unplayed

    def start(self) -> None:
        """Begin to record or to play. Raises ``CassetteError``."""
        server = self._server()
        started: Future[str] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(server, started)), name="kafka-msgs-cassette", daemon=True
        )
        self._thread.start()
        try:
            self._address = started.result()
        except BaseException:
            self._thread.join()
            raise

    def close(self, *, keep: bool = True) -> None:
        """End, and write what was recorded, unless ``keep`` is False. It raises nothing about ``misses``."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self.recording and keep:
            self._write()

    def check(self) -> None:
        """Raise ``CassetteError`` if a client asked what the file does not have."""
        if self.misses:
            more = f" (and {len(self.misses) - 1} more)" if len(self.misses) > 1 else ""
            raise CassetteError(path=str(self.path), reason=self.misses[0] + more)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close(keep=exc is None)
        if self.misses and exc is not None:
            exc.add_note("\n".join(self.misses))
        elif exc is None:
            self.check()

    def _server(self) -> AbstractAsyncContextManager[Any]:
        if self.mode == "all" or (self.mode == "once" and not self.path.exists()):
            self._tape = None
            brokers = self._brokers()
            return Tap(brokers, seen=self._seen.append, broker_tls=self._tls)
        try:
            with self.path.open("rb") as file:
                self._tape = RecordedExchanges(read_recording(file))
        except FileNotFoundError:
            raise CassetteError(path=str(self.path), reason="there is no recording to play") from None
        return Player(self._tape, missed=self._miss, recorded_pace=self._recorded_pace)

    def _miss(self, reason: str) -> None:
        """Keep why a request was not answered, once: clients ask again."""
        if reason not in self.misses and len(self.misses) < _MOST_MISSES:
            self.misses.append(reason)

    def _brokers(self) -> tuple[Endpoint, ...]:
        text = self._cluster() if callable(self._cluster) else self._cluster
        if not text:
            raise CassetteError(path=str(self.path), reason="there is no cluster to record")
        return tuple(map(self._endpoint, text.split(",")))

    def _endpoint(self, text: str) -> Endpoint:
        host, _, port = text.strip().rpartition(":")
        if not host or not (port.isascii() and port.isdecimal()) or int(port) > _LAST_PORT:
            raise CassetteError(path=str(self.path), reason=f"{text!r} does not read host:port")
        return Endpoint(host.strip("[]"), int(port))

    async def _serve(self, server: AbstractAsyncContextManager[Any], started: Future[str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            async with server as running:
                started.set_result(str(running.address))
                await self._stop.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    def _write(self) -> None:
        """Write the file, whole or not at all: another process may play it at this moment."""
        redaction = Redactor({RedactKind.SASL})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        written = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        with written.open("w", encoding="ascii") as file:
            file.write(recording_start({"redacted": [RedactKind.SASL]}) + "\n")
            file.writelines(recording_line(redaction.redact(item)) + "\n" for item in self._seen)
        written.replace(self.path)
