"""A cassette, which records client traffic of a real cluster or replays it. It works with every test runner.

The file is a recording in the format of ``kafka-msgs tap --record`` and ``kafka-msgs capture``, so recordings of the
command can also be replayed.
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
    """A stand-in for a cluster inside a ``with`` block: clients connect to ``bootstrap_servers``.

    ``path`` is the file. ``mode`` has the same values as in VCR: ``once`` replays the file, or records it if it is
    missing; ``none`` only replays; ``all`` always records. ``cluster`` contains the addresses of the real brokers
    (host:port, separated by commas), or is a function that returns them; replaying ignores it. ``tls`` is for
    connections to the real brokers; clients connect to a cassette without TLS. With ``recorded_pace`` responses take as
    long as in the recording; otherwise they are immediate.

    A recording is written at the end of the block, unless the block raises an exception. Requests that are missing in
    the file are listed in ``misses``, and raise a ``CassetteError`` at the end of the block. A missing file, or a
    missing ``cluster`` when recording, raises the same error at the start. Passwords and tokens are not recorded.
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
        """Whether the cassette records the real cluster."""
        return self._tape is None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients: host:port."""
        return self._address

    @property
    def unplayed(self) -> list[str]:
        """Recorded writes that have not been repeated yet, while a file is replayed."""
        return [] if self._tape is None else self._tape.unplayed

    def start(self) -> None:
        """Start recording or replaying. Raises ``CassetteError``."""
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
        """Stop, and write the recording unless ``keep`` is False. ``misses`` raise no error here."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self.recording and keep:
            self._write()

    def check(self) -> None:
        """Raise ``CassetteError`` if a client sent a request that the file does not contain."""
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
        """Record the reason for a missing response once, because clients retry."""
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
        """Write the file atomically, because another process may be replaying it."""
        redaction = Redactor({RedactKind.SASL})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        written = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        with written.open("w", encoding="ascii") as file:
            file.write(recording_start({"redacted": [RedactKind.SASL]}) + "\n")
            file.writelines(recording_line(redaction.redact(item)) + "\n" for item in self._seen)
        written.replace(self.path)
