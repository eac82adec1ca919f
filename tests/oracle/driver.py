"""Encoding and decoding by Kafka's own classes, many values per round trip.

This module controls the process and implements the pipe protocol (see ``src/main/java/oracle/Oracle.java``). The tests
interpret the results.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from time import monotonic
from typing import IO, Any, Final, TypeVar

from attrs import define, frozen

from kafka_msgs.message import Message
from kafka_msgs.versions import VersionRange
from tests.oracle.build import OracleUnavailableError, java_command

ANSWER_SECONDS: Final = 120
"""How long a request may take before its process is ended as hung."""

BATCH: Final = 2000
"""Items per round trip: enough to hide the pipe's latency, few enough for small buffers on both sides."""

_LIST, _ENCODE, _DECODE, _RECORD, _FOLD = 0, 1, 2, 3, 4
_READ_BATCHES, _WRITE_BATCH = 5, 6
_ERROR_RESPONSE = 7
_HASH, _STREAMS_METADATA = 8, 9
_T = TypeVar("_T")
_R = TypeVar("_R")


class OracleReject(Exception):  # noqa: N818 - a verdict, not a failure
    """Kafka's class rejected the input. Attributes: ``kafka_class`` (the Java exception) and ``reason`` (its text)."""

    def __init__(self, kafka_class: str, reason: str) -> None:
        super().__init__(f"{kafka_class}: {reason}")
        self.kafka_class = kafka_class
        self.reason = reason


class OracleCrashError(RuntimeError):
    """The Java process ended or hung during a request; the text contains the end of its error output."""


@frozen
class MessageInfo:
    """A Kafka message: its definition's name and type, its artifact, and the supported operations."""

    index: int
    name: str
    kind: str
    artifact: str
    release: str
    """The Kafka release of the artifact."""
    versions: VersionRange
    has_json: bool
    """False if Kafka ships no JSON converter: then only ``decode`` works, and its JSON is a rejection."""
    definition: dict[str, Any]
    """Kafka's definition in the jar."""

    @property
    def counts_tags(self) -> bool:
        """Whether the class rejects a number of tags that exceeds the available bytes, as it does since 4.4."""
        return self._since() >= (4, 4)

    @property
    def reads_bytes_in_json(self) -> bool:
        """Whether the JSON converter reads bytes fields; before 3.0 it rejects their base64, even its own."""
        return self._since() >= (3, 0)

    def _since(self) -> tuple[int, ...]:
        return tuple(map(int, self.release.split(".")[:2]))


@define(slots=False)
class Decoded:
    """The value that Kafka's class read, and the bytes it writes for it."""

    json_text: bytes | OracleReject
    consumed: int
    """How many bytes were read; Kafka leaves the remaining bytes to the caller."""
    reencoded: bytes | OracleReject
    """The value encoded again. It includes the data missing in the JSON: unknown tags and records contents."""

    @cached_property
    def json(self) -> Any:
        """Kafka's JSON form, parsed. Raises ``OracleReject`` without one."""
        if isinstance(self.json_text, OracleReject):
            raise self.json_text
        return json.loads(self.json_text)


@frozen
class Rewritten:
    """A record of an internal topic as Kafka read it and wrote it back, and the class of its value (or key)."""

    key: bytes | None
    value: bytes | None
    name: str


class Oracle:
    """One Java process, started at the first request and again after a crash. Threads can share it."""

    _shared: Oracle | None = None
    _unavailable: str | None = None

    def __init__(self, command: list[str], classes: Mapping[str, type[Message]] | None = None) -> None:
        """Store the start command; ``classes`` are this library's classes if its messages are of another release."""
        self._command = command
        self.classes = classes
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._lock = threading.Lock()
        self._messages: dict[str, MessageInfo] | None = None

    @classmethod
    def available(cls) -> tuple[bool, str]:
        """Return whether the oracle can run here, and the reason if not; builds it if needed."""
        if cls._shared is None and cls._unavailable is None:
            try:
                cls._shared = cls(java_command())
                atexit.register(cls._shared.close)
            except OracleUnavailableError as reason:
                cls._unavailable = str(reason)
        return cls._shared is not None, cls._unavailable or ""

    @classmethod
    def shared(cls) -> Oracle:
        """Return this process's oracle; raises ``OracleUnavailableError`` if it cannot run."""
        available, reason = cls.available()
        if not available or cls._shared is None:
            raise OracleUnavailableError(reason)
        return cls._shared

    def messages(self) -> dict[str, MessageInfo]:
        """Return every message of the release, test messages included, by name."""
        if self._messages is None:
            listing = json.loads(_Reader(self._ask(bytes([_LIST]) + _int32(0))).take_bytes())
            infos = [_message_info(index, entry) for index, entry in enumerate(listing)]
            self._messages = {info.name: info for info in infos}
        return self._messages

    def encode(self, name: str, version: int, value: Any, *, json_version: int | None = None) -> bytes:
        """Return the bytes of a JSON value at a version; raises ``OracleReject`` if Kafka rejects it.

        With ``json_version``, the value is read at that version and written at ``version``, which allows fields that
        the written version lacks.
        """
        (result,) = self.encode_many([(name, version, value)], json_version=json_version)
        if isinstance(result, OracleReject):
            raise result
        return result

    def decode(self, name: str, version: int, data: bytes) -> Decoded:
        """Read ``data`` at a version; raises ``OracleReject`` if Kafka rejects it."""
        (result,) = self.decode_many([(name, version, data)])
        if isinstance(result, OracleReject):
            raise result
        return result

    def encode_many(
        self, items: Iterable[tuple[str, int, Any]], *, json_version: int | None = None
    ) -> list[bytes | OracleReject]:
        """Encode (name, version, value) triples as ``encode``, in order; rejections are values of the list."""

        def pack(item: tuple[str, int, Any]) -> bytes:
            name, version, value = item
            text = json.dumps(value).encode()
            read_at = version if json_version is None else json_version
            return struct.pack(">hhhi", self.messages()[name].index, read_at, version, len(text)) + text

        return self._ask_many(_ENCODE, items, pack, _Reader.take_part)

    def decode_many(self, items: Iterable[tuple[str, int, bytes]]) -> list[Decoded | OracleReject]:
        """Decode (name, version, bytes) triples as ``decode``, in order; rejections are values of the list."""

        def pack(item: tuple[str, int, bytes]) -> bytes:
            name, version, data = item
            return struct.pack(">hhi", self.messages()[name].index, version, len(data)) + data

        return self._ask_many(_DECODE, items, pack, _Reader.take_decoded)

    def rewrite_records(
        self, items: Iterable[tuple[str, bytes | None, bytes | None]]
    ) -> list[Rewritten | OracleReject]:
        """Read records of internal topics, (topic, key, value) each, with the classes of Kafka's coordinators."""

        def pack(item: tuple[str, bytes | None, bytes | None]) -> bytes:
            topic, key, value = item
            return _sized(topic.encode()) + _sized(key) + _sized(value)

        return self._ask_many(_RECORD, items, pack, _Reader.take_rewritten)

    def fold_share_batches(self, items: Iterable[tuple[int, bytes, bytes]]) -> list[bytes | OracleReject]:
        """Fold share state, (start offset, existing batches, new batches) each; see ``InternalTopics.combine``."""

        def pack(item: tuple[int, bytes, bytes]) -> bytes:
            start, present, update = item
            return struct.pack(">q", start) + _sized(present) + _sized(update)

        return self._ask_many(_FOLD, items, pack, _Reader.take_part)

    def read_batches_many(self, items: Iterable[bytes]) -> list[bytes | OracleReject]:
        """Read record batches and verify their checksums; each result is a JSON list, see ``Batches.java``."""
        return self._ask_many(_READ_BATCHES, items, _sized, _Reader.take_part)

    def write_batch_many(self, items: Iterable[dict[str, Any]]) -> list[bytes | OracleReject]:
        """Write one record batch for each description; see ``Batches.java``."""
        return self._ask_many(_WRITE_BATCH, items, lambda item: _sized(json.dumps(item).encode()), _Reader.take_part)

    def error_responses_many(self, items: Iterable[tuple[int, int, int, int, bytes]]) -> list[bytes | OracleReject]:
        """Respond to requests with an error: (api key, version, throttle time in ms, error code, request) each.

        Each result is the body of the response, empty if Kafka sends none.
        """

        def pack(item: tuple[int, int, int, int, bytes]) -> bytes:
            api_key, version, throttle_ms, code, request = item
            return struct.pack(">hhih", api_key, version, throttle_ms, code) + _sized(request)

        return self._ask_many(_ERROR_RESPONSE, items, pack, _Reader.take_part)

    def hash_many(self, keys: Iterable[bytes]) -> list[bytes | OracleReject]:
        """Hash keys as the producer does; each result is an int32."""
        return self._ask_many(_HASH, keys, _sized, _Reader.take_part)

    def rewrite_streams_metadata(self, texts: Iterable[str]) -> list[bytes | OracleReject]:
        """Read offset metadata as Kafka Streams does, and write it back."""
        items = [text.encode() for text in texts]
        return self._ask_many(_STREAMS_METADATA, items, _sized, _Reader.take_part)

    def close(self) -> None:
        """End the process; the next request starts another."""
        process, self._process = self._process, None
        errors, self._errors = self._errors, None
        if process is not None:
            _end(process)
        if errors is not None:
            errors.close()

    def _ask_many(
        self, operation: int, items: Iterable[_T], pack: Callable[[_T], bytes], take: Callable[[_Reader], _R]
    ) -> list[_R]:
        results: list[_R] = []
        for batch in _batches(items):
            packed = [pack(item) for item in batch]
            reader = _Reader(self._ask(bytes([operation]) + _int32(len(packed)) + b"".join(packed)))
            results.extend(take(reader) for _ in packed)
        return results

    def _ask(self, question: bytes) -> bytes:
        with self._lock:
            process = self._process or self._start()
            try:
                return _exchange(process, question)
            except (OSError, EOFError, TimeoutError) as failure:
                _end(process)
                printed = self._last_errors()
                self.close()
                raise OracleCrashError(f"{failure}\n{printed}") from None

    def _start(self) -> subprocess.Popen[bytes]:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=self._errors, bufsize=0)
        return self._process

    def _last_errors(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        return self._errors.read()[-4000:].decode(errors="replace")


class _Reader:
    """Parses a result from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take_int32(self) -> int:
        self._at += 4
        return int.from_bytes(self._data[self._at - 4 : self._at], "big", signed=True)

    def take_bytes(self) -> bytes:
        size = self.take_int32()
        self._at += size
        return self._data[self._at - size : self._at]

    def take_part(self) -> bytes | OracleReject:
        return self.take_bytes() if self._accepted() else self._take_reject()

    def take_rewritten(self) -> Rewritten | OracleReject:
        part = self.take_part()
        if isinstance(part, OracleReject):
            return part
        inner = _Reader(part)
        return Rewritten(inner.take_nullable(), inner.take_nullable(), inner.take_rest().decode())

    def take_nullable(self) -> bytes | None:
        null = self._data[self._at : self._at + 4] == _int32(-1)
        if null:
            self._at += 4
        return None if null else self.take_bytes()

    def take_rest(self) -> bytes:
        return self._data[self._at :]

    def take_decoded(self) -> Decoded | OracleReject:
        if not self._accepted():
            return self._take_reject()
        consumed = self.take_int32()
        return Decoded(json_text=self.take_part(), consumed=consumed, reencoded=self.take_part())

    def _accepted(self) -> bool:
        self._at += 1
        return self._data[self._at - 1] == 1

    def _take_reject(self) -> OracleReject:
        kafka_class = self.take_bytes().decode()
        return OracleReject(kafka_class, self.take_bytes().decode())


def _message_info(index: int, entry: dict[str, Any]) -> MessageInfo:
    versions = VersionRange(entry.pop("lowest"), entry.pop("highest"))
    return MessageInfo(index=index, versions=versions, **entry)


def _batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    source = iter(items)
    while batch := list(islice(source, BATCH)):
        yield batch


def _sized(data: bytes | None) -> bytes:
    return _int32(-1) if data is None else _int32(len(data)) + data


def _int32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _exchange(process: subprocess.Popen[bytes], question: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    deadline = monotonic() + ANSWER_SECONDS
    rest = memoryview(_int32(len(question)) + question)
    while rest:
        rest = rest[process.stdin.write(rest) :]
    size = int.from_bytes(_read(process.stdout.fileno(), 4, deadline), "big")
    return _read(process.stdout.fileno(), size, deadline)


def _read(source: int, size: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        ready, _, _ = select.select([source], [], [], max(0.0, deadline - monotonic()))
        if not ready:
            raise TimeoutError("the oracle gave no answer in time")
        chunk = os.read(source, size - len(data))
        if not chunk:
            raise EOFError("the oracle's process ended")
        data += chunk
    return bytes(data)
