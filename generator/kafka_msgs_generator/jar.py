"""Bounded reading of untrusted jars, without unpacking them to disk or running their code.

A jar is refused if an entry points outside of it (an absolute path, ``..``, a symbolic link), if it has too many
entries, or if an entry expands beyond a limit.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from kafka_msgs_generator.maven import SourceUnavailableError

__all__ = ["MAX_ENTRIES", "MAX_ENTRY_BYTES", "MAX_JAR_BYTES", "MAX_TOTAL_BYTES", "Jar", "open_jar"]

MAX_JAR_BYTES: Final = 256 << 20
"""Largest jar file. The largest of Kafka's, the core's, has 7 MiB."""

MAX_ENTRIES: Final = 50_000
"""Most entries of a jar. The clients' jar, the largest of Kafka's by this count, has 4,000."""

MAX_ENTRY_BYTES: Final = 1 << 20
"""Largest entry that is read, in bytes after decompression. The largest definition of Kafka has 25 KiB."""

MAX_TOTAL_BYTES: Final = 64 << 20
"""Most bytes that are read of one jar, after decompression."""

_BROKEN: Final = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)
"""Errors of ``zipfile`` for a damaged archive; of these, `RuntimeError` is an encrypted entry or an unknown codec."""


class Jar:
    """An open jar. Its names cover regular entries only."""

    def __init__(self, name: str, archive: zipfile.ZipFile) -> None:
        self._name = name
        self._archive = archive
        self._left = MAX_TOTAL_BYTES
        self._entries = self._checked(archive.infolist())

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def read(self, name: str) -> bytes:
        """Return an entry; raise ``SourceUnavailableError`` if it expands beyond the limits."""
        limit = min(MAX_ENTRY_BYTES, self._left)
        with self._archive.open(self._entries[name]) as entry:
            data = entry.read(limit + 1)
        if len(data) > limit:
            raise self._error(f"{name} expands to more than {limit} bytes")
        self._left -= len(data)
        return data

    def _checked(self, infos: list[zipfile.ZipInfo]) -> Mapping[str, zipfile.ZipInfo]:
        if len(infos) > MAX_ENTRIES:
            raise self._error(f"it has {len(infos)} entries, more than {MAX_ENTRIES}")
        for info in infos:
            path = PurePosixPath(info.filename)
            if path.is_absolute() or ".." in path.parts or "\\" in info.filename:
                raise self._error(f"its entry {info.filename!r} lies outside of the jar")
            if stat.S_ISLNK(info.external_attr >> 16):
                raise self._error(f"its entry {info.filename!r} is a symbolic link")
        entries = {info.filename: info for info in infos}
        if len(entries) < len(infos):
            raise self._error("it has several entries of one name")
        return {name: info for name, info in entries.items() if not info.is_dir()}

    def _error(self, reason: str) -> SourceUnavailableError:
        return SourceUnavailableError(reason=f"{self._name} is refused: {reason}; import a jar of Kafka's own releases")


@contextmanager
def open_jar(path: Path) -> Iterator[Jar]:
    """Open a jar; raise ``SourceUnavailableError`` if it is unreadable or refused, including inside the block."""
    try:
        if path.stat().st_size > MAX_JAR_BYTES:
            raise SourceUnavailableError(reason=f"{path.name} is refused: it is larger than {MAX_JAR_BYTES >> 20} MiB")
        with zipfile.ZipFile(path) as archive:
            yield Jar(path.name, archive)
    except _BROKEN as error:
        raise SourceUnavailableError(reason=f"{path.name} cannot be read as a jar: {error}") from None
